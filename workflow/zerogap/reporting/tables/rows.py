"""Rows of tables, common to several of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zerogap.errors import InputError
from zerogap.reporting.metric_table import METRIC_LABELS, Labels, MetricTable, Setting
from zerogap.reporting.render import Cell, Column, Row, Table, rounded
from zerogap.strategies import registry

# The last row of the paper's tables, where a run has it.
NOISE_FLOOR = {"clean_batch2": registry.NOISE_FLOOR}
NOT_COMPETING = ("identity", *NOISE_FLOOR)
Columns = Sequence[Column]
BOLD_NOTE = (
    "Bold: the lowest value of the column, a point estimate; whether two strategies differ is in "
    "the tables of intervals and of all pairs. Identity and the noise floor do not compete."
)
NOISE_FLOOR_NOTE = (
    "Noise floor: two batches of the clean model; a perfect restoration has this value on average."
)


def columns_of(titles: Mapping[str, str]) -> tuple[Column, ...]:
    """Columns of numbers from their keys and headings."""
    return tuple(Column(key, title) for key, title in titles.items())


def record_rows(records: Iterable[Mapping[Any, Any]], columns: Columns) -> tuple[Row, ...]:
    """One row per record that has a value.

    Args:
        records: key, name and perhaps section and bold of each row, and by the columns' keys its
            cells, texts or numbers, NaN where there is none; the ends of a number's interval are
            under ``<key>_ci_low`` and ``<key>_ci_high``. A value that is None is left out.
        columns: The columns.
    """

    def cell(record: Mapping[Any, Any], key: str) -> Cell:
        value = record.get(key)
        if value is None or isinstance(value, Cell):
            return value or Cell()
        if isinstance(value, str):
            return Cell(text=value)
        return Cell(value, *(record.get(f"{key}_ci_{end}", math.nan) for end in ("low", "high")))

    return tuple(
        Row(
            record["key"],
            record["name"],
            tuple(cell(record, column.key) for column in columns),
            record.get("section", ""),
            record.get("bold", False),
        )
        for record in records
        if any(record.get(column.key) is not None for column in columns)
    )


def strategy_names(
    values: MetricTable, labels: Labels, settings: Sequence[Setting], order: Sequence[str]
) -> dict[str, str]:
    """The rows of a table of the paper: its strategies in the given order, and the noise floor.

    Strategies that the paper does not have come before RailCap, the last of `order`.
    """
    strategies = dict.fromkeys(s for setting in settings for s in values.strategies(*setting))
    others = [s for s in strategies if s not in (*order, *registry.NOT_STRATEGIES)]
    names = {key: labels.strategy(key) for key in [*order[:-1], *others, order[-1]]}
    return names | NOISE_FLOOR


def bold_best(table: Table) -> Table:
    """Set the lowest value of each column bold, as printed, and say what bold means."""
    best: list[float] = []
    beaten = []
    for k, column in enumerate(table.columns):
        printed = {row.key: rounded(row.cells[k].value, table.decimals) for row in table.rows}
        numbers = {key: value for key, value in printed.items() if not math.isnan(value)}
        best.append(min((v for key, v in numbers.items() if key not in NOT_COMPETING), default=0))
        if numbers.get("identity", math.inf) < best[-1]:
            beaten.append(column.full_title)
    rows = []
    for row in table.rows:
        cells = (
            replace(cell, bold=rounded(cell.value, table.decimals) == lowest)
            for cell, lowest in zip(row.cells, best, strict=True)
        )
        rows.append(row if row.key in NOT_COMPETING else replace(row, cells=tuple(cells)))
    notes = (*table.notes, BOLD_NOTE)
    if any(row.key in NOISE_FLOOR for row in table.rows):
        notes += (NOISE_FLOOR_NOTE,)
    if beaten:
        notes += (
            "Identity, the contaminated model without mitigation, has a lower value than every "
            f"strategy in: {', '.join(beaten)}.",
        )
    return replace(table, rows=tuple(rows), notes=notes)


def difference_notes(columns: Columns, rows: Sequence[Row]) -> tuple[str, ...]:
    """Notes on paired differences: many intervals are looked at together, and what † means."""
    count = sum(
        "_vs_" in column.key and cell.has_interval
        for row in rows
        for column, cell in zip(columns, row.cells, strict=True)
    )
    several = (
        f"Each of the {count} differences has its own interval, so some of them exclude 0 by "
        "chance."
    )
    marked = (
        "†: excludes 0 also when all pairs of strategies on the same questions are considered "
        "together (max-T over the same bootstrap resamples)."
    )
    return ((several,) if count > 1 else ()) + ((marked,) if count else ())


def setting_table(
    values: MetricTable,
    labels: Labels,
    setting: Setting,
    names: Mapping[str, str],
    metrics: Sequence[str],
    **options: Any,
) -> Table:
    """A table of one setting, with a row per strategy in `names` that has any of the metrics.

    Raises:
        InputError: The setting has no metric values.
    """
    if not values.strategies(*setting):
        raise InputError(
            f"setting {'/'.join(setting)}: no metric values; check primary_setting in the config"
        )
    columns = columns_of({metric: METRIC_LABELS[metric] for metric in metrics})
    records = (
        {"key": key, "name": name} | {m: values.get(*setting, key, m) for m in metrics}
        for key, name in names.items()
    )
    note = f"Setting: {labels.setting(*setting)}."
    return Table(columns, record_rows(records, columns), notes=(note,), **options)
