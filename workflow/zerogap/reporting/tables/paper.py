"""Tables 1 to 4 of the paper, this run's next to the paper's, and the numbers in its text.

Rows, columns and their order are the paper's. A run with a second batch of the clean model has one
more row, the noise floor.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from zerogap.published import as_metrics
from zerogap.reporting.metric_table import METRICS, Labels, MetricTable
from zerogap.reporting.render import Cell, Column, Table
from zerogap.reporting.tables.rows import (
    NOISE_FLOOR,
    Setting,
    bold_best,
    record_rows,
    setting_table,
    strategy_names,
)


def reversal(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 1: G-AP and SA-PPG of the same responses."""
    order = ["identity", "lne_blocking", "shortcut", "ted", "railcap"]
    names = strategy_names(values, labels, [setting], order)
    titles = {"g_ap": "G-AP", "sa_ppg": "SA-PPG"}
    return bold_best(setting_table(values, labels, setting, names, titles))


def decomposition(values: MetricTable, labels: Labels, setting: Setting) -> Table:
    """Table 2: what cancels in G-APP, and what equal weights hide."""
    order = ["identity", "lne_blocking", "shortcut", "ted", "all_zero", "railcap"]
    names = strategy_names(values, labels, [setting], order)
    metrics = ("delta_plus", "delta_minus", "g_app", "a_ppg", "sa_ppg")
    return setting_table(values, labels, setting, names, {m: METRICS[m] for m in metrics})


def main(values: MetricTable, labels: Labels) -> Table:
    """Table 3: SA-PPG of every strategy in every setting."""
    settings = values.settings(labels)
    order = ["identity", "ted", "shortcut", "lne_blocking", "railcap"]
    names = strategy_names(values, labels, settings, order)
    columns = tuple(
        Column(
            f"{benchmark}/{model}",
            labels.models.get(model, model),
            group=labels.benchmarks.get(benchmark, benchmark),
        )
        for model, benchmark in settings
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
    columns = (
        Column("value", "this run"),
        Column("paper", "paper", align="l"),
        Column("place", "section", align="l"),
    )
    renamed = {"quantity": "name", "printed": "paper"}
    renamed |= {f"ci_{end}": f"value_ci_{end}" for end in ("low", "high")}
    rows = record_rows(numbers.rename(columns=renamed).to_dict("records"), columns)
    return Table(columns, rows, index_label="Quantity", decimals=3, intervals=True)


def main_vs_paper(values: MetricTable, labels: Labels, differences: Sequence[str]) -> Table:
    """Table 3 of this run next to the paper's; arguments as of `vs_paper`."""
    published = main(MetricTable([as_metrics("Table 3")]), labels)
    return vs_paper(main(values, labels), published, differences)


def of_one_setting(
    build: Callable[[MetricTable, Labels, Setting], Table], place: str
) -> Callable[[MetricTable, Labels, Setting, Sequence[str]], Table]:
    """What builds a table of one setting, next to the paper's at `place` ("Table 1")."""

    def build_vs_paper(
        values: MetricTable, labels: Labels, setting: Setting, differences: Sequence[str]
    ) -> Table:
        table = build(values, labels, setting)
        published = MetricTable([as_metrics(place)])
        if published.strategies(*setting):
            published_table = build(published, labels, setting)
        else:  # the paper shows these tables for one setting only
            published_table = replace(table, rows=())
        return vs_paper(table, published_table, differences)

    return build_vs_paper


def vs_paper(table: Table, published: Table, differences: Sequence[str]) -> Table:
    """Each value of this run's table next to the published one, under a heading per column.

    Args:
        table: This run's table.
        published: The same table with the paper's values.
        differences: How this run's protocol differs from the paper's
            (`zerogap.published.protocol_differences`). If it does not, differences of the values
            are shown too, each with this run's interval minus the published value, which has no
            interval.
    """
    published_cells = {
        (row.key, column.key): cell
        for row in published.rows
        for column, cell in zip(published.columns, row.cells, strict=True)
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
