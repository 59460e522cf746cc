"""Apply a strategy that filters responses to a table of drawn responses."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from zerogap.errors import InputError

# (greedy trajectory, token ids of each response, text of each response) → which responses count.
ResponseFilter = Callable[[list[int], list[list[int]], list[str]], list[bool]]

# Stands for a dropped response in logs that have one text per response.
DROPPED = "[dropped by the strategy]"


def without_end_token(token_ids: Iterable[int], finish_reason: str) -> list[int]:
    """Return a response's token ids without the end token that finished it."""
    tokens = [int(token) for token in token_ids]
    return tokens[:-1] if finish_reason == "eos" else tokens


def filter_samples(
    samples: pd.DataFrame, greedy: pd.DataFrame, response_filter: ResponseFilter
) -> pd.DataFrame:
    """Return the rows of a `samples` table that the filter keeps, in their order.

    Args:
        samples: one row per response; all responses of a question are filtered together.
        greedy: the `greedy` table of the model that has drawn them.
        response_filter: see :class:`zerogap.strategies.base.Intervention`.

    Raises:
        InputError: the filter does not return one bool per response.
    """
    trajectories = {
        question_id: without_end_token(tokens, reason)
        for question_id, tokens, reason in zip(
            greedy.question_id, greedy.token_ids, greedy.finish_reason, strict=True
        )
    }
    kept = []
    for question_id, responses in samples.groupby("question_id", sort=False):
        token_ids = [
            without_end_token(tokens, reason)
            for tokens, reason in zip(responses.token_ids, responses.finish_reason, strict=True)
        ]
        keep = np.asarray(
            response_filter(trajectories[question_id], token_ids, list(responses.text))
        )
        if keep.dtype != bool or keep.shape != (len(responses),):
            raise InputError(
                f"strategies: filter_responses must return one bool per response to {question_id}"
            )
        kept.append(responses[keep])
    return pd.concat(kept, ignore_index=True)
