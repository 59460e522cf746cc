"""Tables about the run itself: memorisation, diagnostics, the extraction of answers, the cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from zerogap.analysis.diagnostics import ALL, CLEAN
from zerogap.data.token_kinds import KINDS
from zerogap.reporting.metric_table import Labels
from zerogap.reporting.render import Cell, Column, Row, Table
from zerogap.reporting.tables.rows import columns_of

JOB_COLUMNS = ["model", "benchmark", "job", "responses", "tokens", "seconds"]
# Kinds of jobs, by the name of their timing file; any other name is a strategy's cell.
JOBS = {
    "train_preparation": "Preparation of the base",
    "screen_questions": "Screening of questions",
    "train_lora": "LoRA training",
    "decode_greedy": "Greedy trajectories",
    "localise_neurons": "Shortcut neurons",
    "rank_clean_tokens": "Token ranks",
    "measure_recovery": "Recovery",
    "batch1": "Samples, first batch",
    "batch2": "Samples, second batch",
    "samples": "Samples of the strategies",
}
_PER_RESPONSE = "Rail steps per response:"
DIAGNOSTICS = {  # (measure, kind) → column
    ("rail_share", ALL): Column("rail_share", "Steps on the rail"),
    ("rail_steps", ALL): Column("rail_steps", "all", _PER_RESPONSE),
    **{("rail_steps", kind): Column(f"rail_{kind}", kind, _PER_RESPONSE) for kind in KINDS},
    ("drawn", ALL): Column("drawn", "Rail token drawn"),
    ("distinct", ALL): Column("distinct", "Distinct responses"),
    ("entropy", ALL): Column("entropy", "Entropy per greedy step"),
    ("recovery", ALL): Column("recovery", "Recovery rate"),
}
_DECIMALS = {"rail_steps": 1, "distinct": 1}

_Cells = Mapping[Any, Any]  # (measure, kind) → value and the ends of its interval


@dataclass(frozen=True)
class OwnerAgreement:
    """Agreement of the extraction rules on one benchmark's questions.

    Attributes:
        label: Name of the benchmark that owns the questions.
        run_rule: Name of the rule that the run scores it by.
        fractions: Strategy to its fractions, from `zerogap.analysis.extraction_agreement`.
    """

    label: str
    run_rule: str
    fractions: Mapping[str, Mapping[str, float]]


def memorisation(checks: pd.DataFrame, labels: Labels) -> Table:
    """One row per contaminated model, with the verdict and the numbers behind it.

    Args:
        checks: Rows of `zerogap.analysis.memorisation`.
        labels: Names to show.
    """
    columns = (
        Column("clean_leaked", "clean", group="Solved, leaked"),
        Column("identity_leaked", "contaminated", group="Solved, leaked"),
        Column("clean_unleaked", "clean", group="Solved, unleaked"),
        Column("identity_unleaked", "contaminated", group="Solved, unleaked"),
        Column("inflation", "Inflation"),
        Column("rouge_leaked", "leaked", group="ROUGE-L"),
        Column("rouge_unleaked", "unleaked", group="ROUGE-L"),
        Column("clean_rouge_unleaked", "unleaked, clean", group="ROUGE-L"),
        Column("collapse", "Collapse"),
        Column("excess", "Excess"),
        Column("share_verbatim", "Verbatim"),
    )
    rows, notes = [], []
    for row in checks.to_dict("records"):
        setting = labels.setting(row["model"], row["benchmark"])
        ends = [
            [row.get(f"{c.key}_ci_{end}", math.nan) for end in ("low", "high")] for c in columns
        ]
        cells = [Cell(row[c.key], *interval) for c, interval in zip(columns, ends, strict=True)]
        verdict = Cell(text=row["verdict"])
        rows.append(Row(f"{row['model']}/{row['benchmark']}", setting, (verdict, *cells)))
        notes.append(f"{setting}: {row['verdict']}. {row['text']}")
    return Table(
        index_label="Contaminated model",
        columns=(Column("verdict", "Verdict", align="l"), *columns),
        rows=tuple(rows),
        notes=tuple(notes),
        decimals=2,
    )


def extraction_agreement(agreements: Sequence[OwnerAgreement], labels: Labels) -> Table:
    """The same responses under every rule of answer extraction, one row per strategy.

    Args:
        agreements: One per benchmark with questions of its own; several have a section each.
        labels: Names to show.
    """
    columns = _extraction_columns(agreements)
    rows = []
    for owner in agreements:
        for strategy, fractions in owner.fractions.items():
            cells = [Cell(fractions["responses"], decimals=0)]
            cells += [Cell(fractions.get(column.key, math.nan)) for column in columns[1:]]
            section = owner.label if len(agreements) > 1 else ""
            rows.append(Row(strategy, labels.strategy(strategy), tuple(cells), section))
    return Table(
        index_label="Strategy",
        columns=columns,
        rows=tuple(rows),
        decimals=3,
    )


def _extraction_columns(agreements: Sequence[OwnerAgreement]) -> tuple[Column, ...]:
    """Number of responses, then groups of fractions, one column per rule that any owner has."""
    run_rules = list(dict.fromkeys(owner.run_rule for owner in agreements))
    run_rule = run_rules[0] if len(run_rules) == 1 else "the run's rule"
    groups = {"answered": "Answered", "correct": "Correct", "agree": f"Same mark as {run_rule}"}
    keys = dict.fromkeys(
        key for owner in agreements for fractions in owner.fractions.values() for key in fractions
    )
    columns = [Column("responses", "Responses")]
    for kind, group in groups.items():
        for key in keys:
            key_kind, _, rule = key.partition(" ")
            if key_kind == kind:
                columns.append(Column(key, run_rule if rule == "own" else rule, group=group))
    return tuple(columns)


def cost(jobs: pd.DataFrame, labels: Labels) -> Table:
    """One row per job, under a heading per model and benchmark, and sums per kind of job.

    Args:
        jobs: One row per job, `JOB_COLUMNS`; NaN where a job generates no responses or has no
            timing. The preparation of a base has no benchmark ("").
        labels: Names to show.
    """
    kinds = jobs["job"].where(jobs["job"].isin(list(JOBS)), "samples").map(JOBS)
    rows = []
    for key, group in jobs.groupby(["model", "benchmark", "job"], sort=False):
        model, benchmark, job = map(str, key)
        section = labels.setting(model, benchmark) if benchmark else labels.models[model]
        name = JOBS.get(job) or labels.strategy(job)
        rows.append(Row(f"{model}/{benchmark}/{job}", name, _totals(group), section))
    for kind in JOBS.values():
        group = jobs[kinds == kind]
        if len(group):
            rows.append(Row(kind.lower(), f"{kind} ({len(group)})", _totals(group), "Total"))
    rows.append(Row("all", f"All ({len(jobs)})", _totals(jobs), "Total", bold=True))
    untimed = int(jobs["seconds"].isna().sum())
    note = f"{untimed} job(s) have no timing; the totals leave out their seconds."
    return Table(
        index_label="Job",
        columns=columns_of(
            {
                "responses": "Responses",
                "tokens": "Tokens",
                "tokens_per_response": "Tokens per response",
                "seconds": "Seconds",
                "tokens_per_second": "Tokens/s",
            }
        ),
        rows=tuple(rows),
        notes=(note,) if untimed else (),
    )


def _totals(jobs: pd.DataFrame) -> tuple[Cell, ...]:
    """Sums over jobs; tokens per second only from jobs with known tokens and seconds."""
    responses, tokens, seconds = jobs[["responses", "tokens", "seconds"]].sum(min_count=1)
    timed = jobs.dropna(subset=["tokens", "seconds"])
    speed = timed["tokens"].sum() / timed["seconds"].sum() if len(timed) else float("nan")
    return (
        Cell(responses, decimals=0),
        Cell(tokens, decimals=0),
        Cell(tokens / responses, decimals=1),
        Cell(seconds, decimals=1),
        Cell(speed, decimals=0),
    )


def diagnostics(values: pd.DataFrame, labels: Labels) -> Table:
    """One row per set of responses and subset, each setting under its own heading.

    Args:
        values: Columns model and benchmark, and those of
            :func:`zerogap.analysis.diagnostics.diagnostics`.
        labels: Names to show.
    """
    rows, notes = [], []
    for key, setting in values.groupby(["model", "benchmark"], sort=False):
        section = labels.setting(*map(str, key))
        for group, table in setting.groupby(["responses", "subset"], sort=False):
            responses, subset = map(str, group)
            cells = _by_column(table)
            name = labels.strategy(responses)
            rows.append(
                Row(
                    f"{responses}@{subset}",
                    name if responses == CLEAN else f"{name}, {subset}",
                    tuple(_measure(cells, *column) for column in DIAGNOSTICS),
                    section,
                )
            )
        clean = _by_column(setting[setting["responses"] == CLEAN])
        notes.append(f"Recovery rate of {section}: {_recovery(clean)}.")
    return Table(
        index_label="Responses",
        columns=tuple(DIAGNOSTICS.values()),
        rows=tuple(rows),
        notes=tuple(notes),
        decimals=2,
    )


def _by_column(rows: pd.DataFrame) -> _Cells:
    values = rows.set_index(["measure", "kind"])[["value", "ci_low", "ci_high"]]
    return {key: tuple(ends) for key, *ends in values.itertuples()}


def _measure(cells: _Cells, measure: str, kind: str) -> Cell:
    value, low, high = cells.get((measure, kind), (math.nan, math.nan, math.nan))
    return Cell(value, low, high, decimals=_DECIMALS.get(measure))


def _recovery(cells: _Cells) -> str:
    """The recovery rate with its interval, and by kind of the token that was replaced."""
    overall, *by_kind = (_measure(cells, "recovery", kind) for kind in (ALL, *KINDS))
    listed = ", ".join(
        f"{kind} {cell.format(2)}" for kind, cell in zip(KINDS, by_kind, strict=True)
    )
    rate = f"{overall.format(2)} {overall.format_interval(2)}".strip()
    return f"{rate}; by kind of the token replaced: {listed}"
