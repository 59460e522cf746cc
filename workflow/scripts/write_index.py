"""Write the first page of the run, and its content for the first page of Snakemake's report."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from script_helpers import Job, run_job
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.pipeline.report.entry import Entry
from zerogap.pipeline.report.figures import FIGURES, FIRST_PAGE
from zerogap.pipeline.report.tables import TABLES
from zerogap.reporting.pages import index_html, outcome_html
from zerogap.reporting.render import provenance_line, save_texts


def main(job: Job) -> None:
    params, entry = job.params, TABLES["main"]
    figures = zip(FIRST_PAGE, map(Path, job.input.figures), strict=True)
    fragment = outcome_html(
        scale_note=params.scale_note,
        scale=params.scale,
        table=replace(
            entry.source.read(params.source), title=entry.title("Table"), caption=entry.caption
        ),
        claims=pd.read_csv(job.input.claims),
        figures={FIGURES[name].title("Figure"): path for name, path in figures},
        outdated=outdated(params.code_of_responses),
    )
    footer = provenance_line(provenance(**params.metadata))
    links = links_to(TABLES, "Table"), links_to(FIGURES, "Figure")
    page = index_html(params.metadata["run"], fragment, *links, footer)
    save_texts("", {job.output.index: page, job.output.fragment: fragment})


def outdated(code_of_responses: Mapping[str, str]) -> list[str]:
    """The files of responses that other code made than today's, or one of their shards."""
    return [path for path, code in code_of_responses.items() if digests(path) != {code}]


def digests(path: str) -> set[str | None]:
    """Of the code that made a file, or its shards."""
    made_by = parquet.provenance(path)
    return {shard.get("code_digest") for shard in made_by.get("shards", [made_by])}


def links_to(entries: Mapping[str, Entry[Any]], kind: str) -> dict[str, dict[str, str]]:
    """The titles by file name, in their sections."""
    sections: dict[str, dict[str, str]] = {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1].section):
        sections.setdefault(entry.section, {})[name] = entry.title(kind)
    return sections


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
