"""RailCap (paper §4, Algorithm 1): step-wise supervision against the greedy trajectory.

Whenever the last n generated tokens are an n-gram window of the question's own greedy trajectory,
the token that follows that window on the trajectory (the rail token) is capped at the runner-up's
logit. Where a window recurs, its last occurrence counts, as in a map that is filled from left to
right; the trajectory's end token is part of it; prompts are never matched.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LogitsProcessor

from zerogap.engine.decoder import Rows
from zerogap.engine.memory import to_device
from zerogap.strategies.base import Context, Intervention

_NOWHERE = -2  # unlike any token and unlike the -1 that pads generated tokens


@dataclass(frozen=True)
class RailCap:
    """RailCap for every question's greedy trajectory.

    Attributes:
        n: the n-gram threshold for judging a fall-back.
        suppression: "cap" at the runner-up, or "ban" (the ablation: the rail token is excluded).

    Raises:
        ValueError: n below 1 or another suppression.
    """

    n: int = 4
    suppression: str = "cap"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"RailCap: n is {self.n}; an n-gram has at least one token")
        if self.suppression not in ("cap", "ban"):
            raise ValueError(f"RailCap: suppression is '{self.suppression}'; it is 'cap' or 'ban'")

    def prepare(self, context: Context) -> Intervention:
        """The cap along `context.trajectories`."""
        trajectories = pad(context.trajectories, context_width=self.n)

        def edit(logits: Tensor, rows: Rows) -> Tensor:
            last = last_tokens(rows.tokens, rows.step, self.n)
            rail = rail_tokens(trajectories[rows.question], last)
            return suppress(logits, rail, self.suppression)

        return Intervention(edit=edit)


class RailCapLogitsProcessor(LogitsProcessor):
    """RailCap as a drop-in for `model.generate(logits_processor=[...], do_sample=True)`.

    Args:
        trajectories: the greedy trajectory (generated tokens only) of each prompt of the batch;
            with `num_return_sequences` one for each prompt or one for each sequence.
        prompt_length: number of prompt tokens in `input_ids`, padding on the left included.
        n: the n-gram threshold.
        suppression: "cap" or "ban".
    """

    def __init__(
        self,
        trajectories: list[list[int]],
        prompt_length: int,
        n: int = 4,
        suppression: str = "cap",
    ) -> None:
        self._railcap = RailCap(n, suppression)
        self._table = pad(trajectories, context_width=n)
        self._prompt_length = prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores (R, V) with each row's rail token suppressed.

        Raises:
            ValueError: the batch's rows are no multiple of the trajectories.
        """
        generated = input_ids[:, self._prompt_length :].cpu()
        rows, known = len(generated), len(self._table)
        if rows % known:
            raise ValueError(f"RailCap: {known} trajectories for a batch of {rows} rows")
        # `generate` keeps a prompt's sequences side by side.
        trajectories = self._table.repeat_interleave(rows // known, dim=0)
        step = torch.full((rows,), generated.shape[1])
        rail = rail_tokens(trajectories, last_tokens(generated, step, self._railcap.n))
        return suppress(scores.clone(), rail, self._railcap.suppression)


def pad(trajectories: list[list[int]], context_width: int) -> Tensor:
    """Trajectories of different lengths as one (Q, T) tensor that no padding ever matches."""
    longest = max(context_width + 1, *(len(tokens) for tokens in trajectories))
    table = torch.full((len(trajectories), longest), _NOWHERE)
    for row, tokens in zip(table, trajectories, strict=True):
        row[: len(tokens)] = torch.tensor(tokens, dtype=torch.long)
    return table


def last_tokens(tokens: Tensor, step: Tensor, n: int) -> Tensor:
    """The last n tokens (R, n) of rows that hold `step` (R,) tokens in (R, T); -1 before them."""
    columns = step[:, None] - n + torch.arange(n, device=tokens.device)
    if tokens.shape[1] == 0:
        return torch.full_like(columns, -1)
    found = tokens.gather(1, columns.clamp(0, tokens.shape[1] - 1))
    return found.masked_fill(columns < 0, -1)


def rail_tokens(trajectories: Tensor, last: Tensor) -> Tensor:
    """Rail tokens (R,) where the last tokens (R, n) lie on the trajectory (R, T), else -1."""
    n = last.shape[1]
    # Where a window's last token stands, few of the others are left to compare.
    row, start = (trajectories[:, n - 1 : -1] == last[:, -1:]).nonzero(as_tuple=True)
    successor = start + n
    here = trajectories[row, successor] != _NOWHERE
    for offset in range(n - 1):
        here &= trajectories[row, start + offset] == last[row, offset]
    latest = torch.zeros_like(last[:, 0]).scatter_reduce_(0, row, successor * here, "amax")
    rail = trajectories.gather(1, latest[:, None])[:, 0]
    return rail.masked_fill(latest == 0, -1)


def suppress(logits: Tensor, rail: Tensor, suppression: str) -> Tensor:
    """Cap rail tokens (R,) at their row's second-largest logit, or ban them; -1 changes nothing.

    Changes `logits` (R, V) itself. Only rows on the rail are looked at, as few are at most steps.
    """
    row = (rail >= 0).nonzero()[:, 0]
    if not len(row):
        return logits
    row, token = to_device(row, logits.device), to_device(rail[row], logits.device)
    if suppression == "ban":
        logits[row, token] = float("-inf")
    else:
        capped = logits[row, token]
        # What is largest among the others: the runner-up if the rail token leads, else no less
        # than the rail token.
        others = logits[row].scatter_(1, token[:, None], float("-inf"))
        logits[row, token] = torch.minimum(capped, others.amax(dim=-1))
    return logits
