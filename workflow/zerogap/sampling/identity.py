"""What decides the draws of a job: an interrupted job is only resumed by one that shares it."""

import importlib.metadata
import inspect
import json
import sys
from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import zerogap
from zerogap.data.extraction import ExtractionRule
from zerogap.errors import InputError
from zerogap.io import meaning
from zerogap.io.digests import bytes_digest, file_digest, folder_digest, value_digest
from zerogap.sampling.responses import JobInputs
from zerogap.strategies.base import Context
from zerogap.strategies.registry import BUILT_IN

_DRAWING = ("zerogap.sampling.responses", "zerogap.engine.sampler", "zerogap.engine.loading")
_PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


def drawing_code() -> str:
    """A digest of what our code that draws means."""
    return meaning.digest(*_DRAWING)


def versions() -> dict[str, str]:
    """The versions of the packages that a draw depends on, and of our code that draws."""
    packages = {package: importlib.metadata.version(package) for package in _PACKAGES}
    # A checkout that is only on the path, as in the environments of `--sdm conda`, has no metadata.
    return {"zerogap": zerogap.__version__} | packages | {"sampling": drawing_code()}


def job_settings(
    parameters: Mapping[str, Any], inputs: JobInputs, context: Context, *models: Path
) -> dict[str, Any]:
    """Everything a job's results depend on: a job with other settings does not resume it.

    Args:
        parameters: the values that its tables record.
        inputs: the prompts and gold answers.
        context: what the strategy may know.
        models: model folders.
    """
    folders = [*models, context.base_model] if context.base_model else models
    return {
        **parameters,
        "versions": versions(),
        "code": _loaded_code(parameters),
        "models": [folder_digest(folder) for folder in folders],
        "prompts": inputs.digest(),
        "end_tokens": inputs.end_tokens,
        "greedy": value_digest([context.trajectories, context.entropies]),
        "neurons": context.neurons and file_digest(context.neurons),
    }


def _loaded_code(parameters: Mapping[str, Any]) -> list[str]:
    """Digests of the modules of the strategy and of a user's own extraction rule."""
    names = [parameters.get("strategy_parameters", {}).get("class"), parameters.get("extraction")]
    targets = [BUILT_IN[name].target if name in BUILT_IN else str(name) for name in names]
    return [meaning.digest(target.partition(":")[0]) for target in targets if ":" in target]


def model_identity(model: PreTrainedModel) -> dict[str, Any]:
    """Configuration and a digest of every weight and buffer of a model in memory."""
    tensors = [*model.named_parameters(), *model.named_buffers()]
    with ThreadPoolExecutor() as pool:
        digests = list(pool.map(_tensor_digest, (tensor for _, tensor in tensors)))
    names = [(name, str(t.dtype), list(t.shape)) for name, t in tensors]
    return {
        "configuration": model.config.to_dict(),
        "generation": model.generation_config and model.generation_config.to_dict(),
        "weights": value_digest(list(zip(names, digests, strict=True))),
        "device": str(model.device),
        "adapters": _adapters(model),
    }


def _adapters(model: PreTrainedModel) -> list[Any]:
    """Which adapters of peft are active in which layers, and how strongly."""
    peft = sys.modules.get("peft.tuners.tuners_utils")
    if peft is None:  # nothing has loaded an adapter
        return []
    return [
        [name, layer.active_adapters, layer.disable_adapters, dict(getattr(layer, "scaling", {}))]
        for name, layer in model.named_modules()
        if isinstance(layer, peft.BaseTunerLayer)
    ]


def tokenizer_identity(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Digests of a tokenizer's rules, and its special tokens."""
    rules = tokenizer.backend_tokenizer.to_str() if tokenizer.is_fast else tokenizer.get_vocab()
    return {
        "rules": value_digest(rules),
        "special_tokens": {
            name: str(token) for name, token in tokenizer.special_tokens_map.items()
        },
    }


def strategy_identity(strategy: object) -> Any:
    """The class, its source and the parameters of a strategy, as JSON values.

    Raises:
        InputError: a parameter is an object without a value that could be written down, such as a
            function.
    """
    try:
        return [json.dumps(strategy, default=_described), source_digest(type(strategy))]
    except TypeError as error:
        raise InputError(
            f"strategy {type(strategy).__name__}: sampling into a file could not be resumed, "
            f"because {error}; make it a dataclass of plain values"
        ) from error


def extraction_identity(rule: ExtractionRule) -> list[str | None]:
    """The name of an extraction rule and, of a user's own, its source."""
    return [rule.name, rule.function and source_digest(rule.function)]


def source_digest(code: object) -> str | None:
    """Digest of the source of a user's class or function; None if it has none (an interpreter).

    It is that of the whole module, whose other functions it may call. A script, which may change
    for other reasons, counts with the class or function alone.
    """
    name = getattr(code, "__module__", "")
    if name.partition(".")[0] == "zerogap":
        return meaning.digest(name)
    source = code if name == "__main__" else sys.modules.get(name)
    try:
        return value_digest(inspect.getsource(source))  # type: ignore[arg-type]
    except (OSError, TypeError):
        return None


def _described(value: object) -> Any:
    """A value that JSON does not have: arrays as digests, objects as class and attributes."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Set):
        return sorted(json.dumps(item, default=_described) for item in value)
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    if isinstance(value, Tensor):
        return [str(value.dtype), list(value.shape), _tensor_digest(value)]
    if type(value).__module__ == "builtins" or not hasattr(value, "__dict__"):
        raise TypeError(f"{value!r} is not a plain value")
    return [f"{type(value).__module__}.{type(value).__qualname__}", vars(value)]


def _tensor_digest(tensor: Tensor) -> str:
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return bytes_digest(content.numpy().data)
