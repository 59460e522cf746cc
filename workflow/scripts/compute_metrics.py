"""Compute all metrics of one model and benchmark, with intervals, from `solve` tables."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.metrics.evaluate import evaluate, rows_about
from zerogap.metrics.same_questions import with_leaked_of

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    questions = parquet.read_of_run(job.input.questions, "questions")
    clean, *tables = (
        with_leaked_of(questions, parquet.read_of_run(path, "solve"))
        for path in (job.input.clean, *job.input.strategies)
    )
    strategies = dict(zip(job.params.strategies, tables, strict=True))
    model, benchmark = job.wildcards.model, job.wildcards.benchmark
    table = evaluate(model, benchmark, clean, strategies, **job.params.options)
    if job.params.only:
        table = rows_about(table, job.params.only)
    metadata = provenance(**job.params.metadata, metrics=job.params.options)
    parquet.write(job.output[0], table, "metrics", metadata)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
