"""Check whether the contaminated models memorised their leaked questions."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.io.provenance import provenance
from zerogap.reporting.labels import Labels
from zerogap.reporting.render import save
from zerogap.reporting.sources import read_memorisation
from zerogap.reporting.tables.memorisation import memorisation

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

TITLE = "Check of memorisation"


def main(job: "Snakemake") -> None:
    labels = Labels.from_mapping(job.params.labels)
    table = memorisation(read_memorisation(job.params.checks), labels)
    table = table.of_run(TITLE, job.params.scale_note, job.params.scale)
    save(table, job.params.prefix, provenance(**job.params.metadata))


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
