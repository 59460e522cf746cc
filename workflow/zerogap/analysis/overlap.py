"""How much responses overlap with the greedy trajectory: ROUGE-L (paper, Figure 1) and peakedness.

ROUGE-L as defined by the package rouge-score 0.1.2, without a stemmer: lower-cased, tokens are
separated by every run of characters other than a-z and 0-9, F1 of the longest common subsequence.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq, Levenshtein

from zerogap.errors import InputError

ALPHA = 0.05  # of peakedness
MAX_LENGTH = 100  # tokens
_SEPARATOR = re.compile(r"[^a-z0-9]+")


def rouge_l(texts: Iterable[str], reference: str) -> NDArray[np.float64]:
    """ROUGE-L F1 of each text with the reference; 0 where either has no tokens."""
    # Sampled responses of a memorised question repeat: compute each distinct text once.
    texts = list(texts)
    scores = {text: _f1(text, reference) for text in set(texts)}
    return np.array([scores[text] for text in texts])


def overlap(samples: pd.DataFrame, greedy: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """The `overlap` table of one model's samples with its own greedy trajectories.

    Raises:
        InputError: A sampled question is missing from `greedy` or `questions`.
    """
    trajectories = greedy.set_index("question_id")["text"]
    leaked = questions.set_index("question_id")["leaked"]
    for column, name in ((trajectories, "greedy"), (leaked, "questions")):
        missing = samples["question_id"][~samples["question_id"].isin(column.index)]
        if len(missing):
            raise InputError(f"samples: question {missing.iloc[0]!r} is not in the {name} table")
    scores = pd.Series(0.0, samples.index)
    for question_id, texts in samples.groupby("question_id", sort=False)["text"]:
        scores[texts.index] = rouge_l(texts, trajectories[str(question_id)])
    table = samples[["question_id", "sample_id"]]
    return table.assign(leaked=table["question_id"].map(leaked), rouge_l=scores)


def peakedness(responses: Sequence[Sequence[int]], trajectory: Sequence[int]) -> float:
    """The share of responses that nearly repeat the trajectory; NaN without responses.

    As in CDD (Dong et al., Findings of ACL 2024; the authors' code): edit distance between token
    ids, both cut at `MAX_LENGTH` tokens. A response nearly repeats the trajectory if the distance
    is at most `ALPHA` times the length of the longest of them. Unlike CDD's, the tokens are without
    the end token. CDD's verdict, contaminated where the share exceeds 0.01, is not given here.
    """
    if not responses:
        return float("nan")
    reference = trajectory[:MAX_LENGTH]
    texts = [response[:MAX_LENGTH] for response in responses]
    longest = max(len(text) for text in [reference, *texts])
    distances = np.array([Levenshtein.distance(reference, text) for text in texts])
    return float((distances <= ALPHA * longest).mean())


def _f1(text: str, reference: str) -> float:
    tokens = [_SEPARATOR.sub(" ", each.lower()).split() for each in (text, reference)]
    return 2 * LCSseq.similarity(*tokens) / max(sum(map(len, tokens)), 1)
