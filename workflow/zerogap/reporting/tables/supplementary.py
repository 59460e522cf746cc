"""Tables that the paper does not have: on the metrics, and on the run itself."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from zerogap.analysis.diagnostics import ALL, CLEAN
from zerogap.data.token_kinds import KINDS
from zerogap.reporting.metric_table import METRIC_LABELS, SUBSETS, Labels, MetricTable, ordered
from zerogap.reporting.render import Cell, Column, Row, Table
from zerogap.reporting.tables.rows import NOISE_FLOOR, columns_of, difference_notes, record_rows

JOB_COLUMNS = ["model", "benchmark", "job", "responses", "tokens", "seconds"]
# Kinds of jobs, by the name of their timing file; any other name is a strategy's cell.
JOBS = {
    "train_preparation": "Preparation of the base",
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
    ("rail_steps", ALL): Column("rail_steps", ALL, _PER_RESPONSE, decimals=1),
    **{
        ("rail_steps", kind): Column(f"rail_{kind}", kind, _PER_RESPONSE, decimals=1)
        for kind in KINDS
    },
    ("drawn", ALL): Column("drawn", "Rail token drawn"),
    ("distinct", ALL): Column("distinct", "Distinct responses", decimals=1),
    ("entropy", ALL): Column("entropy", "Entropy per greedy step"),
    ("recovery", ALL): Column("recovery", "Recovery rate"),
}


def intervals(values: MetricTable, labels: Labels) -> Table:
    """Metric values with intervals, and paired differences between strategies."""
    columns = columns_of(
        {
            "sa_ppg": "SA-PPG",
            "sa_ppg_corrected": "corrected",
            "sa_ppg_vs_identity": "SA-PPG − Identity",
            "sa_ppg_vs_railcap": "SA-PPG − RailCap",
            "a_ppg": "A-PPG",
            "g_ap": "G-AP",
            "share_empty": "No samples",
        }
    )
    rows = _strategy_rows(values, labels, columns)
    notes = difference_notes(columns, rows)
    return Table(columns, rows, notes=notes, decimals=3, intervals=True)


def pairs(values: MetricTable, labels: Labels) -> Table:
    """Differences in SA-PPG between all pairs of strategies, with both kinds of intervals."""
    columns = columns_of({"vs": "This pair alone", "maxt_vs": "Among all pairs"})
    records = (
        {
            "section": labels.setting(*setting),
            "key": f"{first}-{second}",
            "name": f"{labels.strategy(first)} − {labels.strategy(second)}",
            **{c.key: values.get(*setting, first, f"sa_ppg_{c.key}_{second}") for c in columns},
        }
        for setting in values.settings(labels)
        for first, second in combinations(
            ordered(values.strategies(*setting), labels.strategies), 2
        )
        if not {first, second} & {"clean", *NOISE_FLOOR}
    )
    return Table(
        columns,
        record_rows(records, columns),
        index_label="Pair",
        notes=("†: the interval among all pairs excludes 0.",),
        decimals=3,
        intervals=True,
    )


def strata(values: pd.DataFrame, labels: Labels) -> Table:
    """SA-PPG with several numbers of strata, from `zerogap.analysis.strata.values_by_bins`."""
    names = map(str, values.columns)
    shown = [name.removeprefix("sa_ppg_") for name in names if name.startswith("sa_ppg_")]
    columns = (
        *(Column(f"sa_ppg_{bins}", f"B = {bins}", group="SA-PPG") for bins in shown),
        Column("a_ppg", "A-PPG"),
    )
    records = values.assign(
        key=values["strategy"],
        name=values["strategy"].map(labels.strategy),
        section=list(map(labels.setting, values["model"], values["benchmark"])),
    ).to_dict("records")
    notes = (
        f"{row['section']}: of {bins} strata, {row[f'filled_{bins}']} have a question, of which "
        f"{row[f'single_{bins}']} have one."
        for row in records
        if row["key"] == "identity"
        for bins in shown
    )
    return Table(columns, record_rows(records, columns), notes=tuple(notes))


def subsets(values: MetricTable, labels: Labels) -> Table:
    """Leaked and unleaked questions separately, one row each per strategy."""
    columns = columns_of(METRIC_LABELS)
    subsets = {name: (f"@{name}", f", {name}") for name in SUBSETS}
    return Table(columns, _strategy_rows(values, labels, columns, subsets), decimals=3)


def _strategy_rows(
    values: MetricTable,
    labels: Labels,
    columns: Sequence[Column],
    subsets: Mapping[str, tuple[str, str]] = {"all": ("", "")},
) -> tuple[Row, ...]:
    """One row per setting, strategy and subset; each subset with what follows keys and names."""
    records = (
        {
            "section": labels.setting(*setting),
            "key": strategy + key,
            "name": labels.strategy(strategy) + name,
            **{c.key: values.get(*setting, strategy, c.key, subset) for c in columns},
        }
        for setting in values.settings(labels)
        for strategy in ordered(values.strategies(*setting), labels.strategies)
        for subset, (key, name) in subsets.items()
    )
    return record_rows(records, columns)


def memorisation(checks: pd.DataFrame, labels: Labels) -> Table:
    """One row per contaminated model, from the rows of `zerogap.analysis.memorisation`."""
    columns = (
        Column("verdict", "Verdict", align="l"),
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
    checks = checks.assign(
        key=checks["model"] + "/" + checks["benchmark"],
        name=list(map(labels.setting, checks["model"], checks["benchmark"])),
    )
    return Table(
        columns,
        record_rows(checks.to_dict("records"), columns),
        index_label="Contaminated model",
        notes=tuple(checks["name"] + ": " + checks["verdict"] + ". " + checks["text"]),
        decimals=2,
    )


def extraction_agreement(fractions: pd.DataFrame, labels: Labels) -> Table:
    """The same responses under every rule of answer extraction, one row per strategy.

    `fractions` has a row of :func:`zerogap.analysis.extraction_agreement.agreement` per benchmark
    with questions of its own (column ``benchmark``, its name; several have a section each) and
    ``strategy``; ``run_rule`` is the rule that the run scores by.
    """
    rules = fractions["run_rule"].unique()
    run_rule = rules[0] if len(rules) == 1 else "the run's rule"
    groups = {"answered": "Answered", "correct": "Correct", "agree": f"Same mark as {run_rule}"}
    columns = [Column("responses", "Responses", decimals=0)]
    for kind, group in groups.items():
        for key in map(str, fractions):
            key_kind, _, rule = key.partition(" ")
            if key_kind == kind:
                columns.append(Column(key, run_rule if rule == "own" else rule, group=group))
    records = fractions.assign(
        key=fractions["strategy"],
        name=fractions["strategy"].map(labels.strategy),
        section=fractions["benchmark"] if fractions["benchmark"].nunique() > 1 else "",
    )
    rows = record_rows(records.to_dict("records"), columns)
    return Table(tuple(columns), rows, index_label="Strategy", decimals=3)


def cost(jobs: pd.DataFrame, labels: Labels) -> Table:
    """One row per job, under a heading per model and benchmark, and sums per kind of job.

    `jobs` has a row per job, `JOB_COLUMNS`; NaN where a job generates no responses or has no
    timing. The preparation of a base has no benchmark ("").
    """
    columns = (
        Column("responses", "Responses", decimals=0),
        Column("tokens", "Tokens", decimals=0),
        Column("tokens_per_response", "Tokens per response", decimals=1),
        Column("seconds", "Seconds", decimals=1),
        Column("tokens_per_second", "Tokens/s", decimals=0),
    )
    kinds = jobs["job"].where(jobs["job"].isin(list(JOBS)), "samples").map(JOBS)
    records = []
    for place, group in jobs.groupby(["model", "benchmark", "job"], sort=False):
        model, benchmark, job = map(str, place)
        section = labels.setting(model, benchmark) if benchmark else labels.models[model]
        name = JOBS.get(job) or labels.strategy(job)
        records.append(_totals(group, f"{model}/{benchmark}/{job}", name, section))
    for kind in filter(set(kinds).__contains__, JOBS.values()):
        group = jobs[kinds == kind]
        records.append(_totals(group, kind.lower(), f"{kind} ({len(group)})", "Total"))
    records.append(_totals(jobs, "all", f"All ({len(jobs)})", "Total") | {"bold": True})
    untimed = int(jobs["seconds"].isna().sum())
    note = f"{untimed} job(s) have no timing; the totals leave out their seconds."
    rows, notes = record_rows(records, columns), (note,) if untimed else ()
    return Table(columns, rows, index_label="Job", notes=notes)


def _totals(jobs: pd.DataFrame, key: str, name: str, section: str) -> dict[str, Any]:
    """Sums over jobs; tokens per second only from jobs with known tokens and seconds."""
    sums = jobs[["responses", "tokens", "seconds"]].sum(min_count=1)
    timed = jobs.dropna(subset=["tokens", "seconds"])[["tokens", "seconds"]].sum(min_count=1)
    return {
        **{"key": key, "name": name, "section": section, **sums},
        "tokens_per_response": sums["tokens"] / sums["responses"],
        "tokens_per_second": timed["tokens"] / timed["seconds"],
    }


def diagnostics(values: pd.DataFrame, labels: Labels) -> Table:
    """One row per set of responses and subset, from `zerogap.analysis.diagnostics`."""
    records, notes = [], []
    for place, setting in values.groupby(["model", "benchmark"], sort=False):
        section = labels.setting(*map(str, place))
        for group, table in setting.groupby(["responses", "subset"], sort=False):
            responses, subset = map(str, group)
            name = labels.strategy(responses)
            record = {
                "key": f"{responses}@{subset}",
                "name": name if responses == CLEAN else f"{name}, {subset}",
                "section": section,
            }
            for row in table.to_dict("records"):
                if column := DIAGNOSTICS.get((row["measure"], row["kind"])):
                    ends = {f"{column.key}_{end}": row[end] for end in ("ci_low", "ci_high")}
                    record |= {column.key: row["value"], **ends}
            records.append(record)
        recovery = setting[setting["measure"] == "recovery"].to_dict("records")
        notes.append(f"Recovery rate of {section}: {_recovery(recovery)}.")
    columns = tuple(DIAGNOSTICS.values())
    return Table(
        columns,
        record_rows(records, columns),
        index_label="Responses",
        notes=tuple(notes),
        decimals=2,
    )


def _recovery(rates: Sequence[Mapping[Any, Any]]) -> str:
    """The recovery rate with its interval, and by kind of the token that was replaced."""
    cells = {rate["kind"]: Cell(rate["value"], rate["ci_low"], rate["ci_high"]) for rate in rates}
    listed = ", ".join(f"{kind} {cells[kind].format(2)}" for kind in KINDS)
    rate = f"{cells[ALL].format(2)} {cells[ALL].format_interval(2)}".strip()
    return f"{rate}; by kind of the token replaced: {listed}"
