"""Write the first page of the run, and its content for the first page of Snakemake's report."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from script_helpers import run_job
from zerogap.io.provenance import provenance
from zerogap.reporting.catalog import FIRST_PAGE_FIGURES, TABLES
from zerogap.reporting.index_page import Outcome
from zerogap.reporting.render import provenance_line, save_texts
from zerogap.reporting.sources import build

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    params, entry = job.params, TABLES["main"]
    outcome = Outcome(
        run=params.metadata["run"],
        scale_note=params.scale_note,
        scale=params.scale,
        table=replace(build(entry, params.sources), title=entry.title),
        claims=pd.read_csv(job.input.claims),
        figures=dict(zip(FIRST_PAGE_FIGURES, map(Path, job.input.figures), strict=True)),
    )
    footer = provenance_line(provenance(**params.metadata))
    save_texts("", {job.output.index: outcome.to_html(footer)})
    save_texts("", {job.output.fragment: outcome.to_fragment()})


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
