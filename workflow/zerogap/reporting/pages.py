"""Pages about a run as a whole: the claims sheet, its outcome at a glance, and its provenance."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from zerogap.reporting.claims import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    VERDICTS,
    ClaimVerdict,
    Evidence,
)
from zerogap.reporting.render import Table, provenance_line, render_template, save_texts

CLAIMS_TITLE = "The paper's claims, checked on this run"
RULE = (
    "How a verdict is reached: every comparison has a bootstrap interval over questions, paired "
    "for two strategies. Supported: the whole interval is on the claim's side, in every "
    "comparison that the claim makes. Not supported: in at least one comparison, it is on the "
    "other side. Cannot tell: anything else, also where the run lacks a strategy of the claim. "
    "Each interval is for one comparison, so chance makes 'supported' harder to reach and 'not "
    "supported' easier for claims with several; none covers the variation over training seeds. "
    "The criteria are part of the code, and the paper's own numbers meet them; bounds that the "
    "paper does not give were set when the first toy-scale runs were known. In simulations "
    "(benchmarks/interval_study.py) 95 % intervals of SA-PPG exclude 0 for 4 to 6 % of pairs of "
    "equal strategies (2.5 to 4.7 % with a clean mean of .1), those of the other metrics for at "
    "most 6.8 %; differences in damage (Δ⁻, S-Δ⁻) are judged on intervals that are a third wider."
)
NO_EVIDENCE = "This run does not have the results that the claim is about."
MAX_SHOWN = 6  # comparisons; more are folded away in HTML
OTHER_FILES = {
    "claims.html": "the claims with their evidence",
    "checks/provenance.html": "configuration, versions and commit",
    "report.html": "Snakemake's report: all of this in one file, with captions and run times",
}
FIELDS = ("zerogap", "commit", "python", "platform", "engine", "device")

Links = Mapping[str, Mapping[str, str]]  # section → file name → title


def claims_markdown(verdicts: Sequence[ClaimVerdict], scale: str) -> str:
    """The sheet as Markdown, with a sentence on the size of the run."""
    summary = summary_sentence([v.verdict for v in verdicts])
    lines = [f"# {CLAIMS_TITLE}", "", scale, "", RULE, "", summary, ""]
    lines += ["| | Claim | Source | Verdict |", "| ---: | --- | --- | --- |"]
    lines += [
        f"| {number} | {v.claim.text} | {v.claim.place} | **{v.verdict}** |"
        for number, v in enumerate(verdicts, start=1)
    ]
    for number, v in enumerate(verdicts, start=1):
        lines += ["", f"## Claim {number}: {v.verdict}", ""]
        lines += [f"Criterion: {v.claim.criterion}", ""]
        lines += [f"- {e.sentence} → {e.verdict}" for e in v.evidence] or [f"- {NO_EVIDENCE}"]
    return "\n".join(lines) + "\n"


def claims_csv(verdicts: Sequence[ClaimVerdict]) -> str:
    """One row per comparison; a claim without any has one row with empty evidence."""
    columns = "claim about place text criterion verdict evidence evidence_verdict"
    rows = [
        (c.key, c.about, c.place, c.text, c.criterion, verdict, e.sentence, e.verdict)
        for c, verdict, evidence in verdicts
        for e in evidence or (Evidence("", ""),)
    ]
    return str(pd.DataFrame(rows, columns=columns.split()).to_csv(index=False))


def save_claims(
    verdicts: Sequence[ClaimVerdict], scale: str, prefix: str | Path, provenance: Mapping[str, Any]
) -> None:
    """Write `prefix`.md, .html and .csv; arguments as of `claims_markdown`."""
    footer = provenance_line(provenance)
    page = render_template(
        "claims.html.j2",
        title=CLAIMS_TITLE,
        scale=scale,
        rule=RULE,
        summary=summary_sentence([v.verdict for v in verdicts]),
        verdicts=[(v, _tally(v.evidence)) for v in verdicts],
        no_evidence=NO_EVIDENCE,
        footer=footer,
    )
    markdown = f"{claims_markdown(verdicts, scale)}\n<!-- {footer} -->\n"
    save_texts(prefix, {".md": markdown, ".html": page, ".csv": claims_csv(verdicts)})


def summary_sentence(verdicts: Sequence[str]) -> str:
    """How many claims have which verdict."""
    count = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    return (
        f"Of {len(verdicts)} claims, this run supports {count[SUPPORTED]}, does not support "
        f"{count[NOT_SUPPORTED]}, and cannot tell for {count[CANNOT_TELL]}."
    )


def _tally(evidence: Sequence[Evidence]) -> str:
    """The number of comparisons per verdict, if there are too many to show at once."""
    if len(evidence) <= MAX_SHOWN:
        return ""
    counts = ", ".join(f"{sum(e.verdict == v for e in evidence)} {v}" for v in VERDICTS)
    return f"{len(evidence)} comparisons: {counts}"


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
        claims: The CSV of `save_claims`.
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

    `software` is stage → field or package → version; `left_out` is benchmark → ids of the questions
    that do not leak because they have no paraphrase.
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
    """Field or package to its value, of the files of one stage; comma-separated if they differ."""
    values: dict[str, dict[str, None]] = {}
    for made_by in (part for whole in provenances for part in whole.get("shards", [whole])):
        for name, value in ({k: made_by.get(k) for k in FIELDS} | made_by["packages"]).items():
            if value is not None:
                values.setdefault(name, {})[str(value)] = None
    return {name: ", ".join(distinct) for name, distinct in values.items()}
