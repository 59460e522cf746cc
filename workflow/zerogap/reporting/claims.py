"""The paper's claims, each judged on a run: supported, not supported, or cannot tell.

A claim is a list of findings, one a comparison. A finding is supported where its whole interval
lies on the claim's side, not supported where the whole interval lies on the other side, and cannot
tell in between, or without an interval. A claim is supported where all its findings are, and not
supported where one of them is not.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from zerogap.io import parquet
from zerogap.reporting.html_page import page
from zerogap.reporting.render import Cell, html, number, provenance_line
from zerogap.reporting.tables import Labels, MetricTable

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = "supported", "not supported", "cannot tell"

METRICS = {
    "g_ap": "G-AP",
    "g_app": "G-APP",
    "a_ppg": "A-PPG",
    "sa_ppg": "SA-PPG",
    "delta_minus": "Δ⁻",
}

RULE = (
    "How a verdict is reached: every comparison has a bootstrap interval over questions, and "
    "two strategies are compared on the same resampled questions. Supported: the whole interval is "
    "on the claim's side, in every comparison that the claim makes. Not supported: in one "
    "comparison at least, the whole interval is on the other side. Cannot tell: anything else. The "
    "intervals say what other questions might have read. They do not hold the chance of training "
    "(one training a model). Each is of one comparison alone: a claim of several needs all of "
    "them, so that chance makes it no easier to support, but easier to miss. Where most strata "
    "hold one or two questions, intervals of SA-PPG are too narrow (docs/metric-study.md)."
)


@dataclass(frozen=True)
class Evidence:
    """What a run measured.

    Attributes:
        readings: of all models and benchmarks.
        setting: (model, benchmark) of the paper's single-setting experiments.
        numbers: key → reading, the table of `zerogap.analysis.inline_numbers` (of that setting).
        collapse: (model, benchmark) → difference of ROUGE-L between leaked and unleaked questions.
        labels: names to show.
    """

    readings: MetricTable
    setting: tuple[str, str]
    numbers: Mapping[str, Cell]
    collapse: Mapping[tuple[str, str], Cell]
    labels: Labels


@dataclass(frozen=True)
class Finding:
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Claim:
    """`reading` says how a word that is no number ("about half") is judged here."""

    key: str
    place: str
    text: str
    judge: Callable[[Evidence], Iterable[Finding]]
    reading: str = ""


@dataclass(frozen=True)
class Judgement:
    claim: Claim
    verdict: str
    findings: tuple[Finding, ...]


def judge(evidence: Evidence) -> list[Judgement]:
    """Every claim of `CLAIMS`, in the paper's order."""
    judged = []
    for claim in CLAIMS:
        findings = tuple(claim.judge(evidence))
        verdicts = {finding.verdict for finding in findings}
        if verdicts == {SUPPORTED}:
            verdict = SUPPORTED
        else:
            verdict = NOT_SUPPORTED if NOT_SUPPORTED in verdicts else CANNOT_TELL
        judged.append(Judgement(claim, verdict, findings))
    return judged


def within(interval: Cell, low: float, high: float) -> str:
    """The verdict on "the reading is between `low` and `high`"."""
    if interval.low is None or interval.high is None:
        return CANNOT_TELL
    if low <= interval.low and interval.high <= high:
        return SUPPORTED
    return NOT_SUPPORTED if interval.high < low or interval.low > high else CANNOT_TELL


def below_zero(difference: Cell) -> str:
    """The verdict on "the difference is negative"; an interval that touches 0 cannot tell."""
    if difference.low is None or difference.high is None:
        return CANNOT_TELL
    if difference.high < 0:
        return SUPPORTED
    return NOT_SUPPORTED if difference.low > 0 else CANNOT_TELL


def _lower(
    evidence: Evidence, setting: tuple[str, str], metric: str, strategy: str, reference: str
) -> Iterable[Finding]:
    """The claim that `strategy` reads lower than `reference`; nothing where either was not run."""
    # Differences are stored against some references only: the other way round has its sign turned.
    difference = evidence.readings.get(*setting, strategy, f"{metric}_vs_{reference}")
    if difference is None:
        turned = evidence.readings.get(*setting, reference, f"{metric}_vs_{strategy}")
        difference = turned and _negative(turned)
    own = evidence.readings.get(*setting, strategy, metric)
    other = evidence.readings.get(*setting, reference, metric)
    if difference is None or own is None or other is None:
        return
    names = evidence.labels.strategies
    yield Finding(
        below_zero(difference),
        f"{evidence.labels.setting(*setting)}, {METRICS[metric]}: "
        f"{names.get(strategy, strategy)} {_reading(own)}, "
        f"{names.get(reference, reference)} {_reading(other)}, "
        f"difference {_with_interval(difference)}.",
    )


def _reversal(evidence: Evidence) -> Iterable[Finding]:
    yield from _lower(evidence, evidence.setting, "g_ap", "lne_blocking", "railcap")
    yield from _lower(evidence, evidence.setting, "sa_ppg", "railcap", "lne_blocking")
    yield from _lower(evidence, evidence.setting, "sa_ppg", "shortcut", "lne_blocking")


def _railcap_lowest(evidence: Evidence) -> Iterable[Finding]:
    for setting in evidence.readings.settings(evidence.labels):
        for other in ("identity", "ted", "shortcut", "lne_blocking"):
            yield from _lower(evidence, setting, "sa_ppg", "railcap", other)


def _all_zero(evidence: Evidence) -> Iterable[Finding]:
    yield from _lower(evidence, evidence.setting, "a_ppg", "all_zero", "identity")
    for other in ("identity", "ted", "shortcut", "lne_blocking", "railcap"):
        yield from _lower(evidence, evidence.setting, "sa_ppg", other, "all_zero")


def _cancellation(evidence: Evidence) -> Iterable[Finding]:
    yield from _lower(evidence, evidence.setting, "delta_minus", "railcap", "lne_blocking")
    yield from _lower(evidence, evidence.setting, "g_app", "lne_blocking", "railcap")
    yield from _lower(evidence, evidence.setting, "a_ppg", "railcap", "lne_blocking")


def _ted_is_identity(evidence: Evidence) -> Iterable[Finding]:
    for setting in evidence.readings.settings(evidence.labels):
        difference = evidence.readings.get(*setting, "ted", "sa_ppg_vs_identity")
        if difference is not None:
            yield Finding(
                within(difference, -0.02, 0.02),
                f"{evidence.labels.setting(*setting)}: SA-PPG of TED minus Identity's "
                f"{_with_interval(difference)}.",
            )


def _lne_worse_on_pq(evidence: Evidence) -> Iterable[Finding]:
    for model, benchmark in evidence.readings.settings(evidence.labels):
        if benchmark == "pq":
            yield from _lower(evidence, (model, benchmark), "sa_ppg", "identity", "lne_blocking")


def _threshold_is_robust(evidence: Evidence) -> Iterable[Finding]:
    rows = ("railcap_n3", "railcap", "railcap_n5", "railcap_n7")
    found = {
        row: cell.value
        for row in rows
        if (cell := evidence.readings.get(*evidence.setting, row, "sa_ppg")) is not None
    }
    if len(found) < 2:
        return
    best = min(found, key=found.__getitem__)
    names = {**evidence.labels.strategies, **evidence.labels.configurations}
    for row in found:
        if row == best:
            continue
        difference = evidence.readings.get(*evidence.setting, row, f"sa_ppg_vs_{best}")
        if difference is not None:
            yield Finding(
                within(difference, float("-inf"), 0.008),
                f"{evidence.labels.setting(*evidence.setting)}: SA-PPG of {names.get(row, row)} "
                f"minus that of the best, {names.get(best, best)}: {_with_interval(difference)}.",
            )


def _cap_beats_ban(evidence: Evidence) -> Iterable[Finding]:
    yield from _lower(evidence, evidence.setting, "sa_ppg", "railcap", "railcap_ban")


def _probability_reproduces(evidence: Evidence) -> Iterable[Finding]:
    mark = evidence.numbers.get("readout_gap_01")
    chance = evidence.numbers.get("readout_gap_probability")
    if mark is None or chance is None:
        return
    known = None not in (mark.low, mark.high, chance.low, chance.high)
    verdict = CANNOT_TELL
    if known and chance.high < mark.low:
        verdict = SUPPORTED
    elif known and chance.low > mark.high:
        verdict = NOT_SUPPORTED
    yield Finding(
        verdict,
        f"Mean per-question gap of two clean batches: {_with_interval(mark)} by the 0/1 readout, "
        f"{_with_interval(chance)} by the solve probability.",
    )


def _number_within(key: str, low: float, high: float, name: str) -> Callable:
    def findings(evidence: Evidence) -> Iterable[Finding]:
        cell = evidence.numbers.get(key)
        if cell is not None:
            yield Finding(within(cell, low, high), f"{name}: {_with_interval(cell)}.")

    return findings


def _collapse(evidence: Evidence) -> Iterable[Finding]:
    for setting, difference in evidence.collapse.items():
        yield Finding(
            below_zero(_negative(difference)),
            f"{evidence.labels.setting(*setting)}: mean ROUGE-L with the greedy response, leaked "
            f"minus unleaked questions: {_with_interval(difference)}.",
        )


CLAIMS = (
    Claim(
        "collapse",
        "Section 1, Figure 1 a, c",
        "On leaked questions the contaminated model's responses collapse onto its greedy "
        "trajectory; on unleaked ones they disperse.",
        _collapse,
        reading="Mean ROUGE-L with the greedy response is higher on leaked questions.",
    ),
    Claim(
        "runner_up",
        "Section 1, Figure 1 b",
        "Where the two models disagree, the clean model's token is in about half of the cases the "
        "contaminated model's runner-up.",
        _number_within(
            "share_runner_up", 0.4, 0.6, "Share of disagreements with the clean token at rank 2"
        ),
        reading="Between 0.4 and 0.6 of the disagreements on leaked questions.",
    ),
    Claim(
        "never_solved",
        "Section 1",
        "The clean model never solves nearly a quarter of the questions.",
        _number_within("share_never_solved", 0.2, 0.3, "Share of questions never solved"),
        reading="Between 0.2 and 0.3 of them have no correct response among the samples.",
    ),
    Claim(
        "reversal",
        "Section 5.2.1, Table 1",
        "The metric turns the verdict: under G-AP LNE-blocking is ahead of RailCap; under SA-PPG "
        "it is behind RailCap and behind Shortcut.",
        _reversal,
    ),
    Claim(
        "readout",
        "Section 5.2.2, Figure 2",
        "The solve probability reproduces between two batches of one model, the 0/1 readout does "
        "not: mean per-question gaps of 0.041 and 0.190.",
        _probability_reproduces,
        reading="The gap of solve probabilities is smaller, and the two intervals do not touch.",
    ),
    Claim(
        "cancellation",
        "Section 5.2.2, Table 2",
        "LNE-blocking does more damage (Δ⁻) than RailCap, yet G-APP reads lower for it, because "
        "damage cancels residual contamination; A-PPG puts RailCap ahead.",
        _cancellation,
    ),
    Claim(
        "all_zero",
        "Section 5.2.2, Table 2",
        "Failing every question beats no intervention under A-PPG, and is the worst of all under "
        "SA-PPG.",
        _all_zero,
    ),
    Claim(
        "railcap_lowest",
        "Section 5.3.1, Table 3",
        "RailCap has the lowest SA-PPG in every setting.",
        _railcap_lowest,
    ),
    Claim(
        "ted_is_identity",
        "Section 5.3.1, Table 3",
        "TED is nearly indistinguishable from Identity in every setting.",
        _ted_is_identity,
        reading="SA-PPG within 0.02; the largest difference in the paper is 0.018.",
    ),
    Claim(
        "lne_worse_on_pq",
        "Section 5.3.1, Table 3",
        "On PQ, LNE-blocking is worse than no intervention for every model.",
        _lne_worse_on_pq,
    ),
    Claim(
        "threshold",
        "Section 5.3.2, Table 4",
        "The choice of n is robust: n from 3 to 7 stays within 0.008 of the best SA-PPG.",
        _threshold_is_robust,
    ),
    Claim(
        "cap_beats_ban",
        "Section 5.3.2, Table 4",
        "Capping the rail token at the runner-up is better than banning it.",
        _cap_beats_ban,
    ),
)


def to_markdown(judged: Sequence[Judgement], scale: str) -> str:
    lines = ["# The paper's claims, on this run", "", scale, "", RULE, "", _count(judged), ""]
    lines += ["| Claim | Where | Verdict |", "| --- | --- | --- |"]
    lines += [f"| {j.claim.text} | {j.claim.place} | **{j.verdict}** |" for j in judged]
    for j in judged:
        lines += ["", f"## {j.claim.place}: {j.verdict}", "", j.claim.text, ""]
        lines += [f"Judged as: {j.claim.reading}", ""] if j.claim.reading else []
        lines += [f"- {f.sentence} → {f.verdict}" for f in j.findings] or [f"- {_NOTHING}"]
    return "\n".join(lines) + "\n"


def to_html(judged: Sequence[Judgement], scale: str, footer: str = "") -> str:
    parts = [
        "<h1>The paper's claims, on this run</h1>",
        f"<p><strong>{html(scale)}</strong></p>",
        f'<p class="note">{html(RULE)}</p>',
        f"<p>{html(_count(judged))}</p>",
    ]
    for j in judged:
        findings = "\n".join(f"<li>{html(f.sentence)} {_badge(f.verdict)}</li>" for f in j.findings)
        evidence = f"<ul>\n{findings or f'<li>{_NOTHING}</li>'}\n</ul>"
        if len(j.findings) > 6:
            tally = ", ".join(
                f"{sum(f.verdict == v for f in j.findings)} {v}"
                for v in (SUPPORTED, NOT_SUPPORTED, CANNOT_TELL)
            )
            evidence = (
                f"<details><summary>{len(j.findings)} comparisons: {tally}</summary>"
                f"{evidence}</details>"
            )
        read_as = f"Judged as: {j.claim.reading}" if j.claim.reading else ""
        parts.append(
            f"<h2>{_badge(j.verdict)} {html(j.claim.text)}</h2>\n"
            f'<p class="note">{escape(f"{j.claim.place}. {read_as}")}</p>\n{evidence}'
        )
    return page("The paper's claims, on this run", "\n".join(parts), footer)


def to_csv(judged: Sequence[Judgement]) -> str:
    """A row a finding; a claim without any has one row with an empty finding."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["claim", "place", "text", "verdict", "finding", "finding_verdict"])
    for j in judged:
        head = [j.claim.key, j.claim.place, j.claim.text, j.verdict]
        for finding in j.findings or (Finding("", ""),):
            writer.writerow([*head, finding.sentence, finding.verdict])
    return out.getvalue()


def save(
    judged: Sequence[Judgement], scale: str, prefix: str | Path, provenance: Mapping[str, Any]
) -> None:
    """Write `prefix`.md, .html and .csv."""
    footer = provenance_line(provenance)
    for suffix, text in {
        ".md": f"{to_markdown(judged, scale)}\n<!-- {footer} -->\n",
        ".html": to_html(judged, scale, footer),
        ".csv": to_csv(judged),
    }.items():
        with parquet.atomic(f"{prefix}{suffix}") as path:
            path.write_text(text, encoding="utf-8")


_NOTHING = "This run does not have what the claim is about."


def _count(judged: Sequence[Judgement]) -> str:
    counts = {v: sum(j.verdict == v for j in judged) for v in (SUPPORTED, NOT_SUPPORTED)}
    rest = len(judged) - sum(counts.values())
    return (
        f"Of {len(judged)} claims, this run supports {counts[SUPPORTED]}, does not support "
        f"{counts[NOT_SUPPORTED]}, and cannot tell for {rest}."
    )


def _badge(verdict: str) -> str:
    return f'<span class="badge {verdict.replace(" ", "-")}">{verdict}</span>'


def _negative(cell: Cell) -> Cell:
    turn = (None if x is None else -x for x in (cell.value, cell.high, cell.low))
    return Cell(*turn)


def _reading(cell: Cell) -> str:
    return number(cell.value, 3)


def _with_interval(cell: Cell) -> str:
    return f"{number(cell.value, 3)} {cell.interval(3) or '(no interval)'}"
