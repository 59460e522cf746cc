"""Apply a strategy that filters responses to a table of drawn responses."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from zerogap.errors import InputError

# (greedy trajectory, token ids of each response, text of each response) → which responses count.
ResponseFilter = Callable[[list[int], list[list[int]], list[str]], list[bool]]

# Stands for a dropped response in logs that have one text per response.
DROPPED = "[dropped by the strategy]"


def without_end_tokens(responses: pd.DataFrame) -> list[list[int]]:
    """Return the token ids of a table's responses, without the end tokens that finished them."""
    return [
        list(map(int, tokens[:-1] if reason == "eos" else tokens))
        for tokens, reason in zip(responses.token_ids, responses.finish_reason, strict=True)
    ]


def filter_samples(
    samples: pd.DataFrame, greedy: pd.DataFrame, response_filter: ResponseFilter
) -> pd.DataFrame:
    """Return the rows of a `samples` table that the filter keeps, in their order.

    All responses to a question are filtered together; `greedy` is the table of the same model.

    Raises:
        InputError: the filter does not return one bool per response.
    """
    trajectories = dict(zip(greedy.question_id, without_end_tokens(greedy), strict=True))
    kept = []
    for question_id, responses in samples.groupby("question_id", sort=False):
        trajectory, token_ids = trajectories[question_id], without_end_tokens(responses)
        keep = np.asarray(response_filter(trajectory, token_ids, list(responses.text)))
        if keep.dtype != bool or keep.shape != (len(responses),):
            raise InputError(
                f"strategies: filter_responses must return one bool per response to {question_id}"
            )
        kept.append(responses[keep])
    return pd.concat(kept, ignore_index=True)
