"""Which rows of a batch are on the rail, and its suppression: for RailCap and your own strategies.

A row is on the rail if its last n generated tokens occur in the greedy trajectory of its question;
the token that follows them there is the rail token (paper §4). If they occur more than once, the
last occurrence counts, or the first one if a caller asks for that.

The functions work on all rows at once: the trajectories are one padded tensor, and a row's n-gram
is compared with all windows of n tokens in it. Only logits are not on the CPU.
"""

import warnings
from typing import Literal

import torch
from torch import Tensor

from zerogap.engine.decoder import Rows, to_device

Suppression = Literal["cap", "ban"]
Successor = Literal["last", "first"]  # of the occurrences of an n-gram: which one's counts

_NO_TOKEN = -1  # where a row has no rail token, or has not generated n tokens yet
_PADDING = -2  # after the end of a trajectory; differs from every token and from _NO_TOKEN


def rail_tokens(trajectories: Tensor, rows: Rows, n: int, successor: Successor = "last") -> Tensor:
    """Return the rail token (R,) of every row of a batch, or -1 where a row is off the rail.

    Args:
        trajectories: (Q, T) the trajectories of all questions, from :func:`pad_trajectories`.
        rows: the batch, as `edit_logits` gets it.
        n: how many tokens must match.
        successor: which occurrence counts, "last" or "first".
    """
    ngrams, trajectories = last_tokens(rows, n), trajectories[rows.question]
    length = trajectories.shape[1]
    # A window's last token matches at few positions; only there are the other tokens compared.
    row, start = (trajectories[:, n - 1 : -1] == ngrams[:, -1:]).nonzero(as_tuple=True)
    position = start + n  # of the successor
    is_window = trajectories[row, position] != _PADDING
    for offset in range(n - 1):
        is_window &= trajectories[row, start + offset] == ngrams[row, offset]
    # Of several matching windows the one with the largest rank counts. A successor is at position
    # n or later, so position 0 means that there is none.
    rank = position if successor == "last" else length - position
    largest = torch.zeros_like(ngrams[:, 0]).scatter_reduce_(0, row, rank * is_window, "amax")
    found = largest if successor == "last" else (length - largest) % length
    rail = trajectories.gather(1, found[:, None])[:, 0]
    return rail.masked_fill(found == 0, _NO_TOKEN)


def last_tokens(rows: Rows, n: int) -> Tensor:
    """Return the last n generated tokens (R, n) of every row; -1 where a row has fewer."""
    tokens, columns = rows.tokens, rows.step[:, None] - n + torch.arange(n, device="cpu")
    ngrams = tokens.gather(1, columns.clamp(0, tokens.shape[1] - 1))
    return ngrams.masked_fill(columns < 0, _NO_TOKEN)


def pad_trajectories(trajectories: list[list[int]], n: int) -> Tensor:
    """Return trajectories of different lengths as one tensor (Q, T) with T > n."""
    length = max([n + 1, *(len(tokens) for tokens in trajectories)])
    padded = torch.full((len(trajectories), length), _PADDING, device="cpu")
    for row, tokens in zip(padded, trajectories, strict=True):
        row[: len(tokens)] = torch.tensor(tokens, dtype=torch.long, device="cpu")
    return padded


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
