"""The metric values of a run, and the names to show for what they are about."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import definitions
from zerogap.reporting.render import Cell
from zerogap.strategies.registry import BUILT_IN, NOT_STRATEGIES

# Names of strategies that a configuration does not give.
STRATEGIES = NOT_STRATEGIES | {name: entry.label for name, entry in BUILT_IN.items()}
# The columns of the table of subsets, by metric.
METRIC_LABELS = {"solve_mean": definitions.solve_mean.label} | {
    metric.name: metric.label for metric in definitions.METRICS.values() if metric.in_paper
}
SUBSETS = ("leaked", "unleaked")
Setting = tuple[str, str]  # (model, benchmark)
_KEYS = ["model", "benchmark", "strategy", "subset", "metric"]


@dataclass(frozen=True)
class Labels:
    """The names to show, by key. Their order is the order of rows and columns.

    `configurations` are the rows of Table 4 between Identity and All-Zero.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    benchmarks: Mapping[str, str] = field(default_factory=dict)
    strategies: Mapping[str, str] = field(default_factory=dict)
    configurations: Mapping[str, str] = field(default_factory=dict)

    def setting(self, model: str, benchmark: str) -> str:
        """The name of a setting, "Llama2 × GSM8K"."""
        return f"{self.models.get(model, model)} × {self.benchmarks.get(benchmark, benchmark)}"

    def strategy(self, key: str) -> str:
        """The name of a strategy, given or the default; its key if it has none."""
        return self.strategies.get(key, STRATEGIES.get(key, key))


class MetricTable:
    """The rows of one or more `metrics` tables, by key.

    Raises:
        InputError: Two rows have the same key.
    """

    def __init__(self, tables: Iterable[pd.DataFrame]) -> None:
        frame = pd.concat(tables, ignore_index=True)
        duplicates = frame[frame.duplicated(_KEYS)]
        if len(duplicates):
            raise InputError(f"metrics: duplicate row: {' / '.join(duplicates.iloc[0][_KEYS])}")
        rows = frame[[*_KEYS, "value", "ci_low", "ci_high"]].itertuples(index=False)
        self._cells: dict[tuple[str, ...], Cell] = {
            tuple(key): Cell(value, low, high) for *key, value, low, high in rows
        }

    def get(
        self, model: str, benchmark: str, strategy: str, metric: str, subset: str = "all"
    ) -> Cell | None:
        """A metric value with its interval, or None.

        A paired difference whose simultaneous (max-T) interval excludes 0 has the mark †.
        """
        cell = self._cells.get((model, benchmark, strategy, subset, metric))
        maxt = metric.replace("_vs_", "_maxt_vs_", 1)
        simultaneous = self._cells.get((model, benchmark, strategy, subset, maxt))
        if cell is None or simultaneous is None or maxt == metric:
            return cell
        excludes_zero = simultaneous.low > 0 or simultaneous.high < 0
        return replace(cell, mark="†") if excludes_zero else cell

    def strategies(self, model: str, benchmark: str) -> list[str]:
        """The strategies of a setting, in order of appearance."""
        return list(dict.fromkeys(k[2] for k in self._cells if k[:2] == (model, benchmark)))

    def settings(self, labels: Labels) -> list[Setting]:
        """The settings with values, grouped by benchmark as in Table 3."""
        found = dict.fromkeys(key[:2] for key in self._cells)
        benchmarks = ordered((benchmark for _, benchmark in found), labels.benchmarks)
        models = ordered((model for model, _ in found), labels.models)
        return [(m, b) for b in benchmarks for m in models if (m, b) in found]


def ordered(keys: Iterable[str], order: Mapping[str, str]) -> list[str]:
    """The distinct keys in the given order; those it does not name come last."""
    distinct = list(dict.fromkeys(keys))
    return [key for key in order if key in distinct] + [k for k in distinct if k not in order]
