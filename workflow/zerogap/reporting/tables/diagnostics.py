"""The diagnostics of every setting as a table."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from zerogap.analysis.diagnostics import ALL, CLEAN
from zerogap.data.token_kinds import KINDS
from zerogap.reporting.labels import Labels
from zerogap.reporting.render import Cell, Column, Row, Table, optional_float

_PER_RESPONSE = "Rail steps per response:"
COLUMNS = {  # (measure, kind) → column
    ("rail_share", ALL): Column("rail_share", "Steps on the rail"),
    ("rail_steps", ALL): Column("rail_steps", "all", _PER_RESPONSE),
    **{("rail_steps", kind): Column(f"rail_{kind}", kind, _PER_RESPONSE) for kind in KINDS},
    ("drawn", ALL): Column("drawn", "Rail token drawn"),
    ("distinct", ALL): Column("distinct", "Distinct responses"),
    ("entropy", ALL): Column("entropy", "Entropy per greedy step"),
    ("recovery", ALL): Column("recovery", "Recovery rate"),
}
_DECIMALS = {"rail_steps": 1, "distinct": 1}

Cells = Mapping[Any, Any]  # (measure, kind) → value and the ends of its interval


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
                    tuple(_cell(cells, *column) for column in COLUMNS),
                    section,
                )
            )
        clean = _by_column(setting[setting["responses"] == CLEAN])
        notes.append(f"Recovery rate of {section}: {_recovery(clean)}.")
    return Table(
        index_label="Responses",
        columns=tuple(COLUMNS.values()),
        rows=tuple(rows),
        notes=tuple(notes),
        decimals=2,
    )


def _by_column(rows: pd.DataFrame) -> Cells:
    values = rows.set_index(["measure", "kind"])[["value", "ci_low", "ci_high"]]
    return {key: tuple(ends) for key, *ends in values.itertuples()}


def _cell(cells: Cells, measure: str, kind: str) -> Cell:
    value, low, high = map(optional_float, cells.get((measure, kind), (None, None, None)))
    return Cell(value, low, high, decimals=_DECIMALS.get(measure))


def _recovery(cells: Cells) -> str:
    """The recovery rate with its interval, and by kind of the token that was replaced."""
    overall, *by_kind = (_cell(cells, "recovery", kind) for kind in (ALL, *KINDS))
    listed = ", ".join(
        f"{kind} {cell.format(2)}" for kind, cell in zip(KINDS, by_kind, strict=True)
    )
    rate = f"{overall.format(2)} {overall.format_interval(2)}".strip()
    return f"{rate}; by kind of the token replaced: {listed}"
