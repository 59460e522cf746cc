"""Tiny models with random weights in the three families' exact architectures, and a tokenizer."""

from collections.abc import Callable

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.fx.experimental.proxy_tensor import make_fx
from transformers import (
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

VOCABULARY = 300  # the 256 bytes and some tokens besides


def model(family: str, seed: int = 0) -> PreTrainedModel:
    """A model in float64, so that only wrong code makes two ways of computing it differ."""
    torch.manual_seed(seed)
    common = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48}
    common |= {"num_attention_heads": 4, "max_position_embeddings": 256}
    if family == "llama_mha":
        made = LlamaForCausalLM(LlamaConfig(**common, num_hidden_layers=3))
    elif family == "llama":
        made = LlamaForCausalLM(LlamaConfig(**common, num_hidden_layers=3, num_key_value_heads=2))
    elif family == "gpt_neox":
        made = GPTNeoXForCausalLM(GPTNeoXConfig(**common, num_hidden_layers=3, rotary_pct=0.25))
    else:
        kinds = ["sliding_attention", "sliding_attention", "full_attention"]
        made = Gemma4ForCausalLM(
            Gemma4TextConfig(
                **common,
                num_hidden_layers=6,
                num_key_value_heads=2,
                head_dim=8,
                global_head_dim=16,
                sliding_window=12,
                num_kv_shared_layers=3,
                hidden_size_per_layer_input=4,
                vocab_size_per_layer_input=VOCABULARY,
                layer_types=kinds * 2,
            )
        )
    made = made.double().eval()
    with torch.no_grad():  # fresh weights are so small that every distribution is flat
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return made


def traced(once: Callable[[], torch.Tensor]) -> Callable[[], object]:
    """Records a step as a CUDA graph would, on a CPU: the kernels that ran, on those very tensors.

    Whatever the step has from Python is as it was when it is played again. A step that asks the
    device for a number, or sends it one, cannot be recorded.
    """
    recorded = make_fx(once)()
    if sent := [node for node in recorded.graph.nodes if "lift_fresh" in str(node.target)]:
        raise RuntimeError(f"sent from the host: {sent}")
    return recorded


FAMILIES = ("llama_mha", "llama", "gpt_neox", "gemma4")


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level without merges: one token a byte, then <eos>."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>")
    fillers = [f"<filler_{i}>" for i in range(VOCABULARY - len(made))]
    made.add_special_tokens({"additional_special_tokens": fillers})
    return made
