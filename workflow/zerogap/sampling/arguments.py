"""The arguments of :func:`zerogap.sample`: checked, and in the form that the sampler takes."""

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from zerogap.data.extraction import ExtractionRule
from zerogap.engine.decoder import SamplingParams
from zerogap.errors import InputError

_MAX_SEED = 2**63 - 1


def prompt_texts(prompts: Any) -> dict[str, str]:
    """Prompts by id; those in a list are numbered.

    Raises:
        InputError: these are not prompts.
    """
    texts = _by_id(prompts, "prompts", "pass a list of texts or a mapping from ids to texts")
    if not texts:
        raise InputError("prompts: is empty; pass at least one prompt")
    for name, text in texts.items():
        if not isinstance(name, str):
            raise InputError(f"prompts: the id {name!r} must be a text")
        if not isinstance(text, str) or not text:
            raise InputError(f"prompts: prompt '{name}' must be a non-empty text, not {text!r}")
    return texts


def gold_answers(prompts: Mapping[str, str], gold: Any, rule: ExtractionRule) -> list[str | None]:
    """The gold answer of every prompt, in their order; numbers are accepted as well as texts.

    Raises:
        InputError: these are not the prompts' gold answers.
    """
    if gold is None:
        return [None] * len(prompts)
    answers = _by_id(gold, "gold", "pass a list or a mapping with one answer per prompt")
    if unmatched := sorted(set(answers) ^ set(prompts), key=str):
        raise InputError(f"gold: must have one answer per prompt; see '{unmatched[0]}'")
    return [_gold_answer(name, answers[name], rule) for name in prompts]


def sampling_params(*, temperature: Any, top_p: Any, stop: Any, **others: Any) -> SamplingParams:
    """How to draw: the fields of :class:`SamplingParams`; `stop` may be a single text.

    Raises:
        InputError: a value is out of its range, or of another type.
    """
    if not _is_number(temperature) or not 0 <= temperature < math.inf:
        raise InputError(f"temperature: must be finite and at least 0 (got {temperature!r})")
    if not _is_number(top_p) or not 0 < top_p <= 1:
        raise InputError(f"top_p: must be above 0 and at most 1 (got {top_p!r})")
    for name in ("num_samples", "max_new_tokens"):
        if not _is_count(others[name]):
            raise InputError(f"{name}: must be a whole number of at least 1 (got {others[name]!r})")
    batch_size, seed = others["batch_size"], others["seed"]
    if batch_size != "auto" and not _is_count(batch_size):
        raise InputError(
            f'batch_size: must be "auto" or a whole number of at least 1 (got {batch_size!r})'
        )
    if not (seed == 0 or _is_count(seed)) or seed > _MAX_SEED:
        raise InputError(f"seed: must be a whole number from 0 to {_MAX_SEED} (got {seed!r})")
    stops = [stop] if isinstance(stop, str) or not isinstance(stop, Iterable) else list(stop)
    if not all(isinstance(text, str) and text for text in stops):
        raise InputError(f"stop: must be a list of non-empty texts (got {stop!r})")
    return SamplingParams(temperature=float(temperature), top_p=float(top_p), stop=stops, **others)


def _by_id(values: Any, argument: str, remedy: str) -> dict[Any, Any]:
    if isinstance(values, Mapping):
        return dict(values)
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{argument}: is a single {type(values).__name__}; {remedy}")
    return {str(index): value for index, value in enumerate(values)}


def _gold_answer(name: str, answer: Any, rule: ExtractionRule) -> str | None:
    if answer is None:
        return None
    if not isinstance(answer, str) and not _is_number(answer):
        raise InputError(f"gold: the answer to '{name}' must be a text or a number: {answer!r}")
    try:
        return rule.parse_gold(str(answer))
    except InputError as error:
        raise InputError(f"gold: the answer to '{name}': {error}") from error


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
