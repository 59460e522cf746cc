"""LNE-blocking (Hou et al., 2025): block the arg-max of the first steps, more where entropy is low.

The length-normalised entropy (LNE) of a question's greedy decode gauges its contamination. The
number of blocking operations is `threshold · clip(1 − LNE/β, 0, 1)`, rounded down; in each of that
many first steps the most probable token of the step is excluded. β = 2 and threshold = 7 (GSM8K)
are from secondary sources, the product and its rounding are inferred (docs/choices.md).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from zerogap.engine.decoder import Rows
from zerogap.engine.memory import to_device
from zerogap.strategies.base import Context, Intervention


@dataclass(frozen=True)
class LNEBlocking:
    """LNE-blocking with strengths from the greedy pass.

    Attributes:
        threshold: the most operations a question can get (7 for GSM8K, 4 for code).
        beta: the entropy (nats) at which blocking ceases.
        rounding: "floor" or "nearest".

    Raises:
        ValueError: another rounding.
    """

    threshold: int = 7
    beta: float = 2.0
    rounding: str = "floor"

    def __post_init__(self) -> None:
        if self.rounding not in ("floor", "nearest"):
            raise ValueError(
                f"LNE-blocking: rounding is '{self.rounding}'; it is 'floor' or 'nearest'"
            )

    def prepare(self, context: Context) -> Intervention:
        """The blocks that `context.entropies` ask for."""
        operations = torch.tensor(
            [
                strength(entropy, self.threshold, self.beta, self.rounding)
                for entropy in context.entropies
            ]
        )

        def edit(logits: Tensor, rows: Rows) -> Tensor:
            blocked = (rows.step < operations[rows.question]).nonzero()[:, 0]
            blocked = to_device(blocked, logits.device)
            if len(blocked):
                logits[blocked, logits[blocked].argmax(-1)] = float("-inf")
            return logits

        return Intervention(edit=edit)


def length_normalized_entropy(entropy: list[float]) -> float:
    """LNE in nats: the mean over the greedy steps, the end token's included."""
    return sum(entropy) / len(entropy)


def strength(entropy: list[float], threshold: int, beta: float, rounding: str = "floor") -> int:
    """The number of blocking operations of one question."""
    share = min(1.0, max(0.0, 1 - length_normalized_entropy(entropy) / beta))
    return math.floor(threshold * share + (0.5 if rounding == "nearest" else 0))
