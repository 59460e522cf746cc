"""Look up metric values by model, benchmark, strategy and metric."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pandas as pd

from zerogap.errors import InputError
from zerogap.reporting.labels import Labels
from zerogap.reporting.render import Cell, optional_float

_KEYS = ["model", "benchmark", "strategy", "subset", "metric"]


class MetricTable:
    """The rows of one or more `metrics` tables, by key.

    Attributes:
        models: Keys of the models, in order of appearance.
        benchmarks: Keys of the benchmarks, in order of appearance.
    """

    def __init__(self, tables: Iterable[pd.DataFrame]) -> None:
        """Collect the rows.

        Args:
            tables: The `metrics` tables.

        Raises:
            InputError: There is no table, or two rows have the same key.
        """
        tables = list(tables)
        if not tables:
            raise InputError("there are no metric values yet")
        frame = pd.concat(tables, ignore_index=True)
        duplicates = frame[frame.duplicated(_KEYS)]
        if len(duplicates):
            raise InputError(f"metrics: duplicate row: {' / '.join(duplicates.iloc[0][_KEYS])}")
        rows = frame[[*_KEYS, "value", "ci_low", "ci_high"]].itertuples(index=False)
        self._cells: dict[tuple[str, ...], Cell] = {
            tuple(key): Cell(value, optional_float(low), optional_float(high))
            for *key, value, low, high in rows
        }
        self.models: list[str] = list(dict.fromkeys(frame["model"]))
        self.benchmarks: list[str] = list(dict.fromkeys(frame["benchmark"]))

    def get(
        self, model: str, benchmark: str, strategy: str, metric: str, subset: str = "all"
    ) -> Cell | None:
        """A metric value with its interval, or None.

        A paired difference whose simultaneous (max-T) interval excludes 0 has the mark †.
        """
        cell = self._cells.get((model, benchmark, strategy, subset, metric))
        simultaneous_metric = metric.replace("_vs_", "_maxt_vs_")
        simultaneous = self._cells.get((model, benchmark, strategy, subset, simultaneous_metric))
        if cell is None or metric == simultaneous_metric or simultaneous is None:
            return cell
        return replace(cell, mark="†" if simultaneous.excludes_zero else "")

    def strategies(self, model: str, benchmark: str) -> list[str]:
        """The strategies of a setting, in order of appearance."""
        return list(dict.fromkeys(k[2] for k in self._cells if k[:2] == (model, benchmark)))

    def settings(self, labels: Labels) -> list[tuple[str, str]]:
        """(model, benchmark) pairs with values, grouped by benchmark as in Table 3."""
        return [
            (model, benchmark)
            for benchmark in ordered(self.benchmarks, labels.benchmarks)
            for model in ordered(self.models, labels.models)
            if self.strategies(model, benchmark)
        ]


def ordered(keys: Iterable[str], order: Mapping[str, str]) -> list[str]:
    """The keys in the given order; those it does not name come last."""
    remaining = list(keys)
    first = [key for key in order if key in remaining]
    return first + [key for key in remaining if key not in order]
