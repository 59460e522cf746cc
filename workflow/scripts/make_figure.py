"""Make one figure of the catalogue as PDF, PNG and SVG."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.reporting.catalog import FIGURES
from zerogap.reporting.figures.style import save
from zerogap.reporting.sources import build

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    save(build(FIGURES[job.wildcards.figure], job.params.sources), job.params.prefix)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
