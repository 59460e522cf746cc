"""Tables of the same questions, brought into one order."""

from collections.abc import Mapping

import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import gaps


def probabilities(solve: pd.DataFrame) -> gaps.Values:
    """The solve probability of each row of a `solve` table."""
    return gaps.solve_probability(solve["n_correct"], solve["n_samples"])


def in_order(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables by question id, all in the order of the clean model's, which is named ``clean``.

    Raises:
        InputError: A question appears twice in a table, or is not in both it and the clean one.
    """
    by_question = {}
    for name, table in tables.items():
        duplicated = table["question_id"][table["question_id"].duplicated()]
        if duplicated.size:
            raise InputError(f"{name}: duplicate row: question {duplicated.iloc[0]!r}")
        by_question[name] = table.set_index("question_id")
    question_ids = by_question["clean"].index
    for name, table in by_question.items():
        differing = question_ids.symmetric_difference(table.index)
        if differing.size:
            where = "missing" if differing[0] in question_ids else "unknown to the clean model"
            raise InputError(
                f"{name}: question {differing[0]!r} is {where} ({differing.size} differ); "
                "sample both from the same questions"
            )
    return {name: table.loc[question_ids] for name, table in by_question.items()}


def with_leaked_of(questions: pd.DataFrame, solve: pd.DataFrame) -> pd.DataFrame:
    """A `solve` table with the leaked questions of a benchmark's `questions` table.

    Benchmarks that share a clean model may differ in what leaks: a question without a valid
    paraphrase leaks in one and not in the other.
    """
    leaked = questions["question_id"][questions["leaked"]]
    return solve.assign(leaked=solve["question_id"].isin(leaked))
