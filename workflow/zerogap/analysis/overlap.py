"""ROUGE-L between each sampled response and the greedy trajectory (paper, Figure 1 a and c).

ROUGE-L as the package rouge-score 0.1.2 defines it, without a stemmer: lower-cased, every run of
characters other than a–z and 0–9 separates tokens, F1 of the longest common subsequence.
"""

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from zerogap.errors import InputError

_SEPARATOR = re.compile(r"[^a-z0-9]+")


def tokens(text: str) -> list[str]:
    """The tokens that ROUGE compares."""
    return _SEPARATOR.sub(" ", text.lower()).split()


def rouge_l(texts: Iterable[str], reference: str) -> NDArray[np.float64]:
    """ROUGE-L F1 of each text with the reference; 0 where either has no token."""
    target = tokens(reference)
    # Sampled responses of a memorised question repeat: each distinct text once.
    texts = list(texts)
    known = {text: _f1(tokens(text), target) for text in set(texts)}
    return np.array([known[text] for text in texts])


def overlap(samples: pd.DataFrame, greedy: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """The `overlap` table of one model's samples with its own greedy responses.

    Args:
        samples, greedy: tables of the same model, contracts `samples` and `greedy`.
        questions: contract `questions`, for the leaked ones.

    Raises:
        InputError: a sampled question without a greedy response or unknown to `questions`.
    """
    trajectory = greedy.set_index("question_id")["text"]
    leaked = questions.set_index("question_id")["leaked"]
    parts = []
    for question_id, group in samples.groupby("question_id", sort=False):
        for table, name in ((trajectory, "greedy"), (leaked, "questions")):
            if question_id not in table.index:
                raise InputError(f"samples: question {question_id!r} is not in the {name} table")
        parts.append(
            pd.DataFrame(
                {
                    "question_id": question_id,
                    "sample_id": group["sample_id"].to_numpy(),
                    "leaked": leaked[question_id],
                    "rouge_l": rouge_l(group["text"], trajectory[question_id]),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _f1(found: list[str], target: list[str]) -> float:
    if not found or not target:
        return 0.0
    common = LCSseq.similarity(found, target)
    return 2 * common / (len(found) + len(target))
