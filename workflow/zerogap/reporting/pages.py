"""Pages about a run as a whole: its outcome at a glance, and its provenance."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from zerogap.reporting.claim_sheet import summary_sentence
from zerogap.reporting.render import Table
from zerogap.reporting.templates import render_template

OTHER_FILES = {
    "claims.html": "the claims with their evidence",
    "checks/provenance.html": "configuration, versions and commit",
    "report.html": "Snakemake's report: all of this in one file, with captions and run times",
}
FIELDS = ("zerogap", "commit", "python", "platform", "engine", "device")

Links = Mapping[str, Mapping[str, str]]  # section → file name → title


def outcome_html(
    scale_note: str,
    scale: str,
    table: Table,
    claims: pd.DataFrame,
    figures: Mapping[str, Path],
    outdated: Sequence[str],
) -> str:
    """What a run found, in short: without the frame of a page, for Snakemake's report.

    Args:
        scale_note: What its models and data are; empty if they are the paper's.
        scale: One sentence on the size of the run.
        table: Table 3.
        claims: The sheet of claims, one row per comparison: columns claim, about, place,
            text, verdict.
        figures: Title → PNG file.
        outdated: Files of responses that other code made than today's.
    """
    verdicts = claims.drop_duplicates("claim")
    return render_template(
        "outcome.html.j2",
        scale_note=scale_note,
        scale=scale,
        table=table,
        summary=summary_sentence(list(verdicts["verdict"])),
        claims={
            about: rows.to_dict("records") for about, rows in verdicts.groupby("about", sort=False)
        },
        figures={
            title: f"data:image/png;base64,{b64encode(path.read_bytes()).decode()}"
            for title, path in figures.items()
        },
        outdated=outdated,
    )


def index_html(run: str, fragment: str, tables: Links, figures: Links, footer: str) -> str:
    """The outcome as a page, with links to everything else; it loads no other file."""
    return render_template(
        "index.html.j2",
        title=f"Run “{run}”",
        outcome=fragment,
        tables=tables,
        figures=figures,
        files=OTHER_FILES,
        footer=footer,
    )


def provenance_html(
    software: Mapping[str, Mapping[str, str]],
    left_out: Mapping[str, Sequence[str]],
    config: Mapping[str, Any],
    scale: str,
    footer: str,
) -> str:
    """Where a run comes from: one column of versions per stage, and the configuration as YAML.

    Args:
        software: Stage → field or package → version.
        left_out: Benchmark → ids of the questions that do not leak because they have no paraphrase.
        config: The configuration with every overlay applied.
        scale: One sentence on the size of the run.
        footer: Last line of the page.
    """
    return render_template(
        "provenance.html.j2",
        title="Provenance of this run",
        scale=scale,
        left_out=left_out,
        stages=software,
        names=list(dict.fromkeys(name for versions in software.values() for name in versions)),
        config=yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=100),
        footer=footer,
    )


def collect_versions(provenances: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Field or package to its value; several values, comma-separated, if the files differ.

    Args:
        provenances: Provenance of every file of one stage.
    """
    values: dict[str, dict[str, None]] = {}
    for made_by in provenances:
        for name, value in ({k: made_by.get(k) for k in FIELDS} | made_by["packages"]).items():
            if value is not None:
                values.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(distinct) for name, distinct in values.items()}
