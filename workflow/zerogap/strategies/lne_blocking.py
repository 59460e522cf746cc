"""LNE-blocking (Hou et al., 2025): exclude the most probable token of the first steps.

The length-normalised entropy (LNE) of a question's greedy trajectory estimates how contaminated
the question is: the lower the entropy, the more of the response is memorised. The estimate sets
the number of blocking operations,

    ⌊threshold · clip(1 − LNE / beta, 0, 1)⌋,

and in each of that many first steps the most probable token is excluded. The rest is sampled.

Source: `threshold` = 7 for GSM8K and `beta` = 2 come from secondary sources; the product and its
rounding are inferred from them (docs/choices.md).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from zerogap.strategies.base import Context, Intervention, check_choice, check_whole_number

if TYPE_CHECKING:  # a configuration is checked without torch
    from torch import Tensor

    from zerogap.engine.decoder import Rows


@dataclass(frozen=True)
class LNEBlocking:
    """LNE-blocking with the strength of each question set from its greedy trajectory.

    Attributes:
        threshold: the most blocking operations that a question can get (7 for GSM8K).
        beta: the entropy (nats) from which on nothing is blocked.
        rounding: "floor" or "nearest".

    Raises:
        ValueError: an attribute is not one of its values.
    """

    threshold: int = 7
    beta: float = 2.0
    rounding: Literal["floor", "nearest"] = "floor"

    def __post_init__(self) -> None:
        check_whole_number("LNE-blocking", "threshold", self.threshold, minimum=0)
        if isinstance(self.beta, bool) or not 0 < self.beta < math.inf:
            raise ValueError(f"LNE-blocking: beta must be a positive number (got {self.beta!r})")
        check_choice("LNE-blocking", "rounding", self.rounding, ("floor", "nearest"))

    def prepare(self, context: Context) -> Intervention:
        """Return the blocking that `context.entropies` determine."""
        import torch

        from zerogap.engine.decoder import to_device

        num_blocks = torch.tensor(
            [self.num_blocking_operations(entropy) for entropy in context.entropies]
        )

        def edit_logits(logits: "Tensor", rows: "Rows") -> "Tensor":
            blocked = (rows.step < num_blocks[rows.question]).nonzero()[:, 0]
            if len(blocked):
                blocked = to_device(blocked, logits.device)
                logits[blocked, logits[blocked].argmax(-1)] = float("-inf")
            return logits

        return Intervention(edit_logits=edit_logits)

    def num_blocking_operations(self, entropy: list[float]) -> int:
        """Return how many first steps of one question are blocked.

        Args:
            entropy: the entropy (nats) of every step of the greedy trajectory.
        """
        contamination = min(1.0, max(0.0, 1 - length_normalised_entropy(entropy) / self.beta))
        strength = self.threshold * contamination
        return math.floor(strength + 0.5 if self.rounding == "nearest" else strength)


def length_normalised_entropy(entropy: list[float]) -> float:
    """Return the mean entropy (nats) over the greedy steps, the end token's step included."""
    return sum(entropy) / len(entropy)
