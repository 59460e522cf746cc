"""Make one table as CSV, Markdown, LaTeX and HTML."""

from dataclasses import replace

from script_helpers import Job, run_job
from zerogap.io.provenance import provenance
from zerogap.pipeline.report.tables import TABLES
from zerogap.reporting.render import save


def main(job: Job) -> None:
    entry = TABLES[job.wildcards.table]
    table = entry.source.read(job.params.source)
    table = replace(
        table,
        label=f"tab:{job.wildcards.table}",
        title=entry.title("Table"),
        caption=f"{entry.caption} {job.params.scale_note}".rstrip(),
        notes=(*table.notes, job.params.scale),
    )
    save(table, job.params.prefix, provenance(**job.params.metadata))


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
