"""The first page of a run: what was run, Table 3, the verdicts and Figures 1 and 2 at a glance."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from zerogap.reporting.catalog import FIGURES, SECTIONS, TABLES, Entry
from zerogap.reporting.claims.sheet import summary_sentence
from zerogap.reporting.render import Table
from zerogap.reporting.templates import render_template

OTHER_FILES = {
    "claims.html": "the claims with their evidence",
    "checks/memorisation.html": "whether the models memorised the leaked questions",
    "checks/provenance.html": "configuration, versions and commit",
    "report.html": "Snakemake's report: all of this in one file, with captions and run times",
    "rulegraph.svg": "graph of the rules",
    "dag.svg": "graph of the jobs",
}


@dataclass(frozen=True)
class Outcome:
    """What a run found, in short.

    Attributes:
        run: Name of the run.
        scale_note: What its models and data are; empty if they are the paper's.
        scale: One sentence on the size of the run.
        table: Table 3.
        claims: The sheet of claims, one row per comparison: columns claim, place, text, verdict.
        figures: Name of a figure in the catalogue → its PNG file.
    """

    run: str
    scale_note: str
    scale: str
    table: Table
    claims: pd.DataFrame
    figures: Mapping[str, Path]

    def to_fragment(self) -> str:
        """The outcome without the frame of a page, for the first page of Snakemake's report."""
        claims = self.claims.drop_duplicates("claim").to_dict("records")
        return render_template(
            "outcome.html.j2",
            outcome=self,
            summary=summary_sentence([claim["verdict"] for claim in claims]),
            claims=claims,
            figures=[(FIGURES[name], _data_uri(path)) for name, path in self.figures.items()],
        )

    def to_html(self, footer: str) -> str:
        """The page, with links to everything else; it loads no other file."""
        return render_template(
            "index.html.j2",
            title=f"Run “{self.run}”",
            outcome=self.to_fragment(),
            tables=_by_section(list(TABLES.values())),
            figures=_by_section(list(FIGURES.values())),
            files=OTHER_FILES,
            footer=footer,
        )


def _by_section(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    sections = [(name, [entry for entry in entries if entry.section == name]) for name in SECTIONS]
    return [(name, members) for name, members in sections if members]


def _data_uri(path: Path) -> str:
    return f"data:image/png;base64,{b64encode(path.read_bytes()).decode()}"
