"""What a request tells vLLM about its strategy, checked.

The values of `extra_args` are objects. `vllm serve` accepts no objects in `vllm_xargs`, so an
object may also be given as JSON text.
"""

import json
import logging
import math
from typing import Any, NamedTuple

from zerogap.strategies.lne_blocking import LNEBlocking
from zerogap.strategies.railcap import RailCap

RAILCAP = ("n", "suppression", "successor")  # the attributes of the strategies
LNE_BLOCKING = ("threshold", "beta", "rounding")

logger = logging.getLogger(__name__)


class RailCapArguments(NamedTuple):
    """RailCap along one request's greedy trajectory: its token ids, end token included."""

    trajectory: list[int]
    railcap: RailCap

    @classmethod
    def parse(cls, sampling_params: Any) -> "RailCapArguments | None":
        """Return a request's arguments, or None if it does not ask for RailCap.

        Raises:
            ValueError: they are not valid.
        """
        values = _values(sampling_params, "railcap", ("trajectory", *RAILCAP))
        if values is None:
            return None
        trajectory = values.pop("trajectory", None)
        is_list = isinstance(trajectory, list | tuple)
        if not is_list or not all(type(token) is int and token >= 0 for token in trajectory):
            raise ValueError(
                "railcap: trajectory must be a list of token ids, whole numbers of at least 0"
            )
        if not trajectory:
            raise ValueError("railcap: trajectory is empty; give the greedy response's token ids")
        return cls(list(trajectory), RailCap(**values))

    def within(self, model_config: Any) -> list[int]:
        """The trajectory up to where the model cannot follow it, with a warning if that is early.

        vLLM's `model_config` has the context length and the size of the vocabulary.
        """
        context, vocabulary = model_config.max_model_len, model_config.get_vocab_size()
        if len(self.trajectory) > context:
            logger.warning(
                f"railcap: a trajectory of {len(self.trajectory)} tokens is longer than the "
                f"context of {context}; the rest is ignored"
            )
        tokens = self.trajectory[:context]
        unknown = next((k for k, token in enumerate(tokens) if token >= vocabulary), None)
        if unknown is not None:
            logger.warning(
                f"railcap: token {tokens[unknown]} of a trajectory is not in the vocabulary of "
                f"{vocabulary} tokens; the trajectory is ignored from there. It is another model's"
            )
        return tokens[:unknown]


def num_lne_blocks(sampling_params: Any) -> int | None:
    """In how many first steps LNE-blocking blocks; None if the request does not ask for it.

    Raises:
        ValueError: the request's arguments are not valid.
    """
    values = _values(sampling_params, "lne_blocking", ("entropy", *LNE_BLOCKING))
    if values is None:
        return None
    entropy = values.pop("entropy", None)
    is_number = isinstance(entropy, int | float) and not isinstance(entropy, bool)
    if not is_number or not 0 <= entropy < math.inf:
        raise ValueError(
            "lne_blocking: entropy must be the mean entropy (nats) of the greedy steps, a "
            f"number of at least 0 (got {entropy!r})"
        )
    return LNEBlocking(**values).num_blocking_operations([entropy])


def _values(sampling_params: Any, key: str, names: tuple[str, ...]) -> dict[str, Any] | None:
    values = (sampling_params.extra_args or {}).get(key)
    if values is None:
        return None
    if isinstance(values, str):
        try:
            values = json.loads(values)
        except json.JSONDecodeError as error:
            raise ValueError(f"{key}: is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise ValueError(f"{key}: must be an object with {', '.join(names)} (got {values!r:.40})")
    if unknown := sorted(set(values) - set(names)):
        raise ValueError(f"{key}: unknown {unknown[0]!r}; it takes {', '.join(names)}")
    return dict(values)
