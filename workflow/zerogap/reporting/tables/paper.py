"""Tables 1 to 4 of the paper, and the numbers in its text.

Rows, columns and their order are the paper's. A run with a second batch of the clean model has one
more row, the noise floor.
"""

from dataclasses import replace

import pandas as pd

from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell, Column, Row, Table, optional_float
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    Setting,
    bold_best,
    metric_row,
    setting_table,
    strategy_names,
)


def reversal(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 1: G-AP and SA-PPG of the same responses."""
    order = ["identity", "lne_blocking", "shortcut", "ted", "railcap"]
    names = strategy_names(values, labels, [setting], order) | NOISE_FLOOR
    titles = {"g_ap": "G-AP", "sa_ppg": "SA-PPG"}
    return bold_best(setting_table(values, labels, setting, names, titles))


def decomposition(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 2: what cancels in G-APP, and what equal weights hide."""
    order = ["identity", "lne_blocking", "shortcut", "ted", "all_zero", "railcap"]
    names = strategy_names(values, labels, [setting], order) | NOISE_FLOOR
    titles = {
        "delta_plus": "Δ⁺",
        "delta_minus": "Δ⁻",
        "g_app": "G-APP",
        "a_ppg": "A-PPG",
        "sa_ppg": "SA-PPG",
    }
    return setting_table(values, labels, setting, names, titles)


def main(values: MetricTable, labels: Labels) -> Table:
    """Table 3: SA-PPG of every strategy in every setting."""
    settings = values.settings(labels)
    order = ["identity", "ted", "shortcut", "lne_blocking", "railcap"]
    rows: list[Row] = []
    names = strategy_names(values, labels, settings, order) | NOISE_FLOOR
    for strategy, name in names.items():
        cells = [values.get(*setting, strategy, "sa_ppg") for setting in settings]
        rows += metric_row(strategy, name, cells)
    columns = tuple(
        Column(
            f"{benchmark}/{model}",
            labels.models.get(model, model),
            group=labels.benchmarks.get(benchmark, benchmark),
        )
        for model, benchmark in settings
    )
    return bold_best(
        Table(
            index_label="Method",
            columns=columns,
            rows=tuple(rows),
        )
    )


def ablation(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 4: the n-gram threshold and the form of suppression."""
    names = {
        "identity": labels.strategies["identity"],
        **labels.configurations,
        "all_zero": labels.strategies["all_zero"],
        **NOISE_FLOOR,
    }
    titles = {"s_delta_plus": "S-Δ⁺", "s_delta_minus": "S-Δ⁻", "sa_ppg": "SA-PPG"}
    table = setting_table(values, labels, setting, names, titles, index_label="Config")
    rows = tuple(replace(row, bold=row.key == "railcap") for row in table.rows)
    return bold_best(replace(table, rows=rows))


def inline_numbers(numbers: pd.DataFrame) -> Table:
    """The numbers in the text: this run's value, the published one, and where the paper has it.

    Args:
        numbers: As `zerogap.analysis.inline_numbers` returns it.
    """
    rows = [
        Row(
            row["key"],
            row["quantity"],
            (
                Cell(row["value"], optional_float(row["ci_low"]), optional_float(row["ci_high"])),
                Cell(text=row["printed"]),
                Cell(text=row["place"]),
            ),
        )
        for row in numbers.to_dict("records")
    ]
    return Table(
        index_label="Quantity",
        columns=(
            Column("value", "this run"),
            Column("paper", "paper", align="l"),
            Column("place", "section", align="l"),
        ),
        rows=tuple(rows),
        decimals=3,
        intervals=True,
    )
