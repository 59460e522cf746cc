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

`zerogap.strategies.rail` finds the rail tokens of all rows of a batch at once.
"""

import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from transformers import LogitsProcessor

from zerogap.engine.decoder import Rows, to_device
from zerogap.strategies.base import Context, Intervention, check_choice, check_whole_number
from zerogap.strategies.rail import (
    Successor,
    find_rail_tokens,
    last_ngrams,
    pad_trajectories,
    rail_tokens,
)

Suppression = Literal["cap", "ban"]


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
    suppression: Suppression = "cap"
    successor: Successor = "last"

    def __post_init__(self) -> None:
        check_whole_number("RailCap", "n", self.n, minimum=1)
        check_choice("RailCap", "suppression", self.suppression, ("cap", "ban"))
        check_choice("RailCap", "successor", self.successor, ("last", "first"))

    def prepare(self, context: Context) -> Intervention:
        """Return the suppression along `context.trajectories`."""
        trajectories = pad_trajectories(context.trajectories, self.n)

        def edit_logits(logits: Tensor, rows: Rows) -> Tensor:
            rail = rail_tokens(trajectories, rows, self.n, self.successor)
            return suppress(logits, rail, self.suppression)

        return Intervention(edit_logits=edit_logits)


class RailCapLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """RailCap for `model.generate(logits_processor=[...], do_sample=True)`; see docs/railcap.md.

    Args:
        trajectories: the greedy trajectory (generated tokens only) of each prompt of the batch.
            With `num_return_sequences` pass one per prompt or one per returned sequence.
        prompt_length: number of prompt tokens in `input_ids`, left padding included.
        n: the n-gram threshold.
        suppression: "cap" or "ban".
        successor: "last" or "first".

    Raises:
        ValueError: there are no trajectories, or a parameter is not one of its values.
    """

    def __init__(
        self,
        trajectories: list[list[int]],
        prompt_length: int,
        n: int = 4,
        suppression: Suppression = "cap",
        successor: Successor = "last",
    ) -> None:
        self._railcap = RailCap(n, suppression, successor)
        if not trajectories:
            raise ValueError("RailCap: no trajectories; pass one per prompt or one per row")
        self._trajectories = pad_trajectories(trajectories, n)
        self._prompt_length = prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return a copy of `scores` (R, V) with the rail token of each row suppressed.

        Args:
            input_ids: (R, L) prompt and generated tokens.
            scores: (R, V) logits of the next token, before the temperature.

        Raises:
            ValueError: the number of rows is not a multiple of the number of trajectories.
        """
        generated = input_ids[:, self._prompt_length :].cpu()
        num_rows, num_trajectories = len(generated), len(self._trajectories)
        if num_rows % num_trajectories:
            raise ValueError(
                f"RailCap: {num_trajectories} trajectories for a batch of {num_rows} rows; "
                "pass one per prompt or one per row"
            )
        # `generate` keeps the sequences of a prompt next to each other.
        trajectories = self._trajectories.repeat_interleave(num_rows // num_trajectories, dim=0)
        steps = torch.full((num_rows,), generated.shape[1])
        ngrams = last_ngrams(generated, steps, self._railcap.n)
        rail = find_rail_tokens(trajectories, ngrams, self._railcap.successor)
        return suppress(scores.clone(), rail, self._railcap.suppression, warns=True)


def suppress(
    logits: Tensor, rail: Tensor, suppression: Suppression, *, warns: bool = False
) -> Tensor:
    """Cap or ban the rail token of every row that has one; changes `logits` in place.

    Args:
        logits: (R, V) on the model's device.
        rail: (R,) on the CPU; -1 leaves a row as it is. In most steps only a few rows are on
            the rail, and only those are read from `logits`.
        suppression: "cap" or "ban".
        warns: see :func:`suppress_tokens`.
    """
    row = (rail >= 0).nonzero()[:, 0]
    if not len(row):
        return logits
    row, token = to_device(row, logits.device), to_device(rail[row], logits.device)
    return suppress_tokens(logits, row, token, suppression, warns=warns)


def suppress_tokens(
    logits: Tensor, row: Tensor, token: Tensor, suppression: Suppression, *, warns: bool = False
) -> Tensor:
    """Cap or ban one token of each of some rows; changes `logits` in place.

    A token keeps its logit if all others are −inf.

    Args:
        logits: (R, V).
        row: (K,) the rows, on the same device.
        token: (K,) their rail tokens, on the same device.
        suppression: "cap" or "ban".
        warns: whether to say so if a token keeps its logit; that waits for the device. Only where
            other processors mask tokens can it happen.
    """
    # The largest logit among the other tokens is v⁽²⁾ if the rail token leads, and at least the
    # rail token's own logit if it does not: in both cases the minimum is the paper's.
    others = logits[row].scatter_(1, token[:, None], float("-inf")).amax(dim=-1)
    own = logits[row, token]
    suppressed = torch.minimum(own, others) if suppression == "cap" else float("-inf")
    is_alone = others.isneginf()
    logits[row, token] = torch.where(is_alone, own, suppressed)
    if warns and is_alone.any():
        warnings.warn(
            "RailCap: every token but the rail token is masked, so the rail token keeps its logit",
            stacklevel=2,
        )
    return logits
