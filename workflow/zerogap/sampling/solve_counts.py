"""From scored responses to counts per question."""

import pandas as pd


def solve_counts(samples: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return the `solve` table: how many responses each question has, and how many are correct.

    Args:
        samples: the scored responses, one row per response.
        questions: the questions to count, in the order of the result. A question without responses
            (a filter dropped them all) has 0 of 0 correct and counts as not solved.
    """
    ordered = samples.sort_values("sample_id", kind="stable")
    by_question = ordered.groupby("question_id").correct.agg(["sum", "size", "first"])
    counts = by_question.reindex(questions.question_id)
    return pd.DataFrame(
        {
            "question_id": questions.question_id.to_numpy(),
            "n_correct": counts["sum"].fillna(0).astype("int32").to_numpy(),
            "n_samples": counts["size"].fillna(0).astype("int32").to_numpy(),
            "first_correct": (counts["first"] == True).to_numpy(),  # noqa: E712 (NaN is not solved)
            "leaked": questions.leaked.to_numpy(),
        }
    )
