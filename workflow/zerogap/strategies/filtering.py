"""Strategies that filter: of responses already drawn, those that count."""

from collections.abc import Callable, Iterable, Mapping

import pandas as pd

Keep = Callable[[list[int], list[list[int]], list[str]], list[bool]]


def without_end(token_ids: Iterable[int], finish_reason: str) -> list[int]:
    """A response's token ids without the end token that finished it."""
    tokens = list(map(int, token_ids))
    return tokens[:-1] if finish_reason == "eos" else tokens


def passing(
    samples: pd.DataFrame, trajectories: Mapping[str, tuple[Iterable[int], str]], keep: Keep
) -> pd.DataFrame:
    """The rows of a `samples` table that a strategy's `keep` lets pass, in their order.

    Args:
        trajectories: question id → the greedy trajectory's token ids and its finish reason.
    """
    passed = []
    for question_id, part in samples.groupby("question_id", sort=False):
        tokens = list(map(without_end, part.token_ids, part.finish_reason))
        trajectory = without_end(*trajectories[question_id])
        passed.append(part[keep(trajectory, tokens, list(part.text))])
    return pd.concat(passed, ignore_index=True)
