"""The one interface of all mitigation strategies.

A strategy is a factory `(context, **parameters) -> Strategy`: from what is known before sampling
(:class:`Context`) it makes a small object of up to three functions. `edit` changes a step's logits
(RailCap, LNE-blocking), `wrap` changes the model (Shortcut neuron patching), `keep` filters drawn
responses (TED). Identity has none of them.

A config entry names the factory and its parameters. Our own go by their short name, somebody
else's by `package.module:factory`.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerogap.errors import InputError

if TYPE_CHECKING:  # the workflow reads this table without loading torch
    from transformers import PreTrainedTokenizerBase

    from zerogap.decoding.cache import CachedModel
    from zerogap.decoding.sampler import Decoder, Edit

FACTORIES = {
    "identity": "zerogap.decoding.identity:identity",
    "railcap": "zerogap.decoding.railcap:railcap",
    "lne_blocking": "zerogap.decoding.lne_blocking:lne_blocking",
    "shortcut": "zerogap.decoding.shortcut:shortcut",
    "ted": "zerogap.decoding.ted:ted",
}


@dataclass(frozen=True)
class Context:
    """What a strategy may know: everything here comes from the contaminated model alone.

    Attributes:
        trajectories: each prompt's greedy trajectory as token ids, the end token included.
        entropies: the entropy (nats) of every step of it.
        tokenizer: the model's.
        donor: folder of the base model, for strategies that borrow from it.
        neurons: the `neurons` Parquet file of this model and domain.
    """

    trajectories: list[list[int]]
    entropies: list[list[float]]
    tokenizer: "PreTrainedTokenizerBase | None" = None
    donor: Path | None = None
    neurons: Path | None = None


@dataclass(frozen=True)
class Strategy:
    """What a strategy does, each part optional.

    Attributes:
        edit: (logits (R, V), rows) → logits (R, V), before temperature and sampling.
        wrap: the contaminated model → what is decoded with.
        keep: (greedy trajectory, its responses' token ids and texts) → which responses count.
    """

    edit: "Edit | None" = None
    wrap: "Callable[[CachedModel], Decoder] | None" = None
    keep: Callable[[list[int], list[list[int]], list[str]], list[bool]] | None = None


def build(entry: dict[str, Any], context: Context) -> Strategy:
    """The strategy of one config entry, e.g. `{"class": "railcap", "n": 4}`.

    Raises:
        InputError: an unknown name, a factory that cannot be imported, or wrong parameters.
    """
    name = entry["class"]
    target = FACTORIES.get(name, name)
    module, _, attribute = target.partition(":")
    if not attribute:
        raise InputError(
            f"strategies: class '{name}' is neither one of {', '.join(FACTORIES)} "
            "nor of the form package.module:factory"
        )
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"strategies: class '{name}' cannot be imported: {error}") from error
    try:
        return factory(context, **entry.get("parameters", {}))
    except (TypeError, ValueError) as error:
        raise InputError(f"strategies: class '{name}': {error}") from error
