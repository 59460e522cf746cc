"""Measure ROUGE-L between every response and the model's own greedy response."""

from script_helpers import Job, run_job
from zerogap.analysis.overlap import overlap
from zerogap.io import parquet
from zerogap.io.provenance import provenance


def main(job: Job) -> None:
    table = overlap(
        parquet.read_of_run(job.input.samples, "samples", ["text"]),
        parquet.read_of_run(job.input.greedy, "greedy", ["text"]),
        parquet.read_of_run(job.input.questions, "questions"),
    )
    parquet.write(job.output[0], table, "overlap", provenance(**job.params.metadata))


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
