"""Loading a model folder for decoding, and the way in which it is decoded."""

import sys
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from zerogap.engine.decoder import Capacity
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.families import fits_shared_prompt_decoder


def load(folder: str | Path, dtype: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model, in evaluation mode on the GPU if there is one, and its tokenizer.

    Args:
        dtype: "float32", "bfloat16", …
    """
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(device).eval(), AutoTokenizer.from_pretrained(folder)


def context_length(model: PreTrainedModel) -> int:
    """How many tokens the model's positions reach."""
    return model.config.get_text_config().max_position_embeddings


def decoder(model: PreTrainedModel, *, with_logits: bool = True) -> SharedPromptDecoder | HFDecoder:
    """The model behind the shared prompt cache, or on its own if the cache does not fit it.

    An architecture that is not known to fit, and any on a GPU, is tried on random tokens first: the
    two ways must give the same logits. The slower one is taken with a line that says so.
    """
    known = fits_shared_prompt_decoder(model.config.get_text_config().model_type)
    if known and model.device.type == "cpu":
        return SharedPromptDecoder(model, with_logits=with_logits)
    own_attention = model.config._attn_implementation
    expected = _trial(HFDecoder(model))
    try:
        found = _trial(SharedPromptDecoder(model))
        difference = ((found - expected).std() / expected.std()).item()
        exact = torch.finfo(model.dtype).eps < 1e-5
        misfit = (
            None if difference < (1e-3 if exact else 0.1) else f"logits differ {difference:.2g}"
        )
    except Exception as error:  # whatever an unknown architecture trips over
        misfit = f"{type(error).__name__}: {error}"
    if misfit is None:
        return SharedPromptDecoder(model, with_logits=with_logits)
    model.set_attn_implementation(own_attention)
    print(
        f"{model.config.model_type}: the shared prompt cache does not fit this architecture "
        f"({misfit}); decoding one question at a time through the model's own cache, more slowly",
        file=sys.stderr,
    )
    return HFDecoder(model)


def _trial(decoder: SharedPromptDecoder | HFDecoder) -> torch.Tensor:
    """Logits of a few steps on random tokens, behind a prefix longer than a sliding window.

    The steps are of one shape, so that a device that records them plays the last again.
    """
    config = decoder.model.config.get_text_config()
    window = min(getattr(config, "sliding_window", None) or 8, config.max_position_embeddings // 2)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(config.vocab_size, (window + 12,), generator=generator)
    decoder.reserve(
        Capacity(
            max_rows=1, samples_per_prompt=1, max_new_tokens=8, max_prompts=1, max_prompt_len=5
        )
    )
    decoder.prefill_prefix(tokens[: window + 4].tolist())
    steps = [decoder.prefill_prompts([tokens[window + 4 : window + 9].tolist()])]
    steps += [decoder.step(token[None].to(decoder.device)) for token in tokens[window + 9 :]]
    return torch.cat(steps).float()
