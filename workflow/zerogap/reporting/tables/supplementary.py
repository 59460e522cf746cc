"""Tables of metrics that the paper does not have: intervals, pairs, strata and subsets."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import pandas as pd

from zerogap.analysis.strata import BINS_SHOWN
from zerogap.reporting.metric_table import METRICS, SUBSETS, Labels, MetricTable, ordered
from zerogap.reporting.render import Column, Row, Table
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    columns_of,
    difference_notes,
    record_rows,
)


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
    columns = (
        *(Column(f"sa_ppg_{bins}", f"B = {bins}", group="SA-PPG") for bins in BINS_SHOWN),
        Column("a_ppg", "A-PPG"),
    )
    setting = list(map(labels.setting, values["model"], values["benchmark"]))
    records = values.assign(
        key=values["strategy"], name=list(map(labels.strategy, values["strategy"])), section=setting
    )
    notes = [
        f"{name}: of {bins} strata, {row[f'filled_{bins}']} have a question, of which "
        f"{row[f'single_{bins}']} have one."
        for name, row in zip(setting, values.to_dict("records"), strict=True)
        if row["strategy"] == "identity"
        for bins in BINS_SHOWN
    ]
    return Table(columns, record_rows(records.to_dict("records"), columns), notes=tuple(notes))


def subsets(values: MetricTable, labels: Labels) -> Table:
    """Leaked and unleaked questions separately, one row each per strategy."""
    columns = columns_of(METRICS)
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
