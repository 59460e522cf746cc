"""The one interface of all mitigation strategies.

A strategy is a small object with its parameters, `RailCap(n=4)`, and one method,
`prepare(context) -> Intervention`: from what is known before sampling (:class:`Context`) it makes
up to three functions. `edit` changes a step's logits (RailCap, LNE-blocking), `wrap` changes the
model (Shortcut neuron patching), `keep` filters drawn responses (TED). Identity has none of them.

A config entry names the class and its parameters. Our own go by their short name, somebody
else's by `package.module:Class`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from zerogap.errors import InputError
from zerogap.plugins import imported

if TYPE_CHECKING:  # the workflow reads the table below without loading torch and pandas
    from transformers import PreTrainedTokenizerBase

    from zerogap.engine.decoder import Decoder, Edit
    from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
    from zerogap.strategies.filtering import Keep

CLASSES = {
    "identity": "zerogap.strategies.identity:Identity",
    "railcap": "zerogap.strategies.railcap:RailCap",
    "lne_blocking": "zerogap.strategies.lne_blocking:LNEBlocking",
    "shortcut": "zerogap.strategies.shortcut:Shortcut",
    "ted": "zerogap.strategies.ted:TED",
}


@dataclass(frozen=True)
class Context:
    """What a strategy may know: everything here comes from the contaminated model alone.

    Attributes:
        trajectories: each prompt's greedy trajectory as token ids, the end token included.
        entropies: the entropy (nats) of every step of it.
        tokenizer: the model's.
        donor: folder of the base model, for strategies that borrow from it.
        neurons: the `neurons` Parquet file of this model and benchmark.
    """

    trajectories: list[list[int]]
    entropies: list[list[float]]
    tokenizer: "PreTrainedTokenizerBase | None" = None
    donor: Path | None = None
    neurons: Path | None = None


@dataclass(frozen=True)
class Intervention:
    """What a strategy does to one model on given questions, each part optional.

    Attributes:
        edit: (logits (R, V), rows) → logits (R, V), before temperature and sampling; it may change
            the logits it is given. The rows' tensors lie on the host, the logits on the device.
        wrap: the contaminated model → what is decoded with.
        keep: (greedy trajectory, its responses' token ids and texts) → which responses count; the
            ids are without the end token. It is prepared without trajectories or tokenizer.
    """

    edit: "Edit | None" = None
    wrap: "Callable[[SharedPromptDecoder], Decoder] | None" = None
    keep: "Keep | None" = None


class Strategy(Protocol):
    """A mitigation strategy with its parameters."""

    def prepare(self, context: Context) -> Intervention:
        """What it does to the model that `context` is about."""


def build(entry: dict[str, Any]) -> Strategy:
    """The strategy of one config entry, e.g. `{"class": "railcap", "parameters": {"n": 4}}`.

    Raises:
        InputError: an unknown name, a class that cannot be imported, or wrong parameters.
    """
    name = entry["class"]
    target = CLASSES.get(name, name)
    found = imported(target, "strategies: class", tuple(CLASSES))
    try:
        return found(**entry.get("parameters", {}))
    except (TypeError, ValueError) as error:
        raise InputError(f"strategies: class '{name}': {error}") from error
