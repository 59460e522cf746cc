"""Tables 1 to 4 of the paper, this run's next to the paper's, and the numbers in its text.

Rows, columns and their order are the paper's. A run with a second batch of the clean model has one
more row, the noise floor.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from zerogap.published import as_metrics
from zerogap.reporting.metric_table import Labels, MetricTable, Setting
from zerogap.reporting.render import Cell, Column, Table
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    bold_best,
    record_rows,
    setting_table,
    strategy_names,
)


def reversal(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 1: G-AP and SA-PPG of the same responses."""
    order = ["identity", "lne_blocking", "shortcut", "ted", "railcap"]
    names = strategy_names(values, labels, [setting], order)
    return bold_best(setting_table(values, labels, setting, names, ("g_ap", "sa_ppg")))


def decomposition(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 2: what cancels in G-APP, and what equal weights hide."""
    order = ["identity", "lne_blocking", "shortcut", "ted", "all_zero", "railcap"]
    names = strategy_names(values, labels, [setting], order)
    metrics = ("delta_plus", "delta_minus", "g_app", "a_ppg", "sa_ppg")
    return setting_table(values, labels, setting, names, metrics)


def main(values: MetricTable, labels: Labels) -> Table:
    """Table 3: SA-PPG of every strategy in every setting."""
    settings = values.settings(labels)
    order = ["identity", "ted", "shortcut", "lne_blocking", "railcap"]
    names = strategy_names(values, labels, settings, order)
    columns = tuple(
        Column(f"{b}/{m}", labels.models.get(m, m), group=labels.benchmarks.get(b, b))
        for m, b in settings
    )
    records = (
        {"key": key, "name": name}
        | {f"{b}/{m}": values.get(m, b, key, "sa_ppg") for m, b in settings}
        for key, name in names.items()
    )
    return bold_best(Table(columns, record_rows(records, columns), index_label="Method"))


def ablation(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 4: the n-gram threshold and the form of suppression."""
    names = {
        "identity": labels.strategy("identity"),
        **labels.configurations,
        "all_zero": labels.strategy("all_zero"),
        **NOISE_FLOOR,
    }
    metrics = ("s_delta_plus", "s_delta_minus", "sa_ppg")
    table = setting_table(values, labels, setting, names, metrics, index_label="Config")
    rows = tuple(replace(row, bold=row.key == "railcap") for row in table.rows)
    return bold_best(replace(table, rows=rows))


def inline_numbers(numbers: pd.DataFrame) -> Table:
    """The numbers in the text (`zerogap.analysis.inline_numbers`), next to the paper's."""
    columns = (
        Column("value", "this run"),
        Column("paper", "paper", align="l"),
        Column("place", "section", align="l"),
    )
    renamed = {"quantity": "name", "printed": "paper"}
    renamed |= {"ci_low": "value_ci_low", "ci_high": "value_ci_high"}
    rows = record_rows(numbers.rename(columns=renamed).to_dict("records"), columns)
    return Table(columns, rows, index_label="Quantity", decimals=3, intervals=True)


def vs_paper(
    build: Callable[..., Table],
    place: str,
    differences: Sequence[str],
    values: MetricTable,
    labels: Labels,
    *setting: Setting,
) -> Table:
    """Each value of this run's table next to the published one, under a heading per column.

    Args:
        build: What makes the table from `values`, `labels` and, of one setting, `setting`.
        place: Where the paper has it, "Table 1".
        differences: How this run's protocol differs from the paper's
            (`zerogap.published.protocol_differences`). If it does not, differences of the values
            are shown too, each with this run's interval minus the published value, which has no
            interval.
        values: Metric values of this run.
        labels: Names to show.
        setting: The setting, of a table that the paper has for one setting only.
    """
    table, published = build(values, labels, *setting), MetricTable([as_metrics(place)])
    published_cells: dict[tuple[str, str], Cell] = {}
    if all(published.strategies(*each) for each in setting):
        of_paper = build(published, labels, *setting)
        published_cells = {
            (row.key, column.key): cell
            for row in of_paper.rows
            for column, cell in zip(of_paper.columns, row.cells, strict=True)
        }
    parts = {"paper": "paper", "this_run": "this run"}
    if differences:
        note = (
            "The protocol of this run differs from the paper's, so no differences are shown. The "
            "paper's values are those of its own models and questions, under this run's headings; "
            f"compare the order of the rows. What differs: {'; '.join(differences)}."
        )
    else:
        parts["difference"] = "difference"
        note = (
            "Difference: this run minus the paper. Its interval is this run's interval minus the "
            "published value, which has no interval of its own."
        )
    columns = tuple(
        Column(f"{column.key}_{key}", title, group=column.full_title)
        for column in table.columns
        for key, title in parts.items()
    )
    rows = []
    for row in table.rows:
        cells: list[Cell] = []
        for column, cell in zip(table.columns, row.cells, strict=True):
            published_cell = published_cells.get((row.key, column.key), Cell())
            offset = published_cell.value
            difference = Cell(cell.value - offset, cell.low - offset, cell.high - offset)
            cells += [published_cell, cell, difference][: len(parts)]
        rows.append(replace(row, cells=tuple(cells)))
    return replace(table, columns=columns, rows=tuple(rows), notes=(*table.notes, note))
