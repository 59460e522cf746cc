"""Tables of an unfinished run: the metrics that are there, a dash for every cell that is not.

A setting without its `metrics` file (one strategy failed, or is still being sampled) is evaluated
from the solve counts that exist.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.analysis.leaked_column import with_leaked_of
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.metrics.evaluate import evaluate
from zerogap.reporting.catalog import Entry
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import DASH, Table
from zerogap.reporting.sources import Values, build, read_clean

CellKey = tuple[str, str, str]  # (model, benchmark, strategy)


@dataclass(frozen=True)
class UnfinishedRun:
    """What exists of a run's metrics.

    Attributes:
        tables: The `metrics` tables that were read or computed; at least one.
        missing: Every missing cell and why it is missing.
        num_cells: Number of cells of the whole run, missing ones included.
        setting: (model, benchmark) of the tables of a single setting.
        labels: Names to show.
    """

    tables: Sequence[pd.DataFrame]
    missing: Mapping[CellKey, str]
    num_cells: int
    setting: tuple[str, str]
    labels: Labels

    @cached_property
    def values(self) -> MetricTable:
        """All metric values, with empty cells for the missing ones."""
        return MetricTable(self.tables, self.missing)

    def table(self, entry: Entry, sources: Values) -> Table:
        """A table of metric values, marked as partial if it lacks any cell.

        Args:
            entry: Its entry in the catalogue; one of its sources must be the metrics.
            sources: Source to its paths and values.
        """
        prepared = {"metrics": self.values, "primary_metrics": self.values}
        table: Table = build(entry, sources, prepared)
        missing = list(self.missing)
        if "metrics" not in entry.arguments.values():
            missing = [cell for cell in missing if cell[:2] == self.setting]
        if not missing:
            return table
        note = f"Partial: missing, and shown as {DASH}: {self._listed(missing)}."
        caption = f"Partial table of an unfinished run. {table.caption}"
        return replace(table, caption=caption, notes=(note, *table.notes))

    def missing_lines(self) -> list[str]:
        """One line per missing cell: model, benchmark, strategy and why."""
        return [f"{'/'.join(cell)}: {reason}" for cell, reason in self.missing.items()]

    def _listed(self, cells: Sequence[CellKey]) -> str:
        """The cells as text, grouped by setting."""
        parts = []
        for setting, group in groupby(cells, key=lambda cell: cell[:2]):
            strategies = [self.labels.strategy(cell[2]) for cell in group]
            complete = set(self.values.strategies(*setting)) == {
                cell[2] for cell in cells if cell[:2] == setting
            }
            names = "every strategy" if complete else ", ".join(strategies)
            parts.append(f"{self.labels.setting(*setting)} ({names})")
        return "; ".join(parts)


def uses_metrics(entry: Entry) -> bool:
    """Whether a table is made of metric values alone, so that single cells may be missing."""
    return not {"metrics", "primary_metrics"}.isdisjoint(entry.arguments.values())


def read_unfinished(
    settings: Sequence[Values],
    options: Mapping[str, Any],
    setting: tuple[str, str],
    labels: Labels,
) -> UnfinishedRun:
    """Read or compute the metrics of every setting, as far as they go.

    Args:
        settings: Per setting, its files: `zerogap.pipeline.report_sources.setting_files`.
        options: Options of `zerogap.metrics.evaluate.evaluate`.
        setting: (model, benchmark) of the tables of a single setting.
        labels: Names to show.

    Raises:
        InputError: No setting has any metric value yet, or a file is not readable.
    """
    tables: list[pd.DataFrame] = []
    missing: dict[CellKey, str] = {}
    for files in settings:
        table = _metrics(files, options)
        existing = set() if table is None else set(table["strategy"])
        tables += [] if table is None else [table]
        for strategy in files["strategies"]:
            if strategy not in existing:
                cell = (files["model"], files["benchmark"], strategy)
                missing[cell] = _reason(files, strategy)
    if not tables:
        raise InputError(
            f"no metric values yet: {next(iter(missing.values()))}; a partial report needs the "
            "clean model's solve counts and those of one strategy"
        )
    num_cells = sum(len(files["strategies"]) for files in settings)
    return UnfinishedRun(tables, missing, num_cells, setting, labels)


def _metrics(files: Values, options: Mapping[str, Any]) -> pd.DataFrame | None:
    """The metrics of a setting: its file, or computed from the strategies that are there."""
    if Path(files["metrics"]).exists():
        return parquet.read(files["metrics"], "metrics")
    paths = {name: path for name, path in files["strategies"].items() if Path(path).exists()}
    if not paths or _absent(files["clean"].values()):
        return None
    questions = parquet.read(files["clean"]["questions"], "questions")
    strategies = {
        name: with_leaked_of(questions, parquet.read(path, "solve")) for name, path in paths.items()
    }
    clean = read_clean(files["clean"])
    return evaluate(files["model"], files["benchmark"], clean, strategies, **options)


def _reason(files: Values, strategy: str) -> str:
    paths = [*files["clean"].values(), files["strategies"][strategy]]
    if absent := _absent(paths):
        return f"{' and '.join(absent)} {'do' if absent[1:] else 'does'} not exist"
    return f"not in {files['metrics']}, which is older than the strategy"


def _absent(paths: Any) -> list[str]:
    return [path for path in paths if not Path(path).exists()]
