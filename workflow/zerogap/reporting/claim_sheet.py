"""The claims sheet: the verdict on every claim, with its evidence, as Markdown, HTML and CSV."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.reporting.claims import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    VERDICTS,
    ClaimVerdict,
    Evidence,
)
from zerogap.reporting.render import provenance_line, save_texts
from zerogap.reporting.templates import render_template

TITLE = "The paper's claims, checked on this run"
RULE = (
    "How a verdict is reached: every comparison has a bootstrap interval over questions, paired "
    "for two strategies. Supported: the whole interval is on the claim's side, in every comparison "
    "that the claim makes. Not supported: in at least one comparison, it is on the other side. "
    "Cannot tell: anything else, also where the run lacks a strategy of the claim. Each interval "
    "is for one comparison, so chance makes 'supported' harder to reach and 'not supported' easier "
    "for claims with several; none covers the variation over training seeds. The criteria are part "
    "of the code, and the paper's own numbers meet them; bounds that the paper does not give were "
    "set when the first toy-scale runs were known. In simulations (docs/metric.md) intervals of "
    "SA-PPG exclude 0 for 4 to 6 % of pairs of equal strategies (2.5 to 4.7 % with a clean mean of "
    ".1), those of the other metrics for at most 6.8 %; differences in damage (Δ⁻, S-Δ⁻) are "
    "judged on intervals that are a third wider."
)
NO_EVIDENCE = "This run does not have the results that the claim is about."
MAX_SHOWN = 6  # comparisons; more are folded away in HTML


def to_markdown(verdicts: Sequence[ClaimVerdict], scale: str) -> str:
    """The sheet as Markdown.

    Args:
        verdicts: One per claim.
        scale: A sentence on the size of the run.
    """
    summary = summary_sentence([v.verdict for v in verdicts])
    lines = [f"# {TITLE}", "", scale, "", RULE, "", summary, ""]
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


def to_csv(verdicts: Sequence[ClaimVerdict]) -> str:
    """One row per comparison; a claim without any has one row with empty evidence."""
    rows = [
        {
            "claim": v.claim.key,
            **{name: getattr(v.claim, name) for name in ("about", "place", "text", "criterion")},
            **{"verdict": v.verdict, "evidence": e.sentence, "evidence_verdict": e.verdict},
        }
        for v in verdicts
        for e in v.evidence or (Evidence("", ""),)
    ]
    return str(pd.DataFrame(rows).to_csv(index=False))


def save(
    verdicts: Sequence[ClaimVerdict], scale: str, prefix: str | Path, provenance: Mapping[str, Any]
) -> None:
    """Write `prefix`.md, .html and .csv; arguments as of `to_markdown`."""
    footer = provenance_line(provenance)
    page = render_template(
        "claims.html.j2",
        title=TITLE,
        scale=scale,
        rule=RULE,
        summary=summary_sentence([v.verdict for v in verdicts]),
        verdicts=[(v, _tally(v.evidence)) for v in verdicts],
        no_evidence=NO_EVIDENCE,
        footer=footer,
    )
    markdown = f"{to_markdown(verdicts, scale)}\n<!-- {footer} -->\n"
    save_texts(prefix, {".md": markdown, ".html": page, ".csv": to_csv(verdicts)})


def summary_sentence(verdicts: Sequence[str]) -> str:
    """How many claims have which verdict.

    Args:
        verdicts: One per claim.
    """
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
