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
occurrence counts, since later entries of H overwrite earlier ones. The end token is part of the
trajectory, so ending like the trajectory is capped too. Only generated tokens are compared, never
the prompt.

`zerogap.strategies.rail` finds the rail tokens of all rows of a batch at once.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from transformers import LogitsProcessor

from zerogap.engine.decoder import Rows, to_device
from zerogap.strategies.base import Context, Intervention, check_whole_number
from zerogap.strategies.rail import find_rail_tokens, last_ngrams, pad_trajectories, rail_tokens

Suppression = Literal["cap", "ban"]


@dataclass(frozen=True)
class RailCap:
    """RailCap along every question's greedy trajectory.

    Attributes:
        n: the n-gram threshold: how many tokens in a row must match the trajectory.
        suppression: "cap" the rail token at the runner-up's logit, or "ban" it (paper's ablation,
            Table 4).

    Raises:
        ValueError: `n` is not a whole number above 0, or `suppression` is not one of its values.
    """

    n: int = 4
    suppression: Suppression = "cap"

    def __post_init__(self) -> None:
        check_whole_number("RailCap", "n", self.n, minimum=1)
        if self.suppression not in ("cap", "ban"):
            raise ValueError(
                f"RailCap: suppression must be 'cap' or 'ban' (got '{self.suppression}')"
            )

    def prepare(self, context: Context) -> Intervention:
        """Return the suppression along `context.trajectories`."""
        trajectories = pad_trajectories(context.trajectories, self.n)

        def edit_logits(logits: Tensor, rows: Rows) -> Tensor:
            return suppress(logits, rail_tokens(trajectories, rows, self.n), self.suppression)

        return Intervention(edit_logits=edit_logits)


class RailCapLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """RailCap for `model.generate(logits_processor=[...], do_sample=True)`; see docs/railcap.md.

    Args:
        trajectories: the greedy trajectory (generated tokens only) of each prompt of the batch.
            With `num_return_sequences` pass one per prompt or one per returned sequence.
        prompt_length: number of prompt tokens in `input_ids`, left padding included.
        n: the n-gram threshold.
        suppression: "cap" or "ban".

    Raises:
        ValueError: there are no trajectories, or a parameter is not one of its values.
    """

    def __init__(
        self,
        trajectories: list[list[int]],
        prompt_length: int,
        n: int = 4,
        suppression: Suppression = "cap",
    ) -> None:
        self._railcap = RailCap(n, suppression)
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
        rail = find_rail_tokens(trajectories, last_ngrams(generated, steps, self._railcap.n))
        return suppress(scores.clone(), rail, self._railcap.suppression)


def suppress(logits: Tensor, rail: Tensor, suppression: Suppression) -> Tensor:
    """Cap or ban the rail token of every row that has one; changes `logits` in place.

    Args:
        logits: (R, V) on the model's device.
        rail: (R,) on the CPU; -1 leaves a row as it is. In most steps only a few rows are on
            the rail, and only those are read from `logits`.
        suppression: "cap" or "ban".
    """
    row = (rail >= 0).nonzero()[:, 0]
    if not len(row):
        return logits
    row, token = to_device(row, logits.device), to_device(rail[row], logits.device)
    return suppress_tokens(logits, row, token, suppression)


def suppress_tokens(logits: Tensor, row: Tensor, token: Tensor, suppression: Suppression) -> Tensor:
    """Cap or ban one token of each of some rows; changes `logits` in place.

    Args:
        logits: (R, V).
        row: (K,) the rows, on the same device.
        token: (K,) their rail tokens, on the same device.
        suppression: "cap" or "ban".
    """
    if suppression == "ban":
        logits[row, token] = float("-inf")
        return logits
    # The largest logit among the other tokens is v⁽²⁾ if the rail token leads, and at least the
    # rail token's own logit if it does not: in both cases the minimum is the paper's.
    others = logits[row].scatter_(1, token[:, None], float("-inf"))
    logits[row, token] = torch.minimum(logits[row, token], others.amax(dim=-1))
    return logits
