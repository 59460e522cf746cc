"""Loading a model folder for decoding."""

from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)


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
