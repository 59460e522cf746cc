"""RailCap (paper §4, Algorithm 1): step-wise supervision against the greedy trajectory.

A contaminated model's samples fall back onto its greedy trajectory g = (g_1, …, g_T). RailCap
watches for that at every step. Whenever the last n generated tokens equal an n-gram window of the
question's own trajectory, the sample is on the rail, and the token that follows the window there,
the rail token, is capped at the runner-up's logit:

    H = {(g_k, …, g_{k+n-1}) ↦ g_{k+n} : 1 ≤ k ≤ T − n}                       (line 2)
    if (o_{t-n}, …, o_{t-1}) ∈ H:   x = H[(o_{t-n}, …, o_{t-1})]              (lines 7, 8)
                                    ℓ[x] ← min(ℓ[x], v⁽²⁾)                     (line 9)

where o are the generated tokens, ℓ the logits of step t and v⁽²⁾ their second-largest entry.
Three consequences of the algorithm are easy to miss. If a window occurs more than once, its last
occurrence counts, since later entries of H overwrite earlier ones; the paper does not say so, and
`successor="first"` is the other reading. The end token is part of the trajectory, so ending like
the trajectory is capped too. Only generated tokens are compared, never the prompt.

One case is not the paper's: if another logits processor has masked all other tokens (v⁽²⁾ = −∞),
the rail token keeps its logit, also under a ban, since no token could be drawn otherwise.

`zerogap.strategies.rail` finds and suppresses the rail tokens of all rows of a batch at once.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zerogap.strategies.base import Context, Intervention, check_choice, check_whole_number

if TYPE_CHECKING:  # a configuration is checked without torch
    from torch import Tensor

    from zerogap.engine.decoder import Rows
    from zerogap.strategies.rail import Successor, Suppression


@dataclass(frozen=True)
class RailCap:
    """RailCap along every question's greedy trajectory.

    Attributes:
        n: the n-gram threshold: how many tokens in a row must match the trajectory.
        suppression: "cap" the rail token at the runner-up's logit, or "ban" it (paper's ablation,
            Table 4).
        successor: which occurrence of a repeated window counts, the "last" or the "first".

    Raises:
        ValueError: `n` is not a whole number above 0, or another attribute is not one of its
            values.
    """

    n: int = 4
    suppression: "Suppression" = "cap"
    successor: "Successor" = "last"

    def __post_init__(self) -> None:
        check_whole_number("RailCap", "n", self.n, minimum=1)
        check_choice("RailCap", "suppression", self.suppression, ("cap", "ban"))
        check_choice("RailCap", "successor", self.successor, ("last", "first"))

    def prepare(self, context: Context) -> Intervention:
        """Return the suppression along `context.trajectories`."""
        from zerogap.strategies.rail import pad_trajectories, rail_tokens, suppress

        trajectories = pad_trajectories(context.trajectories, self.n)

        def edit_logits(logits: "Tensor", rows: "Rows") -> "Tensor":
            rail = rail_tokens(trajectories, rows, self.n, self.successor)
            return suppress(logits, rail, self.suppression)

        return Intervention(edit_logits=edit_logits)
