"""The arguments of `zerogap.sample`: what may be passed, and what it means.

Every error is one line that begins with the argument's name.
"""

import contextlib
import inspect
import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zerogap.data.extraction import ExtractionRule, extraction_rule
from zerogap.engine import generation_config, loading, memory
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.stop_strings import check_stops
from zerogap.errors import InputError
from zerogap.families.tokenizers import tokenizer_problem
from zerogap.io import atomic
from zerogap.sampling.responses import JobInputs, check_lengths, encoded
from zerogap.strategies.base import Strategy

_COUNTS = range(1, 2**31)  # sample ids are stored in 32 bits
_SEEDS = range(2**63)
_MIN_TEMPERATURE = 1e-6  # below, quotients of logits overflow
_BYTES_PER_TOKEN = 32  # of a sample: its uniform number and copies of it, and its token
_UNORDERED_OR_SINGLE = (str, bytes, bytearray, Set, Mapping, pd.DataFrame)


def _whole_number(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def _number(value: Any) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _batch_size(value: Any) -> int | str:
    return value if isinstance(value, str) and value == "auto" else _whole_number(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


_A_COUNT = f"a whole number from 1 to {_COUNTS[-1]}"
# Argument → what makes a plain value of it or raises, whether that is allowed, and which ones are.
_PARSERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], bool], str]] = {
    "temperature": (
        _number,
        lambda value: value == 0 or value >= _MIN_TEMPERATURE,
        f"0, or finite and at least {_MIN_TEMPERATURE}",
    ),
    "top_p": (_number, lambda value: 0 < value <= 1, "above 0 and at most 1"),
    "num_samples": (_whole_number, _COUNTS.__contains__, _A_COUNT),
    "max_new_tokens": (_whole_number, _COUNTS.__contains__, _A_COUNT),
    "batch_size": (
        _batch_size,
        lambda size: size == "auto" or size in _COUNTS,
        f'"auto" or {_A_COUNT}',
    ),
    "seed": (_whole_number, _SEEDS.__contains__, f"a whole number from 0 to {_SEEDS[-1]}"),
    "batch_invariant": (_flag, lambda _: True, "True or False"),
}


def sampling_params(*, stop: Any, **values: Any) -> SamplingParams:
    """How to draw: the fields of :class:`SamplingParams`; `stop` may be a single text.

    Raises:
        InputError: a value is out of its range or of another type, or the responses to one prompt
            do not fit into memory.
    """
    parsed = {}
    for name, (parse, is_allowed, allowed) in _PARSERS.items():
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            parsed[name] = parse(values[name])
        if name not in parsed or not is_allowed(parsed[name]):
            raise InputError(f"{name}: must be {allowed} (got {_shown(values[name])})")
    num_samples, max_new_tokens = parsed["num_samples"], parsed["max_new_tokens"]
    free = memory.free_bytes(torch.device("cpu"))
    if num_samples * max_new_tokens * _BYTES_PER_TOKEN > free:
        raise InputError(
            f"num_samples: {num_samples} responses of {max_new_tokens} tokens do not fit into the "
            f"{free / 1e9:.0f} GB of free memory; use fewer samples or fewer new tokens"
        )
    stops = [stop] if isinstance(stop, str) else _listed(stop, "stop", "pass a list of texts")
    check_stops(stops)
    return SamplingParams(**parsed, stop=stops)


def check_model(model: Any, tokenizer: Any) -> None:
    """Raise InputError if these are not a causal language model with weights, and a tokenizer."""
    generates = isinstance(model, torch.nn.Module) and getattr(model, "can_generate", bool)()
    if not generates or model.config.is_encoder_decoder:
        raise InputError(
            f"model: must be a causal language model of transformers, not {_shown(model)}; load it "
            "with AutoModelForCausalLM.from_pretrained"
        )
    if any(parameter.is_meta for parameter in model.parameters()):
        raise InputError("model: has parameters without values (on the meta device); load them")
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise InputError(
            f"tokenizer: must be a tokenizer of transformers, not {_shown(tokenizer)}; load it "
            "with AutoTokenizer.from_pretrained"
        )
    if problem := tokenizer_problem(tokenizer):
        raise InputError(f"tokenizer: it {problem}")


def checked_strategy(strategy: Any) -> Strategy:
    """The strategy; InputError if it is none, or is a class."""
    prepare = getattr(strategy, "prepare", None)
    is_strategy = callable(prepare) and not isinstance(strategy, type)
    with contextlib.suppress(ValueError):  # a signature that Python does not know
        try:
            inspect.signature(cast(Any, prepare)).bind(None)
        except TypeError:
            is_strategy = False
    if not is_strategy:
        raise InputError(
            "strategy: must be a strategy with a method prepare(context), such as RailCap(n=4), "
            f"not {_shown(strategy)}"
        )
    return cast(Strategy, strategy)


def paths(
    base_model: Any, neurons: Any, output: Any
) -> tuple[Path | None, Path | None, Path | None]:
    """The base model's folder, the neurons file and the file to write.

    Raises:
        InputError: one is not a path, does not exist, is not a model or cannot be written.
    """
    folder = _path("base_model", base_model, Path.is_dir)
    file = _path("neurons", neurons, Path.is_file)
    target = _path("output", output)
    if folder is not None:
        loading.check_folder(folder)
    if target is not None:
        if target.suffix != ".parquet":
            raise InputError(f"output: must end in .parquet (got {str(target)[:200]})")
        atomic.output_file(target, [path for path in (folder, file) if path])
    return folder, file, target


def _path(
    argument: str, value: Any, is_kind: Callable[[Path], bool] = lambda _: True
) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not str(value) or "\0" in str(value):
        raise InputError(f"{argument}: must be the path of a file or folder (got {_shown(value)})")
    with contextlib.suppress(OSError):  # a name that is too long
        if is_kind(Path(value)):
            return Path(value)
    raise InputError(f"{argument}: {str(value)[:200]} does not exist; correct the path")


def job_inputs(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Any,
    gold: Any,
    extraction: Any,
    sampling: SamplingParams,
) -> JobInputs:
    """What is asked: the prompts by id, or numbered, and their gold answers.

    Raises:
        InputError: these are not prompts, there is no such extraction rule, the gold answers belong
            to other prompts or are none, the tokenizer is another model's or has no end token, or a
            prompt leaves no room for new tokens in the model's context.
    """
    texts = _by_id(prompts, "prompts", "pass a list of texts or a mapping from ids to texts")
    if not texts:
        raise InputError("prompts: is empty; pass at least one prompt")
    for name, text in texts.items():
        if not isinstance(name, str):
            raise InputError(f"prompts: the id {name!r} must be a text")
        if not isinstance(text, str) or not text:
            raise InputError(f"prompts: prompt '{name}' must be a non-empty text, not {text!r}")
        try:
            f"{name}{text}".encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"prompts: prompt {name!r} has half a surrogate pair (\\ud800 …); remove it"
            ) from error
    if not isinstance(extraction, str):
        raise InputError(
            "extraction: must be the name of a rule or package.module:function, not "
            f"{_shown(extraction)}"
        )
    rule = extraction_rule(extraction)
    answers = dict.fromkeys(texts)
    if gold is not None:
        answers = _by_id(gold, "gold", "pass a list or a mapping with one answer per prompt")
        if unmatched := sorted(set(answers) ^ set(texts), key=str):
            raise InputError(f"gold: must have one answer per prompt; see '{unmatched[0]}'")
    golds = [_gold_answer(name, answers[name], rule) for name in texts]
    questions = pd.DataFrame({"question_id": list(texts), "gold": pd.Series(golds, dtype=object)})
    token_ids = encoded(tokenizer, list(texts.values()))
    tokens = [Prompt(name, ids) for name, ids in zip(texts, token_ids, strict=True)]
    num_tokens = model.get_input_embeddings().weight.shape[0]
    for name, ids in zip(texts, token_ids, strict=True):
        if not ids:
            raise InputError(f"prompts: the tokenizer turns '{name}' into no tokens")
        if max(ids) >= num_tokens:
            raise InputError(
                f"tokenizer: token {max(ids)} of prompt '{name}' is not among the model's "
                f"{num_tokens}; pass the model's own tokenizer"
            )
    check_lengths(tokens, loading.context_length(model.config), sampling.max_new_tokens)
    end_tokens = generation_config.end_tokens(tokenizer, model.generation_config)
    return JobInputs(tokenizer, questions, tokens, end_tokens, rule)


def _gold_answer(name: str, answer: Any, rule: ExtractionRule) -> str | None:
    if answer is None:
        return None
    try:
        if not isinstance(answer, str):
            _number(answer)
        return rule.parse_gold(str(answer))
    except InputError as error:
        raise InputError(f"gold: the answer to '{name}': {error}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"gold: the answer to '{name}' must be a text or a finite number (got {_shown(answer)})"
        ) from error


def _by_id(values: Any, argument: str, remedy: str) -> dict[Any, Any]:
    if isinstance(values, pd.Series):
        if not values.index.is_unique:
            raise InputError(f"{argument}: its index has duplicates; reset or rename them")
        return dict(zip(map(str, values.index), values, strict=True))
    if isinstance(values, Mapping):
        return dict(values)
    return {str(index): value for index, value in enumerate(_listed(values, argument, remedy))}


def _listed(values: Any, argument: str, remedy: str) -> list[Any]:
    """The values of anything that has them in an order."""
    if isinstance(values, Iterable) and not isinstance(values, _UNORDERED_OR_SINGLE):
        with contextlib.suppress(TypeError):  # an array of no dimension
            return list(values)
    raise InputError(f"{argument}: is a {type(values).__name__}; {remedy}")


def _shown(value: Any) -> str:
    try:
        return repr(value).partition("\n")[0][:80]
    except ValueError:  # a number of thousands of digits
        return f"a huge {type(value).__name__}"
