"""Make one table of the catalogue as CSV, Markdown, LaTeX, HTML and JSON."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.io.provenance import provenance
from zerogap.reporting.catalog import TABLES
from zerogap.reporting.render import save
from zerogap.reporting.sources import build

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    entry = TABLES[job.wildcards.table]
    table = build(entry, job.params.sources)
    table = table.of_run(entry.title, job.params.scale_note, job.params.scale)
    save(table, job.params.prefix, provenance(**job.params.metadata))


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
