"""Tables of metrics that the paper does not have: intervals, all pairs and subsets."""

from itertools import combinations

from zerogap.reporting.metric_table import METRICS, SUBSETS, Labels, MetricTable, ordered
from zerogap.reporting.render import Row, Table
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    columns_of,
    difference_notes,
    metric_row,
    rows_by_setting,
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
    rows = rows_by_setting(values, labels, columns)
    return Table(
        columns=columns,
        rows=rows,
        notes=difference_notes(columns, rows),
        decimals=3,
        intervals=True,
    )


def pairs(values: MetricTable, labels: Labels) -> Table:
    """Differences in SA-PPG between all pairs of strategies, with both kinds of intervals."""
    rows: list[Row] = []
    for setting in values.settings(labels):
        compared = [s for s in values.strategies(*setting) if s not in ("clean", *NOISE_FLOOR)]
        for first, second in combinations(ordered(compared, labels.strategies), 2):
            cells = [
                values.get(*setting, first, f"sa_ppg_{kind}_{second}") for kind in ("vs", "maxt_vs")
            ]
            rows += metric_row(
                f"{first}-{second}",
                f"{labels.strategy(first)} − {labels.strategy(second)}",
                cells,
                labels.setting(*setting),
            )
    return Table(
        index_label="Pair",
        columns=columns_of({"vs": "This pair alone", "maxt_vs": "Among all pairs"}),
        rows=tuple(rows),
        notes=("†: the interval among all pairs excludes 0.",),
        decimals=3,
        intervals=True,
    )


def subsets(values: MetricTable, labels: Labels) -> Table:
    """Leaked and unleaked questions separately, one row each per strategy."""
    rows: list[Row] = []
    for setting in values.settings(labels):
        for strategy in ordered(values.strategies(*setting), labels.strategies):
            for subset in SUBSETS:
                cells = [values.get(*setting, strategy, metric, subset) for metric in METRICS]
                rows += metric_row(
                    f"{strategy}@{subset}",
                    f"{labels.strategy(strategy)}, {subset}",
                    cells,
                    labels.setting(*setting),
                )
    return Table(
        columns=columns_of(METRICS),
        rows=tuple(rows),
        decimals=3,
    )
