"""Compute all metrics of one model and benchmark, with intervals, from `solve` tables."""

import itertools
from collections.abc import Sequence
from typing import Any

from script_helpers import Job, run_job
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.provenance import draws, provenance
from zerogap.metrics.evaluate import evaluate, rows_about
from zerogap.metrics.same_questions import with_leaked_of


def main(job: Job) -> None:
    questions = parquet.read_of_run(job.input.questions, "questions")
    paths = [job.input.clean, *job.input.strategies]
    clean, *tables = (
        with_leaked_of(questions, parquet.read_of_run(path, "solve")) for path in paths
    )
    check_draws(paths)
    strategies = dict(zip(job.params.strategies, tables, strict=True))
    model, benchmark = job.wildcards.model, job.wildcards.benchmark
    table = evaluate(model, benchmark, clean, strategies, **job.params.options)
    if job.params.only:
        table = rows_about(table, job.params.only)
    metadata = provenance(**job.params.metadata, metrics=job.params.options)
    parquet.write(job.output[0], table, "metrics", metadata)


def check_draws(paths: Sequence[str]) -> None:
    """Check that one engine has drawn all responses, in the same way.

    Raises:
        InputError: two files differ in the engine, sampling, seed, prompt or extraction rule.
    """
    first: dict[str, tuple[str, Any]] = {}
    for path in paths:
        drawn = itertools.chain(*(each.items() for each in draws(parquet.provenance(path))))
        for name, value in drawn:
            other, expected = first.setdefault(name, (path, value))
            if value != expected:
                raise InputError(
                    f"{path}: was drawn with {name} {value}, but {other} with {expected}, so they "
                    "cannot be compared; delete one of them and run again"
                )


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
