"""All-Zero: the trivial strategy that makes the model fail every question (paper §5.2.2).

It shows what an equal-weight average rewards: on a weak clean model, answering everything wrong
comes close to most questions' solve probability. Nothing is decoded; its `solve` table follows
from the clean model's.
"""

import pandas as pd


def all_zero_counts(clean_counts: pd.DataFrame) -> pd.DataFrame:
    """Return the clean model's `solve` table with no response correct.

    Args:
        clean_counts: a `solve` table (:mod:`zerogap.io.parquet`), one row per question.
    """
    return clean_counts.assign(n_correct=0, first_correct=False)
