"""Which questions are leaked, in tables that several benchmarks share."""

import pandas as pd


def with_leaked_of(questions: pd.DataFrame, solve: pd.DataFrame) -> pd.DataFrame:
    """A `solve` table with the leaked questions of a benchmark.

    Benchmarks that share a clean model may differ in what leaks: a question without a valid
    paraphrase leaks in one and not in the other.

    Args:
        questions: the benchmark's `questions` table.
        solve: a `solve` table of the same questions.
    """
    leaked = questions.question_id[questions.leaked]
    return solve.assign(leaked=solve.question_id.isin(leaked))
