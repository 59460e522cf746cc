"""Tables of the same questions, brought into one order."""

from typing import TypeVar

import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import gaps

Table = TypeVar("Table", pd.DataFrame, "pd.Series[float]")


def probabilities(solve: pd.DataFrame) -> gaps.Values:
    """The solve probability of each row of a `solve` table."""
    return gaps.solve_probability(solve["n_correct"], solve["n_samples"])


def by_question(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table with its question ids as index.

    Args:
        table: One row per question, with the column question_id.
        name: Of the table, in an error.

    Raises:
        InputError: A question appears twice.
    """
    duplicated = table["question_id"][table["question_id"].duplicated()]
    if duplicated.size:
        raise InputError(f"{name}: duplicate row: question {duplicated.iloc[0]!r}")
    return table.set_index("question_id")


def in_order(table: Table, question_ids: "pd.Index[str]", name: str) -> Table:
    """The rows of a table by question, in the order of the clean model's questions.

    Args:
        table: Indexed by question id, without duplicates.
        question_ids: The clean model's questions.
        name: Of the table, in an error.

    Raises:
        InputError: A question is in one of them only.
    """
    differing = question_ids.symmetric_difference(table.index)
    if differing.size:
        where = "missing" if differing[0] in question_ids else "unknown to the clean model"
        raise InputError(
            f"{name}: question {differing[0]!r} is {where} ({differing.size} differ); "
            "sample both from the same questions"
        )
    return table.loc[question_ids]


def with_leaked_of(questions: pd.DataFrame, solve: pd.DataFrame) -> pd.DataFrame:
    """A `solve` table with the leaked questions of a benchmark.

    Benchmarks that share a clean model may differ in what leaks: a question without a valid
    paraphrase leaks in one and not in the other.

    Args:
        questions: The benchmark's `questions` table.
        solve: A `solve` table of the same questions.
    """
    leaked = questions["question_id"][questions["leaked"]]
    return solve.assign(leaked=solve["question_id"].isin(leaked))
