"""Filter the responses of another strategy."""

from pathlib import Path

from script_helpers import Job, run_job
from zerogap.sampling import tables


def main(job: Job) -> None:
    tables.filter_responses(
        questions=Path(job.input.questions),
        greedy=Path(job.input.greedy),
        source=Path(job.input.source),
        samples=Path(job.output.samples),
        solve=Path(job.output.solve),
        strategy=job.params.strategy,
        metadata=job.params.metadata,
    )


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
