"""The generic family: a model's layers found from its module structure.

It serves any decoder-only `transformers` model with one dense feed-forward block per decoder block,
whatever its modules are called. Sizes decide, not names, with three exceptions: modules named
after attention are not feed-forward, modules named `per_layer_*` (Gemma 4) are neither, and modules
named `experts` or `router` mark a mixture of experts, which is not supported.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from zerogap.errors import InputError
from zerogap.families import Family
from zerogap.families.folders import read_config

_LINEAR = (nn.Linear, Conv1D)
_EXPERTS = ("experts", "router")
_REJECTED_BY_PEFT = {"falcon_h1": ("out_proj",)}  # linear layers that LoRA cannot adapt
_REMEDY = "use a decoder-only model with attention and one dense feed-forward network in each block"


def config_of(folder: str | Path) -> PreTrainedConfig:
    """The configuration of a model folder.

    Raises:
        InputError: its `config.json` cannot be read, or has values that no model has.
    """
    read_config(folder)
    try:
        return AutoConfig.from_pretrained(folder)
    except Exception as error:  # many types, from several libraries
        raise InputError(
            f"{folder}/config.json: does not describe a model ({problem_of(error)}); correct it, "
            "or copy the model again"
        ) from error


def problem_of(error: BaseException) -> str:
    """What the libraries' error says, in one line."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    text = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return " ".join(text.split())[:160]


def family_from_config(config: Mapping[str, Any]) -> Family:
    """The generic family of the model that a `config.json` describes.

    The model is built without weights, on PyTorch's meta device.

    Raises:
        InputError: not a causal language model of `transformers`, or its structure is not
            supported.
    """
    model_type = config.get("model_type")
    try:
        model = _without_weights(AutoConfig.for_model(**config))
    except Exception as error:  # values that do not fit raise anything
        raise InputError(
            f"model type {model_type!r} is not a causal language model of transformers "
            f"({problem_of(error)}); {_REMEDY}"
        ) from error
    return family_of(model)


def _without_weights(config: PreTrainedConfig) -> PreTrainedModel:
    """The model of a configuration; the text decoder alone where `transformers` has no other.

    `from_pretrained` takes the text configuration by itself where the whole one is registered for
    causal language models (Qwen3.5, Llama 4); elsewhere it fails.
    """
    text = config.get_text_config()
    try:
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config)
    except Exception:
        if text is config or type(config) not in AutoModelForCausalLM._model_mapping:
            raise
        return _without_weights(text)


def family_of(model: PreTrainedModel) -> Family:
    """The generic family of a model: LoRA targets and down projection from its modules.

    LoRA targets are the names of all linear layers inside the decoder blocks. Where another part of
    the model, such as a vision tower, has a layer of the same name, full module names are used, so
    that LoRA leaves that part alone.

    Raises:
        InputError: the structure is not supported.
    """
    blocks = _blocks(model)
    suffixes = {_down_projection(model, block) for block in blocks}
    if len(suffixes) > 1:
        names = ", ".join(sorted(suffixes))
        raise InputError(
            f"{_name(model)}: the blocks have different down projections ({names}); {_REMEDY}"
        )
    adapted = {module for block in blocks for _, module in _linear_layers(block)}
    linear = {name: m for name, m in model.named_modules() if isinstance(m, _LINEAR)}
    full_names = [name for name, module in linear.items() if module in adapted]
    rejected = _REJECTED_BY_PEFT.get(model.config.get_text_config().model_type, ())
    full_names = [name for name in full_names if _leaf(name) not in rejected]
    leaves = dict.fromkeys(map(_leaf, full_names))
    is_ambiguous = any(
        _leaf(name) in leaves for name, module in linear.items() if module not in adapted
    ) or any(map(str.isdigit, leaves))  # as blocks are called
    return Family(
        name="auto",
        model_types=(model.config.model_type,),
        lora_targets=tuple(full_names if is_ambiguous else leaves),
        down_projection=suffixes.pop(),
    )


def down_projections(model: PreTrainedModel) -> list[nn.Module]:
    """The down projection of each decoder block, in order of the layers.

    Only the text decoder is searched: Gemma-4-E2B also has a vision and an audio tower.

    Raises:
        InputError: the structure is not supported.
    """
    return [block.get_submodule(_down_projection(model, block)) for block in _blocks(model)]


def num_neurons(model: PreTrainedModel) -> list[int]:
    """The neurons of each decoder block: what its down projection reads.

    Raises:
        InputError: the structure is not supported.
    """
    layers = cast("list[nn.Linear | Conv1D]", down_projections(model))
    return [_features(layer)[0] for layer in layers]


def _blocks(model: PreTrainedModel) -> list[nn.Module]:
    """The decoder blocks: the outermost list of as many modules as the model has layers."""
    num_layers = model.config.get_text_config().num_hidden_layers
    for module in model.get_decoder().modules():
        if isinstance(module, nn.ModuleList) and len(module) == num_layers:
            return list(module)
    raise InputError(f"{_name(model)}: no list of {num_layers} decoder blocks; {_REMEDY}")


def _down_projection(model: PreTrainedModel, block: nn.Module) -> str:
    """The name, inside its block, of the feed-forward network's last linear layer.

    It writes the hidden size, and a layer next to it in the same module reads the hidden size and
    writes what it reads: once, or twice where gate and up projection are one matrix (Phi-3).
    Where several layers qualify, it is the widest, and of those as wide as the model the last one.
    """
    names = [part for name, _ in block.named_modules() for part in name.split(".")]
    if any(name in _EXPERTS for name in names):
        raise InputError(f"{_name(model)}: mixture-of-experts models are not supported; {_REMEDY}")
    hidden = model.config.get_text_config().hidden_size
    sizes = {
        name: _features(module) for name, module in _linear_layers(block) if not _is_attention(name)
    }
    candidates = [
        name
        for name, (width, written) in sizes.items()
        if written == hidden
        and any(
            other != name
            and other.rpartition(".")[0] == name.rpartition(".")[0]
            and size in ((hidden, width), (hidden, 2 * width))
            for other, size in sizes.items()
        )
    ]
    if not candidates or not any(map(_is_attention, names)):
        raise InputError(
            f"{_name(model)}: no feed-forward down projection in {type(block).__name__}; {_REMEDY}"
        )
    return max(reversed(candidates), key=lambda name: sizes[name][0])


def _linear_layers(block: nn.Module) -> Iterator[tuple[str, nn.Linear | Conv1D]]:
    """All linear layers but those of Gemma 4's per-layer embeddings."""
    for name, module in block.named_modules():
        if isinstance(module, _LINEAR) and not _leaf(name).startswith("per_layer_"):
            yield name, module


def _is_attention(name: str) -> bool:
    return "attn" in name or "attention" in name


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _features(module: nn.Linear | Conv1D) -> tuple[int, int]:
    """Input and output size; GPT-2's Conv1D stores its weight as (input, output)."""
    inputs, outputs = module.weight.shape
    return (inputs, outputs) if isinstance(module, Conv1D) else (outputs, inputs)


def _name(model: PreTrainedModel) -> str:
    return str(model.name_or_path) or type(model).__name__
