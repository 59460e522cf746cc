"""Make one figure as PDF, PNG and SVG."""

from script_helpers import Job, run_job
from zerogap.pipeline.report.figures import FIGURES
from zerogap.reporting.figures import save


def main(job: Job) -> None:
    save(FIGURES[job.wildcards.figure].source.read(job.params.source), job.params.prefix)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
