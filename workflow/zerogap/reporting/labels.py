"""The names that tables and figures show for models, benchmarks, strategies and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from zerogap.metrics import definitions
from zerogap.strategies.registry import ALL_ZERO, BUILT_IN

MODELS = {"llama2": "Llama2", "gemma": "Gemma", "pythia": "Pythia"}
BENCHMARKS = {"gsm8k": "GSM8K", "pq": "PQ"}
STRATEGIES = {
    "clean": "Clean model",
    "clean_batch2": "Clean model, second batch",
    **{name: entry.label for name, entry in BUILT_IN.items() if not entry.acts_on_rail},
    ALL_ZERO: "All-Zero",
    "railcap": BUILT_IN["railcap"].label,
    "railcap_n1": "RailCap, n=1",
    "railcap_n3": "RailCap, n=3",
    "railcap_n5": "RailCap, n=5",
    "railcap_n7": "RailCap, n=7",
    "railcap_ban": "RailCap, ban",
    "ted_unfiltered": "TED, empty unfiltered",
    "lne_blocking_nearest": "LNE-blocking, nearest",
}
# Table 4 names its rows by configuration, between Identity and All-Zero.
CONFIGURATIONS = {
    "railcap_n1": "n=1",
    "railcap_n3": "n=3",
    "railcap": "n=4",
    "railcap_n5": "n=5",
    "railcap_n7": "n=7",
    "railcap_ban": "n=4, ban",
}
# Metrics of a subset of the questions; A-PPG and SA-PPG are each followed by their two components.
METRICS = {"solve_mean": definitions.solve_mean.label} | {
    metric.name: metric.label for metric in definitions.METRICS.values() if metric.in_paper
}
SUBSETS = ("leaked", "unleaked")


@dataclass(frozen=True)
class Labels:
    """The names to show, by key. Their order is the order of rows and columns.

    Attributes:
        models: Model key to name.
        benchmarks: Benchmark key to name.
        strategies: Strategy key to name.
        configurations: Rows of Table 4 between Identity and All-Zero.
    """

    models: Mapping[str, str] = field(default_factory=lambda: MODELS)
    benchmarks: Mapping[str, str] = field(default_factory=lambda: BENCHMARKS)
    strategies: Mapping[str, str] = field(default_factory=lambda: STRATEGIES)
    configurations: Mapping[str, str] = field(default_factory=lambda: CONFIGURATIONS)

    @classmethod
    def from_mapping(cls, names: Mapping[str, Mapping[str, str]]) -> "Labels":
        """Labels from ``{"models": {…}, "benchmarks": {…}, …}``; the rest gets defaults."""
        labels = cls(**names)
        # Given names come first, in their order; other strategies keep their default names.
        others = {key: name for key, name in STRATEGIES.items() if key not in labels.strategies}
        return replace(labels, strategies={**labels.strategies, **others})

    def setting(self, model: str, benchmark: str) -> str:
        """The name of a setting, "Llama2 × GSM8K"."""
        return f"{self.models.get(model, model)} × {self.benchmarks.get(benchmark, benchmark)}"

    def strategy(self, key: str) -> str:
        """The name of a strategy; its key if it has none."""
        return self.strategies.get(key, key)
