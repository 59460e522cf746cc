"""Make one figure as PDF, PNG and SVG."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.pipeline.report.figures import FIGURES
from zerogap.reporting.figures.style import save

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    save(FIGURES[job.wildcards.figure].source.read(job.params.source), job.params.prefix)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
