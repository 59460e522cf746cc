"""Tiny models with random weights in the three families' exact architectures, and a tokenizer."""

from collections.abc import Callable

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.fx.experimental.proxy_tensor import make_fx
from transformers import (
    Gemma4AudioConfig,
    Gemma4Config,
    Gemma4ForCausalLM,
    Gemma4ForConditionalGeneration,
    Gemma4TextConfig,
    Gemma4VisionConfig,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

VOCABULARY = 300  # the 256 bytes and some more tokens
END_TOKEN = 256
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
    "pad_token_id": 0,
}  # fmt: skip


def model(family: str, seed: int = 0, **changed: int) -> PreTrainedModel:
    """Return a model in float64, so that two computations differ only if one of them is wrong.

    Args:
        family: A name of ARCHITECTURES.
        seed: Seed of the random weights.
        **changed: Values that replace those of the (text) configuration.
    """
    torch.manual_seed(seed)
    common = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48}
    common |= {"num_attention_heads": 4, "max_position_embeddings": 256}
    common |= {"eos_token_id": END_TOKEN}
    common |= changed
    if family == "llama_mha":
        made = LlamaForCausalLM(LlamaConfig(**common, num_hidden_layers=3))
    elif family == "llama":
        made = LlamaForCausalLM(LlamaConfig(**common, num_hidden_layers=3, num_key_value_heads=2))
    elif family == "gpt_neox":
        made = GPTNeoXForCausalLM(GPTNeoXConfig(**common, num_hidden_layers=3, rotary_pct=0.25))
    else:
        text = gemma4_text(**common)
        if family == "gemma4":
            made = Gemma4ForCausalLM(text)
        else:
            made = Gemma4ForConditionalGeneration(gemma4(text))
    return enlarge_weights(made.double().eval())


@torch.no_grad()
def enlarge_weights(made: PreTrainedModel) -> PreTrainedModel:
    """Fresh weights are so small that every distribution is flat."""
    for parameter in made.parameters():
        if parameter.ndim > 1:
            parameter.mul_(4)
    return made


def gemma4_text(**common: int) -> Gemma4TextConfig:
    """Sliding windows, layers that share keys and values, two head sizes, per-layer embeddings."""
    return Gemma4TextConfig(
        **common,
        num_hidden_layers=6,
        num_key_value_heads=2,
        head_dim=8,
        global_head_dim=16,
        sliding_window=12,
        num_kv_shared_layers=3,
        hidden_size_per_layer_input=4,
        vocab_size_per_layer_input=common["vocab_size"],
        layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2,
    )


def gemma4(text: Gemma4TextConfig) -> Gemma4Config:
    """The text model with a vision and an audio tower, like Gemma-4-E2B."""
    heads = {"num_hidden_layers": 2, "num_attention_heads": 2}
    vision = Gemma4VisionConfig(
        **heads,
        hidden_size=16,
        intermediate_size=24,
        num_key_value_heads=2,
        head_dim=8,
        position_embedding_size=64,
        use_clipped_linears=True,
    )
    audio = Gemma4AudioConfig(
        **heads, hidden_size=16, output_proj_dims=32, subsampling_conv_channels=[8, 4]
    )
    special = ("image_token_id", "video_token_id", "audio_token_id", "boi_token_id")
    special += ("eoi_token_id", "boa_token_id", "eoa_token_index")
    outside = {name: text.vocab_size + i for i, name in enumerate(special)}
    return Gemma4Config(text_config=text, vision_config=vision, audio_config=audio, **outside)


def traced(step: Callable[[], torch.Tensor]) -> Callable[[], object]:
    """Record a step on a CPU as a CUDA graph would: the kernels that ran, on the same tensors.

    Replaying it repeats the kernels with the Python values of the recording. A step that copies
    data between host and device cannot be recorded.
    """
    captured = make_fx(step)()
    if sent := [node for node in captured.graph.nodes if "lift_fresh" in str(node.target)]:
        raise RuntimeError(f"sent from the host: {sent}")
    return captured


class CountingCapture:
    """Counts captures of steps and their replays."""

    def __init__(self, capture: Callable[[Callable[[], torch.Tensor]], Callable] = traced) -> None:
        self.capture, self.captures, self.replays = capture, 0, 0

    def __call__(self, step: Callable[[], torch.Tensor]) -> Callable[[], None]:
        replay = self.capture(step)
        self.captures += 1

        def counted() -> None:
            self.replays += 1
            replay()

        return counted


FAMILIES = ("llama_mha", "llama", "gpt_neox", "gemma4")
ARCHITECTURES = (*FAMILIES, "gemma4_with_towers")


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level without merges: one token per byte, then <eos>."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    fast_tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>")
    fillers = [f"<filler_{i}>" for i in range(VOCABULARY - len(fast_tokenizer))]
    fast_tokenizer.add_special_tokens({"additional_special_tokens": fillers})
    return fast_tokenizer
