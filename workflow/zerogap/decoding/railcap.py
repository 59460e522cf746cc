"""RailCap (paper §4, Algorithm 1): step-wise supervision against the greedy trajectory.

Whenever the last n generated tokens are an n-gram window of the question's own greedy trajectory,
the token that follows that window on the trajectory (the rail token) is capped at the runner-up's
logit. Where a window recurs, its last occurrence counts, as in a map that is filled from left to
right; the trajectory's end token is part of it; prompts are never matched.
"""

import torch
from torch import Tensor
from transformers import LogitsProcessor

from zerogap.decoding.sampler import Rows
from zerogap.decoding.strategy import Context, Strategy

_NOWHERE = -2  # unlike any token and unlike the -1 that pads generated tokens


def railcap(context: Context, n: int = 4, suppression: str = "cap") -> Strategy:
    """RailCap for every question's greedy trajectory.

    Args:
        n: the n-gram threshold for judging a fall-back.
        suppression: "cap" at the runner-up, or "ban" (the ablation: the rail token is excluded).

    Raises:
        ValueError: n below 1 or another suppression.
    """
    _check(n, suppression)
    table = pad(context.trajectories, context_width=n)

    def edit(logits: Tensor, rows: Rows) -> Tensor:
        trajectories = table.to(logits.device)[rows.question]
        rail = rail_tokens(trajectories, last_tokens(rows.tokens, rows.step, n))
        return suppress(logits, rail, suppression)

    return Strategy(edit=edit)


class RailCapLogitsProcessor(LogitsProcessor):
    """RailCap as a drop-in for `model.generate(logits_processor=[...], do_sample=True)`.

    Args:
        trajectories: the greedy trajectory (generated tokens only) of each row's question; one
            for all rows, or one a row, in the order of the batch.
        prompt_length: number of prompt tokens in `input_ids`, padding included.
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
        _check(n, suppression)
        self._table = pad(trajectories, context_width=n)
        self._prompt_length = prompt_length
        self._n = n
        self._suppression = suppression

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores (R, V) with each row's rail token suppressed."""
        generated = input_ids[:, self._prompt_length :]
        step = torch.full((len(generated),), generated.shape[1], device=generated.device)
        trajectories = self._table.to(scores.device).expand(len(generated), -1)
        rail = rail_tokens(trajectories, last_tokens(generated, step, self._n))
        return suppress(scores, rail, self._suppression)


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
    windows = trajectories.shape[1] - n
    successors = trajectories[:, n:]
    on_rail = successors != _NOWHERE
    for offset in range(n):
        on_rail = on_rail & (trajectories[:, offset : offset + windows] == last[:, offset, None])
    place = torch.arange(1, windows + 1, device=trajectories.device)
    latest = (on_rail * place).max(dim=1).values
    rail = successors.gather(1, (latest - 1).clamp(min=0)[:, None])[:, 0]
    return rail.masked_fill(latest == 0, -1)


def suppress(logits: Tensor, rail: Tensor, suppression: str) -> Tensor:
    """Cap rail tokens (R,) at their row's second-largest logit, or ban them; -1 changes nothing."""
    column = rail.clamp(min=0)[:, None]
    current = logits.gather(1, column)
    if suppression == "cap":
        level = torch.minimum(current, logits.topk(2, dim=-1).values[:, 1:])
    else:
        level = torch.full_like(current, float("-inf"))
    return logits.scatter(1, column, torch.where(rail[:, None] >= 0, level, current))


def _check(n: int, suppression: str) -> None:
    if n < 1:
        raise ValueError(f"RailCap: n is {n}; an n-gram has at least one token")
    if suppression not in ("cap", "ban"):
        raise ValueError(f"RailCap: suppression is '{suppression}'; it is 'cap' or 'ban'")
