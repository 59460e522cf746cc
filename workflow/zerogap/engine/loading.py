"""Loading a model folder, and choosing the decoder for its architecture."""

import platform
import sys
from pathlib import Path

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from zerogap import precision
from zerogap.engine import memory
from zerogap.engine.decoder import Capacity, Decoder
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.families import fits_shared_prompt_decoder

# Largest difference of the logits from the model's own, in their standard deviation.
MAX_DIFFERENCE = 1e-3
MAX_DIFFERENCE_LOW_PRECISION = 0.1


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

    Some architectures have no such limit, for example those that weight distances (ALiBi).
    """
    text_config = config.get_text_config()
    limits = ("max_position_embeddings", "max_seq_len")
    return int(next((getattr(text_config, x) for x in limits if hasattr(text_config, x)), 2**31))


def decoder(model: PreTrainedModel, *, with_logits: bool = True) -> SharedPromptDecoder | HFDecoder:
    """The shared prompt cache if it gives the model's own logits, else the model's own cache.

    A tested architecture on a CPU is trusted. Any other one, and every one on a GPU, is tried on
    random tokens first; the slower decoder is chosen with a warning.

    Args:
        model: a causal language model.
        with_logits: False if only the model's activations are needed.
    """
    tested = fits_shared_prompt_decoder(model.config.get_text_config().model_type)
    if tested and model.device.type == "cpu":
        return SharedPromptDecoder(model, with_logits=with_logits)
    own_attention = model.config._attn_implementation
    problem = shared_prompt_misfit(model)
    memory.release()  # a decoder refers to itself, so that the trial's still holds its tensors
    if problem is None:
        return SharedPromptDecoder(model, with_logits=with_logits)
    model.set_attn_implementation(own_attention)
    print(
        f"{model.config.model_type}: the shared prompt cache does not fit this architecture "
        f"({problem}); falling back to the model's own cache, one question at a time (slower)",
        file=sys.stderr,
    )
    return HFDecoder(model)


def shared_prompt_misfit(model: PreTrainedModel) -> str | None:
    """Why the shared prompt cache cannot be used for a model, if it cannot.

    Raises:
        RuntimeError: the device has no memory for the trial, which says nothing about the model.
    """
    expected = _trial_logits(HFDecoder(model))
    try:
        logits = _trial_logits(SharedPromptDecoder(model))
    except Exception as error:  # an unknown architecture may fail anywhere
        if memory.is_exhausted(error):
            raise
        return f"{type(error).__name__}: {error}"
    difference = ((logits - expected).std() / expected.std()).item()
    full_precision = torch.finfo(model.dtype).eps < 1e-5
    allowed = MAX_DIFFERENCE if full_precision else MAX_DIFFERENCE_LOW_PRECISION
    return None if difference < allowed else f"logits differ by {difference:.2g}"


def _trial_logits(decoder: Decoder) -> Tensor:
    """Logits of a few steps on random tokens, behind a prefix longer than a sliding window.

    The steps have the same shape, so that a device that captures steps also replays one.
    """
    config = decoder.model.config.get_text_config()
    window = min(getattr(config, "sliding_window", None) or 8, context_length(config) // 2)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(config.vocab_size, (window + 12,), generator=generator)
    decoder.reserve(
        Capacity(
            max_rows=1, samples_per_prompt=1, max_new_tokens=8, max_prompts=1, max_prompt_len=5
        )
    )
    decoder.prefill_prefix(tokens[: window + 4].tolist())
    logits = [decoder.prefill_prompts([tokens[window + 4 : window + 9].tolist()])]
    for token in tokens[window + 9 :]:
        logits.append(decoder.step(token[None].to(decoder.device)).clone())
    return torch.cat(logits).float()
