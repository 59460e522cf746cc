"""The interface of all mitigation strategies.

A strategy is a small object that holds its parameters, such as `RailCap(n=4)`, and has one method,
`prepare(context) -> Intervention`. From what is known before sampling (:class:`Context`) it makes
functions that change the decoding, or one that filters:

- `edit_logits` changes the logits of a decoding step (RailCap, LNE-blocking),
- `wrap_decoder` changes the model that decodes (Shortcut neuron patching),
- `filter_responses` drops responses that another strategy has drawn (TED).

Identity has none of them. docs/extend.md shows how to write a strategy of your own.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from zerogap.errors import InputError
from zerogap.plugins import import_object
from zerogap.strategies.registry import names, target_of

if TYPE_CHECKING:  # building a strategy that only filters loads no torch
    from transformers import PreTrainedTokenizerBase

    from zerogap.engine.decoder import Decoder, Edit
    from zerogap.strategies.filtering import ResponseFilter

    class WrappedDecoder(Decoder, Protocol):
        """A decoder that a strategy has put around the contaminated model's."""

        def release(self) -> None:
            """Undo what wrapping has changed in the model."""


@dataclass(frozen=True)
class Context:
    """What a strategy may know. Only `neurons` was made with the clean model, for Shortcut.

    Attributes:
        trajectories: the greedy trajectory of each prompt as token ids, end token included.
        entropies: the entropy (nats) of every step of each trajectory.
        tokenizer: the contaminated model's tokenizer.
        end_tokens: ids of the tokens that end its responses.
        base_model: folder of the base model, for strategies that need it.
        neurons: the `neurons` Parquet file of this model and benchmark.
    """

    trajectories: list[list[int]]
    entropies: list[list[float]]
    tokenizer: "PreTrainedTokenizerBase | None" = None
    end_tokens: Sequence[int] = ()
    base_model: Path | None = None
    neurons: Path | None = None


@dataclass(frozen=True)
class Intervention:
    """What a strategy does to one model on a list of prompts: it filters or changes the decoding.

    Attributes:
        edit_logits: (logits (R, V), rows) → logits (R, V), before temperature and sampling. It may
            modify the logits in place. The tensors of `rows` are on the CPU, the logits on the
            model's device.
        wrap_decoder: the contaminated model's decoder → the decoder to sample from. If it changes
            the model, `release` undoes that.
        filter_responses: (greedy trajectory, token ids of its responses, their texts) → which of
            the responses count. The token ids come without the end token. A strategy that filters
            must not need its context: the workflow prepares it with an empty one.

    Raises:
        InputError: it filters and changes the decoding as well; filtered responses are those of
            another strategy.
    """

    edit_logits: "Edit | None" = None
    wrap_decoder: "Callable[[Decoder], WrappedDecoder] | None" = None
    filter_responses: "ResponseFilter | None" = None

    def __post_init__(self) -> None:
        if self.filter_responses and (self.edit_logits or self.wrap_decoder):
            raise InputError(
                "strategies: an intervention has filter_responses and edit_logits or wrap_decoder; "
                "make two strategies of it"
            )
        for name, value in vars(self).items():
            if value is not None and not callable(value):
                raise InputError(f"strategies: {name} of an intervention must be a function")

    @contextlib.contextmanager
    def applied_to(self, decoder: "Decoder") -> Iterator["Decoder"]:
        """The decoder to sample from while the block runs; then the model is as it was before."""
        if self.wrap_decoder is None:
            yield decoder
            return
        wrapped = self.wrap_decoder(decoder)
        if not callable(getattr(wrapped, "release", None)):
            raise InputError(
                f"strategies: wrap_decoder must return a decoder with a method release, not a "
                f"{type(wrapped).__name__}"
            )
        try:
            yield wrapped
        finally:
            wrapped.release()


class Strategy(Protocol):
    """A mitigation strategy with its parameters."""

    def prepare(self, context: Context) -> Intervention:
        """Return what the strategy does to the model that `context` describes."""


def strategy_class(name: str) -> Callable[..., Strategy]:
    """Return the class of a strategy.

    Args:
        name: a built-in or installed name, or `package.module:Class`.

    Raises:
        InputError: the name is unknown, or the class cannot be imported or is not a strategy.
    """
    cls: Callable[..., Strategy] = import_object(target_of(name), "strategies: class", names())
    if not isinstance(cls, type) or not callable(getattr(cls, "prepare", None)):
        raise InputError(
            f"strategies: class '{name}' is not a class with a method prepare(context); name a "
            "strategy (docs/extend.md)"
        )
    return cls


def build(entry: Mapping[str, Any]) -> Strategy:
    """Build the strategy of one config entry.

    Args:
        entry: `class` (a built-in name or `package.module:Class`) and its `parameters`, for example
            `{"class": "railcap", "parameters": {"n": 4}}`.

    Raises:
        InputError: the name is unknown, the class cannot be imported, or it rejects the parameters.
    """
    name = entry["class"]
    make = strategy_class(name)
    try:
        strategy: Strategy = make(**entry.get("parameters", {}))
    except (Exception, SystemExit) as error:  # a user's class may raise anything
        raise InputError(f"strategies: class '{name}': {error}") from error
    return strategy


def prepared(strategy: Strategy, context: Context) -> Intervention:
    """What a strategy does to the model that the context describes.

    Raises:
        InputError: its `prepare` returns something else.
    """
    intervention = strategy.prepare(context)
    if not isinstance(intervention, Intervention):
        raise InputError(
            f"strategies: prepare of {type(strategy).__name__} must return an Intervention, not a "
            f"{type(intervention).__name__}"
        )
    return intervention


def filters(strategy: Strategy) -> bool:
    """Whether a strategy filters responses, as far as it can be prepared before a run."""
    try:
        return strategy.prepare(Context([], [])).filter_responses is not None
    except Exception:  # it may need what the run makes
        return False


def response_filter(strategy: Strategy) -> "ResponseFilter":
    """Return the filter of a strategy that filters the responses of another one.

    Raises:
        InputError: the strategy does not filter.
    """
    keep = prepared(strategy, Context([], [])).filter_responses
    if keep is None:
        raise InputError(
            f"strategies: {type(strategy).__name__} does not filter responses; remove filter_of"
        )
    return keep


def check_choice(strategy: str, attribute: str, value: object, choices: tuple[str, str]) -> None:
    """Raise ValueError if an attribute of a strategy is not one of two values."""
    if value not in choices:
        one, other = choices
        raise ValueError(f"{strategy}: {attribute} must be '{one}' or '{other}' (got '{value}')")


def check_whole_number(strategy: str, attribute: str, value: object, *, minimum: int) -> None:
    """Raise ValueError if an attribute is not a whole number of at least the minimum."""
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ValueError(
            f"{strategy}: {attribute} must be a whole number of at least {minimum} (got {value!r})"
        )
