"""Compute all metrics of one model and benchmark, with intervals, from `solve` tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.provenance import engines, provenance
from zerogap.metrics.evaluate import evaluate, rows_about
from zerogap.metrics.same_questions import with_leaked_of

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    questions = parquet.read_of_run(job.input.questions, "questions")
    paths = [job.input.clean, *job.input.strategies]
    clean, *tables = (
        with_leaked_of(questions, parquet.read_of_run(path, "solve")) for path in paths
    )
    check_engines(paths)
    strategies = dict(zip(job.params.strategies, tables, strict=True))
    model, benchmark = job.wildcards.model, job.wildcards.benchmark
    table = evaluate(model, benchmark, clean, strategies, **job.params.options)
    if job.params.only:
        table = rows_about(table, job.params.only)
    metadata = provenance(**job.params.metadata, metrics=job.params.options)
    parquet.write(job.output[0], table, "metrics", metadata)


def check_engines(paths: Sequence[str]) -> None:
    """Check that one engine has drawn all responses; others have other random numbers.

    Raises:
        InputError: there are several.
    """
    owners = {engine: path for path in paths for engine in engines(parquet.provenance(path))}
    if len(owners) > 1:
        drawn = " and ".join(f"{path} by {engine}" for engine, path in sorted(owners.items()))
        raise InputError(
            f"responses of two engines cannot be compared: {drawn}; delete those of one of them "
            "and run again with the other as decoding.engine"
        )


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
