"""Tables of metrics that the paper does not have.

Intervals, all pairs, the baselines' variants, subsets and the noise floor.
"""

from itertools import combinations

from zerogap.reporting.metric_table import METRICS, SUBSETS, Labels, MetricTable, ordered
from zerogap.reporting.render import Row, Table
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    Setting,
    columns_of,
    difference_notes,
    metric_row,
    rows_by_setting,
    setting_table,
)

# Strategies whose sources leave a choice open, each followed by its other choice.
BASELINE_VARIANTS = ("ted", "ted_unfiltered", "lne_blocking", "lne_blocking_nearest")


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


def variants(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Baselines with both choices where their sources leave one open."""
    names = {key: labels.strategy(key) for key in BASELINE_VARIANTS}
    titles = {
        "sa_ppg": "SA-PPG",
        "sa_ppg_vs_identity": "SA-PPG − Identity",
        "a_ppg": "A-PPG",
        "delta_plus": "Δ⁺",
        "delta_minus": "Δ⁻",
        "share_empty": "No samples",
    }
    return setting_table(values, labels, setting, names, titles, decimals=3, intervals=True)


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


def noise_floor(values: MetricTable, labels: Labels) -> Table:
    """The value of every metric if nothing differs but the sampled responses."""
    columns = columns_of(
        {
            "g_ap": "G-AP",
            "g_ap_mean": "G-AP, mean",
            "g_ap_sd": "G-AP, s.d.",
            "g_app": "G-APP",
            "a_ppg": "A-PPG",
            "sa_ppg": "SA-PPG",
            "sa_ppg_corrected": "corrected",
            "s_delta_plus": "S-Δ⁺",
            "s_delta_minus": "S-Δ⁻",
        }
    )
    rows: list[Row] = []
    for setting in values.settings(labels):
        cells = [values.get(*setting, "clean_batch2", column.key) for column in columns]
        rows += metric_row("/".join(setting), labels.setting(*setting), cells)
    return Table(
        columns=columns,
        rows=tuple(rows),
    )
