"""Tables of an unfinished run: the metrics that are there, a dash for every cell that is not.

A setting without its `metrics` file (one strategy failed, or is still being sampled) is evaluated
from the solve counts that exist, and so is the ablation.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.analysis.leaked_column import with_leaked_of
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.metrics.evaluate import evaluate, rows_about
from zerogap.reporting.catalog import Entry
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import DASH, Table
from zerogap.reporting.sources import Values, build, read_clean

CellKey = tuple[str, str, str]  # (model, benchmark, strategy)

# The sources of metric values.
ALL_SETTINGS = ("metrics", "metrics_with_ablation")
PRIMARY_SETTING = ("primary_metrics", "primary_metrics_with_ablation")
WITH_ABLATION = ("metrics_with_ablation", "primary_metrics_with_ablation")


@dataclass(frozen=True)
class UnfinishedRun:
    """What exists of a run's metrics.

    Attributes:
        tables: The `metrics` tables that were read or computed; at least one.
        missing: Every missing cell and why it is missing.
        num_cells: Number of cells of the whole run, missing ones included.
        setting: (model, benchmark) of the tables of a single setting.
        labels: Names to show.
        ablation: The strategies of the ablation, which only some tables show.
    """

    tables: Sequence[pd.DataFrame]
    missing: Mapping[CellKey, str]
    num_cells: int
    setting: tuple[str, str]
    labels: Labels
    ablation: Collection[str]

    @cached_property
    def values(self) -> MetricTable:
        """All metric values, with empty cells for the missing ones."""
        return MetricTable(self.tables, self.missing)

    @cached_property
    def without_ablation(self) -> "UnfinishedRun":
        """The same run as the tables see it that do not show the ablation."""
        tables = [table[~table["strategy"].isin(self.ablation)] for table in self.tables]
        missing = {cell: why for cell, why in self.missing.items() if cell[2] not in self.ablation}
        return replace(self, tables=tables, missing=missing)

    def table(self, entry: Entry, sources: Values) -> Table:
        """A table of metric values, marked as partial if it lacks any cell.

        Args:
            entry: Its entry in the catalogue; one of its sources must be the metrics.
            sources: Source to its paths and values.
        """
        source = entry.arguments["values"]
        shown = self if source in WITH_ABLATION else self.without_ablation
        table: Table = build(entry, sources, {source: shown.values})
        missing = list(shown.missing)
        if source in PRIMARY_SETTING:
            missing = [cell for cell in missing if cell[:2] == self.setting]
        if not missing:
            return table
        note = f"Partial: missing, and shown as {DASH}: {shown._listed(missing)}."
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
    return entry.arguments.get("values") in ALL_SETTINGS + PRIMARY_SETTING


def read_unfinished(
    settings: Sequence[Values],
    options: Mapping[str, Any],
    setting: tuple[str, str],
    labels: Labels,
) -> UnfinishedRun:
    """Read or compute the metrics of every setting, as far as they go.

    Args:
        settings: Per file of metrics, what it is computed from:
            `zerogap.pipeline.report_sources.setting_files`.
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
        for strategy in _names(files):
            if strategy not in existing:
                cell = (files["model"], files["benchmark"], strategy)
                missing[cell] = _reason(files, strategy)
    if not tables:
        raise InputError(
            f"no metric values yet: {next(iter(missing.values()))}; a partial report needs the "
            "clean model's solve counts and those of one strategy"
        )
    num_cells = sum(len(_names(files)) for files in settings)
    ablation = {strategy for files in settings for strategy in files["only"]}
    return UnfinishedRun(tables, missing, num_cells, setting, labels, ablation)


def _names(files: Values) -> list[str]:
    """The strategies that a file of metrics is about."""
    return list(files["only"] or files["strategies"])


def _metrics(files: Values, options: Mapping[str, Any]) -> pd.DataFrame | None:
    """A file of metrics: read, or computed from the strategies that are there."""
    if Path(files["metrics"]).exists():
        return parquet.read(files["metrics"], "metrics")
    paths = {name: path for name, path in files["strategies"].items() if Path(path).exists()}
    if paths.keys().isdisjoint(_names(files)) or _absent(files["clean"].values()):
        return None
    questions = parquet.read(files["clean"]["questions"], "questions")
    strategies = {
        name: with_leaked_of(questions, parquet.read(path, "solve")) for name, path in paths.items()
    }
    clean = read_clean(files["clean"])
    table = evaluate(files["model"], files["benchmark"], clean, strategies, **options)
    return rows_about(table, files["only"]) if files["only"] else table


def _reason(files: Values, strategy: str) -> str:
    paths = [*files["clean"].values(), files["strategies"][strategy]]
    if absent := _absent(paths):
        return f"{' and '.join(absent)} {'do' if absent[1:] else 'does'} not exist"
    return f"not in {files['metrics']}, which is older than the strategy"


def _absent(paths: Any) -> list[str]:
    return [path for path in paths if not Path(path).exists()]
