"""Loading a model folder, and choosing the decoder for its architecture."""

import platform
import sys
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from zerogap import precision
from zerogap.engine import memory
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.engine.trial import Trial
from zerogap.errors import InputError

# A rehearsal looks for it in the logs of jobs.
MISFIT = "the shared prompt cache does not fit this architecture"


def load(folder: str | Path, dtype: str) -> PreTrainedModel:
    """Load a model, on the GPU if there is one. On a CPU the process keeps freed memory after that.

    Args:
        folder: a model folder.
        dtype: "float32", "bfloat16", … A CPU that is slow in it gets float32
            (:mod:`zerogap.precision`).

    Returns:
        The model in evaluation mode.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    wanted: torch.dtype = getattr(torch, dtype)
    if device.type == "cpu":
        memory.keep_freed_memory()
    used = precision.usable_dtype(wanted, device)
    if device.type == "cpu" and wanted != torch.float32:
        reason = "" if used == wanted else f", because this CPU is slow in {dtype}"
        print(
            f"warning: no GPU is visible on {platform.node()}; decoding on the CPU in "
            f"{str(used).removeprefix('torch.')}{reason}. If that is not intended, check the "
            "partition and CUDA_VISIBLE_DEVICES",
            file=sys.stderr,
        )
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=used, use_safetensors=True)
    return model.to(device).eval()


def load_tokenizer(folder: str | Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model folder."""
    return AutoTokenizer.from_pretrained(folder)


def context_length(config: PreTrainedConfig) -> int:
    """The largest number of tokens that a model of this configuration has positions for.

    Some architectures have no such limit, for example those that weight distances (ALiBi). LongRoPE
    has a second one, behind which it rotates all keys otherwise: cached keys would be wrong, and a
    response would depend on the longest one in the batch. The limit is that one.
    """
    text_config = config.get_text_config()
    attributes = ("max_position_embeddings", "max_seq_len")
    limits = [int(getattr(text_config, x)) for x in attributes if hasattr(text_config, x)][:1]
    rope = getattr(text_config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        limits.append(int(rope["original_max_position_embeddings"]))
    return min(limits, default=2**31)


def decoder(model: PreTrainedModel, *, with_logits: bool = True) -> SharedPromptDecoder | HFDecoder:
    """The fastest decoder that gives the logits of passes over whole sequences.

    The shared prompt cache, else the model's own cache, else none. Slower ones are chosen with a
    warning.

    Args:
        model: a causal language model.
        with_logits: False if only the model's activations are needed.

    Raises:
        InputError: only activations are needed, and the model's own cache is not right either.
        RuntimeError: the device has no memory for the trial.
    """
    trial = Trial(model, context_length(model.config))
    misfit = trial.misfit(SharedPromptDecoder)
    memory.release()  # a decoder refers to itself, so that the trial's still holds its tensors
    if misfit is None:
        return SharedPromptDecoder(model, with_logits=with_logits)
    own_misfit = trial.misfit(HFDecoder)
    model.set_attn_implementation(trial.attention)
    problem = f"{model.config.model_type}: {MISFIT} "
    if own_misfit is None:
        print(
            f"{problem}({misfit}); falling back to the model's own cache, one question at a time "
            "(slower)",
            file=sys.stderr,
        )
        return HFDecoder(model)
    problem += f"({misfit}), nor is the model's own cache right ({own_misfit})"
    if not with_logits:
        raise InputError(f"{problem}; Shortcut needs a model with a cache")
    print(
        f"{problem}; computing every row's whole sequence for every token (much slower)",
        file=sys.stderr,
    )
    return HFDecoder(model, cached=False)
