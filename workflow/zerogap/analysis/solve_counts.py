"""Counts per question from scored responses."""

import pandas as pd


def solve_counts(samples: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """The `solve` table of a `samples` table.

    Args:
        samples: Scored responses; the first of a question is the one with the lowest sample_id.
        questions: `questions` table; gives the order and the leaked questions.

    Returns:
        One row per question. A question without samples has n_samples 0 and is not solved.
    """
    ordered = samples.sort_values("sample_id", kind="stable")
    by_question = ordered.groupby("question_id").correct.agg(["sum", "size", "first"])
    counts = by_question.reindex(questions.question_id)
    return pd.DataFrame(
        {
            "question_id": questions.question_id.to_numpy(),
            "n_correct": counts["sum"].fillna(0).astype("int32").to_numpy(),
            "n_samples": counts["size"].fillna(0).astype("int32").to_numpy(),
            # Without samples "first" is NaN, which counts as not correct.
            "first_correct": (counts["first"] == True).to_numpy(),  # noqa: E712
            "leaked": questions.leaked.to_numpy(),
        }
    )
