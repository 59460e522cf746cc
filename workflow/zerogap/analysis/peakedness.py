"""Peakedness: the share of a question's responses that nearly repeat the greedy trajectory.

As in CDD (Dong et al., Findings of ACL 2024; the authors' code): edit distance between token ids,
both cut at `MAX_LENGTH` tokens. A response nearly repeats the trajectory if the distance is at most
`ALPHA` times the length of the longest of them. Unlike CDD, end tokens are not compared. CDD's
verdict, contaminated where the share exceeds 0.01, is not given here.
"""

from collections.abc import Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein

ALPHA = 0.05
MAX_LENGTH = 100  # tokens


def peakedness(responses: Sequence[Sequence[int]], trajectory: Sequence[int]) -> float:
    """The share of responses that nearly repeat the trajectory; NaN without responses.

    Args:
        responses: the tokens of each response to one question, without the end token.
        trajectory: the tokens of its greedy trajectory, without the end token.
    """
    if not responses:
        return float("nan")
    reference = trajectory[:MAX_LENGTH]
    texts = [response[:MAX_LENGTH] for response in responses]
    longest = max(len(text) for text in [reference, *texts])
    distances = np.array([Levenshtein.distance(reference, text) for text in texts])
    return float((distances <= ALPHA * longest).mean())
