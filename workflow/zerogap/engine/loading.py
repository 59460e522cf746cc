"""Loading a model folder, and choosing the decoder for its architecture."""

import contextlib
import functools
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging

from zerogap import precision
from zerogap.engine import memory
from zerogap.engine.hf_decoder import HFDecoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.engine.trial import Trial
from zerogap.errors import InputError, first_line
from zerogap.families.folders import tensor_names
from zerogap.families.structure import config_of, problem_of


def load(folder: str | Path, dtype: str) -> PreTrainedModel:
    """Load a model for evaluation, on the GPU if there is one.

    A CPU that is slow in the dtype ("bfloat16", …) gets float32 (:mod:`zerogap.precision`). On a
    CPU the process keeps freed memory after that.

    Raises:
        InputError: see :func:`read_model`; or the model does not fit into memory.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    wanted: torch.dtype = getattr(torch, dtype)
    if device.type == "cpu":
        memory.keep_freed_memory()
    used = precision.usable_dtype(wanted, device)
    if device.type == "cpu" and wanted != torch.float32:
        _warn_of_cpu(dtype, used)
    try:
        return read_model(folder, used).to(device).eval()
    except Exception as error:
        if not memory.is_exhausted(error):
            raise
        raise InputError(
            f"{folder}: does not fit into the memory of {device} in {used} ({first_line(error)}); "
            "use a larger device"
        ) from error


@functools.cache
def _warn_of_cpu(dtype: str, used: torch.dtype) -> None:
    """Say once per process that models are decoded on the CPU."""
    name = str(used).removeprefix("torch.")
    reason = "" if name == dtype else f", because this CPU is slow in {dtype}"
    print(
        f"warning: no GPU is visible on {platform.node()}; decoding on the CPU in {name}{reason}. "
        "If that is not intended, check the partition and CUDA_VISIBLE_DEVICES",
        file=sys.stderr,
    )


def read_model(folder: str | Path, dtype: torch.dtype, **options: Any) -> PreTrainedModel:
    """Read a model's weights: all of them, and none that the model has no place for.

    Further options are those of `from_pretrained`.

    Raises:
        InputError: the files are damaged or not those of the configuration's model.
    """
    folder = Path(folder)
    tensor_names(folder)
    config_of(folder)
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # named below
            **options,
        )
    except Exception as error:  # many types, from three libraries
        if memory.is_exhausted(error):
            raise
        raise InputError(
            f"{folder}: cannot be loaded as a causal language model ({problem_of(error)}); the "
            "weights must be those that config.json describes"
        ) from error
    expected = model.state_dict()
    # Towers of other modalities are left out; more blocks than the model has are not.
    surplus = {
        name for name in info["unexpected_keys"] if re.sub(r"\.\d+\.", ".0.", name) in expected
    }
    reshaped = {name for name, *_ in info["mismatched_keys"]}
    for kind, names in (
        ("of another shape", reshaped),
        ("missing", info["missing_keys"]),
        ("not in the model", surplus),
    ):
        if names:
            raise InputError(
                f"{folder}: {len(names)} tensors are {kind}, such as {min(names)}; the weights "
                "must be those that config.json describes"
            )
    return model


def check_folder(folder: str | Path) -> PreTrainedConfig:
    """Check a model folder as far as is possible without memory for its weights.

    Returns its configuration. A model that is only fed tokens needs no tokenizer.

    Raises:
        InputError: see :func:`read_model`; or the model has no positions.
    """
    files = Path(folder)
    if (files / "adapter_config.json").exists() and not (files / "config.json").exists():
        raise InputError(
            f"{folder}: is an adapter; merge it into its base model (PEFT's merge_and_unload) and "
            "name the folder where that is saved, with its tokenizer"
        )
    config = config_of(folder)
    with _quiet():
        read_model(folder, torch.float32, device_map="meta")
    if (positions := context_length(config)) < 1:
        raise InputError(f"{folder}/config.json: has {positions} positions; correct it")
    return config


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bar and no warnings of `transformers` while the block runs."""
    verbosity, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bar:
            logging.enable_progress_bar()


def context_length(config: PreTrainedConfig) -> int:
    """The largest number of tokens that a model of this configuration has positions for.

    Some architectures have no such limit, for example those that weight distances (ALiBi). LongRoPE
    has a second one, behind which it rotates all keys otherwise: cached keys would be wrong, and a
    response would depend on the longest one in the batch. The limit is that one.
    """
    text_config = config.get_text_config()
    attributes = ("max_position_embeddings", "max_seq_len", "max_target_positions")
    limits = [int(getattr(text_config, x)) for x in attributes if hasattr(text_config, x)][:1]
    rope = getattr(text_config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        limits.append(int(rope["original_max_position_embeddings"]))
    return min(limits, default=2**31)


def decoder(model: PreTrainedModel, *, with_logits: bool = True) -> SharedPromptDecoder | HFDecoder:
    """The fastest decoder that gives the logits of passes over whole sequences.

    The shared prompt cache, else the model's own cache, else none. Slower ones are chosen with a
    warning. Without logits only the model's activations are right.

    Raises:
        InputError: the model is neither on a CPU nor on a CUDA GPU, or computes no logits from
            token ids alone; or only activations are needed, and the model's own cache is not right
            either.
        RuntimeError: the device has no memory for the trial.
    """
    if (device := model.device.type) not in ("cpu", "cuda"):
        raise InputError(f"model: is on {device}, where decoding is not possible; use .to('cpu')")
    try:
        trial = Trial(model, context_length(model.config))
    except Exception as error:  # an unknown architecture may fail anywhere
        if memory.is_exhausted(error):
            raise
        raise InputError(
            f"{model.config.model_type}: its forward pass fails ({problem_of(error)}); choose a "
            "model and a dtype in which model(input_ids) gives logits"
        ) from error
    if devices := sorted({str(each.device) for each in model.parameters()} - {str(model.device)}):
        misfit: str | None = (
            f"it is also on {', '.join(devices)}; device_map={{'': 0}} keeps it on one"
        )
    else:
        misfit = trial.misfit(SharedPromptDecoder)
    memory.release()  # a decoder refers to itself, so that the trial's still holds its tensors
    if misfit is None:
        return SharedPromptDecoder(model, with_logits=with_logits)
    own_misfit = trial.misfit(HFDecoder)
    model.set_attn_implementation(trial.attention)
    problem = f"{model.config.model_type}: the shared prompt cache does not fit this model "
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
