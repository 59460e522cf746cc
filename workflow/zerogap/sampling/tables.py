"""What is made of drawn responses alone; like their tables, it needs no torch.

The arguments of the jobs are those of :mod:`zerogap.sampling.jobs`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.io import parquet
from zerogap.io.provenance import merged_provenance, provenance
from zerogap.strategies import base
from zerogap.strategies.filtering import filter_samples


def solve_counts(samples: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return the `solve` table: how many responses each question has, and how many are correct.

    It has the questions in their order. One without responses (a filter dropped them all) has 0 of
    0 correct and counts as not solved.
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


def merge_shards(
    *,
    samples: Sequence[Path],
    solve: Sequence[Path],
    questions: Path,
    merged_samples: Path,
    merged_solve: Path,
) -> None:
    """Concatenate the tables of a cell's shards, in the order of `questions`."""
    question_ids = parquet.read_of_run(questions, "questions").question_id
    positions = pd.Series(range(len(question_ids)), question_ids)
    for contract, shards, merged in (
        ("samples", samples, merged_samples),
        ("solve", solve, merged_solve),
    ):
        table = pd.concat(parquet.read_of_run(path, contract) for path in shards)
        order = table.question_id.map(positions).argsort(kind="stable")
        made_by = merged_provenance([parquet.provenance(path) for path in shards])
        parquet.write(merged, table.iloc[order], contract, made_by)


def filter_responses(
    *,
    questions: Path,
    greedy: Path,
    source: Path,
    samples: Path,
    solve: Path,
    strategy: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> None:
    """Write the tables of a strategy that filters `source`, the responses of another strategy."""
    table = parquet.read_of_run(source, "samples")
    keep = base.response_filter(base.build(strategy))
    kept = filter_samples(table, parquet.read_of_run(greedy, "greedy"), keep)
    counts = solve_counts(kept, parquet.read_of_run(questions, "questions"))
    made_by = provenance(
        **metadata, strategy_parameters=strategy, source=parquet.provenance(source)
    )
    parquet.write(samples, kept, "samples", made_by)
    parquet.write(solve, counts, "solve", made_by)
    num_empty = int((counts.n_samples == 0).sum())
    print(f"{len(kept)} of {len(table)} responses kept; {num_empty} questions have none left")
