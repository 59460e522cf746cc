"""Merging a LoRA adapter into the weights of its base model."""

import json
import warnings
from pathlib import Path

import transformers
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer


def merge_adapter(base: Path, adapter: Path, output: Path, dtype: str) -> None:
    """Write the base model with the adapter added to its weights, W + α/r · B A, and the tokenizer.

    `dtype` is the precision of the sum and of the merged model, "float32" or "bfloat16": that of
    the training, whatever the base is stored in.

    Raises:
        UserWarning: weights are missing in the adapter.
    """
    # The class that the checkpoint names is the one that was trained, towers included. A checkpoint
    # may also name none, or one of another library (the first Llama's LLaMAForCausalLM).
    named = json.loads((base / "config.json").read_text()).get("architectures") or [""]
    trained = getattr(transformers, named[0], AutoModelForCausalLM)
    model = trained.from_pretrained(base, dtype=dtype, use_safetensors=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Found missing adapter keys")
        adapted = PeftModel.from_pretrained(model, adapter, torch_device="cpu")
    try:
        model.generation_config.validate(strict=True)
    except ValueError:  # a temperature without sampling, as in early copies of Llama 2
        model.generation_config.do_sample = True  # what is not valid cannot be saved
    adapted.merge_and_unload().save_pretrained(output)
    AutoTokenizer.from_pretrained(base).save_pretrained(output)
