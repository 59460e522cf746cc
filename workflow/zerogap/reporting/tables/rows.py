"""Rows of tables, common to several of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from zerogap.errors import InputError
from zerogap.reporting.metric_table import Labels, MetricTable, ordered
from zerogap.reporting.render import Cell, Column, Row, Table
from zerogap.strategies.registry import ALL_ZERO

# The last row of the paper's tables, where a run has it.
NOISE_FLOOR = {"clean_batch2": "Noise floor"}
NOT_COMPETING = ("identity", *NOISE_FLOOR)
NOT_STRATEGIES = ("clean", *NOISE_FLOOR, ALL_ZERO)
Columns = tuple[Column, ...]
Setting = tuple[str, str]  # (model, benchmark)
BOLD_NOTE = (
    "Bold: the lowest value of the column, a point estimate; whether two strategies differ is in "
    "the tables of intervals and of all pairs. Identity and the noise floor do not compete."
)
NOISE_FLOOR_NOTE = (
    "Noise floor: two batches of the clean model, the value that a perfect restoration would have."
)


def columns_of(titles: Mapping[str, str]) -> Columns:
    """Columns of numbers from their keys and headings."""
    return tuple(Column(key, title) for key, title in titles.items())


def metric_row(
    key: str, name: str, cells: Sequence[Cell | None], section: str = ""
) -> tuple[Row, ...]:
    """A row of metric values as a tuple of one; empty if all of them are missing."""
    if all(cell is None for cell in cells):
        return ()
    return (Row(key, name, tuple(cell or Cell() for cell in cells), section),)


def rows_by_setting(values: MetricTable, labels: Labels, columns: Columns) -> tuple[Row, ...]:
    """One row per strategy and setting, each setting under its own heading."""
    rows: list[Row] = []
    for setting in values.settings(labels):
        for strategy in ordered(values.strategies(*setting), labels.strategies):
            cells = [values.get(*setting, strategy, column.key) for column in columns]
            rows += metric_row(strategy, labels.strategy(strategy), cells, labels.setting(*setting))
    return tuple(rows)


def strategy_names(
    values: MetricTable, labels: Labels, settings: Sequence[Setting], order: Sequence[str]
) -> dict[str, str]:
    """The paper's strategies in the given order; others come before RailCap, the last one."""
    strategies = dict.fromkeys(s for setting in settings for s in values.strategies(*setting))
    listed = {*order, *NOT_STRATEGIES}
    others = [strategy for strategy in strategies if strategy not in listed]
    return {key: labels.strategy(key) for key in [*order[:-1], *others, order[-1]]}


def bold_best(table: Table) -> Table:
    """Set the lowest value of each column bold, as printed, and say what bold means."""
    best: list[float | None] = []
    beaten = []
    for k, column in enumerate(table.columns):
        printed = _printed_values(table, k)
        identity = printed.get("identity")
        competing = [value for key, value in printed.items() if key not in NOT_COMPETING]
        lowest = min(competing, default=None)
        best.append(lowest)
        if identity is not None and lowest is not None and identity < lowest:
            beaten.append(column.full_title)
    rows = tuple(
        replace(row, cells=tuple(_bold(row, k, best[k], table) for k in range(len(row.cells))))
        for row in table.rows
    )
    notes = (*table.notes, BOLD_NOTE)
    if any(row.key in NOISE_FLOOR for row in table.rows):
        notes += (NOISE_FLOOR_NOTE,)
    if beaten:
        notes += (
            "Identity, the contaminated model without mitigation, has a lower value than every "
            f"strategy in: {', '.join(beaten)}.",
        )
    return replace(table, rows=rows, notes=notes)


def difference_notes(columns: Columns, rows: Sequence[Row]) -> tuple[str, ...]:
    """Notes on paired differences: many intervals are looked at together, and what † means."""
    count = sum(
        "_vs_" in column.key and cell.has_interval
        for row in rows
        for column, cell in zip(columns, row.cells, strict=True)
    )
    notes = []
    if count > 1:
        notes.append(
            f"Each of the {count} differences has its own interval, so some of them exclude 0 by "
            "chance."
        )
    if count:
        notes.append(
            "†: excludes 0 also when all pairs of strategies on the same questions are considered "
            "together (max-T over the same bootstrap resamples)."
        )
    return tuple(notes)


def setting_table(
    values: MetricTable,
    labels: Labels,
    setting: Setting,
    names: Mapping[str, str],
    titles: Mapping[str, str],
    **options: Any,
) -> Table:
    """A table of one setting, with a row per strategy that has any of the metrics.

    Args:
        values: Metric values.
        labels: Names to show.
        setting: The setting; a note names it.
        names: Strategy to name to show, in the order of the rows.
        titles: Metric to heading, in the order of the columns.
        options: Other attributes of the table.

    Raises:
        InputError: The setting has no metric values.
    """
    if not values.strategies(*setting):
        raise InputError(
            f"setting {'/'.join(setting)}: no metric values; check primary_setting in the config"
        )
    rows: list[Row] = []
    for strategy, name in names.items():
        cells = [values.get(*setting, strategy, metric) for metric in titles]
        rows += metric_row(strategy, name, cells)
    note = f"Setting: {labels.setting(*setting)}."
    return Table(columns_of(titles), tuple(rows), notes=(note,), **options)


def _printed_values(table: Table, column: int) -> dict[str, float]:
    """Row key to value, rounded as printed."""
    cells = {row.key: row.cells[column] for row in table.rows}
    return {key: round(c.value, table.decimals) for key, c in cells.items() if c.is_number}


def _bold(row: Row, column: int, best: float | None, table: Table) -> Cell:
    cell = row.cells[column]
    is_best = round(cell.value, table.decimals) == best
    return replace(cell, bold=is_best and row.key not in NOT_COMPETING)
