"""What decides the draws of a job: an interrupted job is only resumed by one that shares it."""

import contextlib
import functools
import importlib.metadata
import inspect
import itertools
import json
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import zerogap
from zerogap.data.extraction import ExtractionRule
from zerogap.engine import loading
from zerogap.engine.decoder import SamplingParams
from zerogap.engine.hf_decoder import logits_of
from zerogap.errors import InputError
from zerogap.io import meaning
from zerogap.io.digests import bytes_digest, file_digest, folder_digest, value_digest
from zerogap.sampling.responses import JobInputs
from zerogap.strategies.base import Context

_DRAWING = ("zerogap.sampling.responses", "zerogap.engine.sampler", "zerogap.engine.loading")
_PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
_LIBRARIES = ("torch", "transformers", "accelerate", "peft")  # whose hooks keep no state
_PROBED_TOKENS = 32


def drawing_code() -> str:
    """A digest of what our code that draws means."""
    return meaning.digest(*_DRAWING)


def versions() -> dict[str, str]:
    """The versions of the packages that a draw depends on, and of our code that draws."""
    packages = {package: importlib.metadata.version(package) for package in _PACKAGES}
    # A checkout that is only on the path, as in the environments of `--sdm conda`, has no metadata.
    return {"zerogap": zerogap.__version__} | packages | {"sampling": drawing_code()}


def task_identity(inputs: JobInputs) -> dict[str, Any]:
    """What a model is asked, and how its responses are graded."""
    return {
        "prompts": inputs.digest(),
        "end_tokens": inputs.end_tokens,
        "extraction": extraction_identity(inputs.rule),
    }


def job_settings(inputs: JobInputs, context: Context, **others: Any) -> dict[str, Any]:
    """Everything a job's results depend on: a job with other settings does not resume it.

    `others` are the model, the strategy, and the values that the tables record.
    """
    return {
        **others,
        **task_identity(inputs),
        "versions": versions(),
        "greedy": value_digest([context.trajectories, context.entropies]),
        "base_model": context.base_model and folder_digest(context.base_model),
        "neurons": context.neurons and file_digest(context.neurons),
    }


def call_identity(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    strategy: object,
    sampling: SamplingParams,
) -> dict[str, Any]:
    """What decides the draws of models in memory, besides what :func:`job_settings` adds.

    Raises:
        InputError: see :func:`model_identity` and :func:`strategy_identity`.
    """
    rules = tokenizer.backend_tokenizer.to_str() if tokenizer.is_fast else tokenizer.get_vocab()
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    return {
        "strategy": strategy_identity(strategy),
        "sampling": {**vars(sampling), "batch_size": None},
        "tokenizer": {"rules": value_digest(rules), "special_tokens": special},
        "model": model_identity(model),
    }


def model_identity(model: PreTrainedModel) -> dict[str, Any]:
    """What a model in memory is and does: its configuration, tensors and logits.

    The logits are those of a few fixed tokens, so that whatever changes them counts: adapters and
    their scaling, a patched class, an attribute of a module. They are computed by one thread, since
    rounding may depend on their number.

    Raises:
        InputError: a hook or a method of the user's may keep state that no repeated call has.
    """
    _check_unchanged_methods(model)
    tensors = [*model.named_parameters(), *model.named_buffers()]
    with ThreadPoolExecutor() as pool:
        digests = list(pool.map(_tensor_digest, (tensor for _, tensor in tensors)))
    names = [(name, str(t.dtype), list(t.shape)) for name, t in tensors]
    return {
        "configuration": model.config.to_dict(),
        "weights": value_digest(list(zip(names, digests, strict=True))),
        "device": model.device.type,
        "behaviour": _tensor_digest(_probed_logits(model)),
    }


@contextlib.contextmanager
def evaluation_mode(model: PreTrainedModel) -> Iterator[None]:
    """Put a model into evaluation mode while the block runs; each part then has its own mode."""
    is_training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in is_training.items():
            module.training = mode


@torch.inference_mode()
def _probed_logits(model: PreTrainedModel) -> Tensor:
    """Logits (1, T, V) of tokens from the first half of the vocabulary, in evaluation mode."""
    vocabulary = model.config.get_text_config().vocab_size
    length = min(_PROBED_TOKENS, loading.context_length(model.config))
    tokens = torch.linspace(0, vocabulary // 2, length, device=model.device).long()
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with evaluation_mode(model):
            return logits_of(model, tokens[None], last=length)
    finally:
        torch.set_num_threads(num_threads)


def _check_unchanged_methods(model: PreTrainedModel) -> None:
    for name, module in model.named_modules():
        replaced = [
            value
            for key, value in vars(module).items()
            if callable(value) and callable(getattr(type(module), key, None))
        ]
        hooks = module._forward_pre_hooks.values(), module._forward_hooks.values()
        for function in itertools.chain(replaced, *hooks):
            if _package(function) not in _LIBRARIES:
                owner, change = name or "the model", getattr(function, "__qualname__", function)
                raise InputError(
                    f"output: sampling into a file could not be resumed, because {owner} has a "
                    f"hook or a replaced method ({change}); remove it, or omit output"
                )


def _package(function: Any) -> str:
    """The top-level package that the code of a function, partial or callable object is in."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__func__", function)
    module = getattr(code, "__globals__", {}).get("__name__") or type(code).__module__
    return str(module).partition(".")[0]


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
    """Digest of the code of a user's class or function; None if it has none (an interpreter).

    It is that of its module and of what that imports (:mod:`zerogap.io.meaning`). A script, which
    may change for other reasons, counts with the class or function alone.
    """
    module = getattr(code, "__module__", None) or "builtins"
    if module != "__main__":
        return meaning.digest(module)
    try:
        return value_digest(inspect.getsource(code))  # type: ignore[arg-type]
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
