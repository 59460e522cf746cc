"""All metrics of one model and benchmark, with intervals: the rows of the `metrics` table."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import bootstrap, gaps
from zerogap.metrics.bootstrap import SHARE, UNBOUNDED, with_interval
from zerogap.metrics.comparison import Comparison, SolveCounts
from zerogap.metrics.definitions import METRICS
from zerogap.metrics.gaps import Array, Values
from zerogap.metrics.same_questions import in_order

# `<metric>_vs_<reference>`: a strategy's metric value minus the reference's, on the same resamples.
REFERENCES = ("identity", "railcap", "all_zero")
# Resamples computed at once, by scheme: their arrays should fit into a processor's cache.
CHUNK_SIZES = {"questions": 256, "samples": 32}
MAX_DRAWS = 12_000_000  # of questions, in the resamples computed at once: 96 MB

COLUMNS = ["model", "benchmark", "strategy", "subset", "metric", "value", "ci_low", "ci_high"]

CountsByName = dict[str, SolveCounts]
# Strategy → metric → the point estimate and, where there is an interval, its value per resample.
Estimates = dict[str, dict[str, Values]]


def evaluate(
    model: str,
    benchmark: str,
    clean: pd.DataFrame,
    strategies: Mapping[str, pd.DataFrame],
    *,
    bins: int = 50,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    seed: int = 0,
    resample: str = "questions",
) -> pd.DataFrame:
    """Compare every strategy with the clean model, on all, leaked and unleaked questions.

    Args:
        model: Value of the column ``model``.
        benchmark: Value of the column ``benchmark``.
        clean: `solve` table of the clean model's first batch, the reference. Questions that have
            the same value in a column ``cluster``, if there is one, are drawn together.
        strategies: Name → `solve` table. The clean model's second batch, the noise floor, is
            ``clean_batch2``.
        bins: Number of strata B.
        n_resamples: Number of bootstrap resamples.
        confidence_level: Of the intervals.
        seed: Of the bootstrap.
        resample: What `zerogap.metrics.bootstrap` draws again, ``questions`` or ``samples``.

    Returns:
        A `metrics` table. For each strategy and subset: every metric of the registry
        (``solve_mean`` also for the strategy ``clean``); paired differences
        ``<metric>_vs_<reference>`` of the paper's metrics; and ``sa_ppg_maxt_vs_<reference>``, with
        intervals that are simultaneous over all pairs of strategies. Metrics without an interval
        have NaN there. A subset without questions is left out.

    Raises:
        InputError: The tables do not have the same questions, a question is duplicated, counts are
            invalid or the clean model has no samples for a question (see `zerogap.metrics.sa_ppg`),
            or `bins`, `n_resamples` or `resample` is.
    """
    if resample not in CHUNK_SIZES:
        raise InputError(
            f"resample: {resample!r} is unknown; choose one of {', '.join(CHUNK_SIZES)}"
        )
    gaps.check_bins(bins)
    tables = in_order({"clean": clean, **strategies})
    leaked = tables["clean"]["leaked"].to_numpy(dtype=bool)
    leaked_first = np.argsort(~leaked, kind="stable")  # subsets are slices then, and not copied
    observed = _select(_checked_counts(tables), leaked_first)
    leaked = leaked[leaked_first]
    clusters = pd.factorize(tables["clean"].get("cluster", tables["clean"].index))[0][leaked_first]
    if clusters.min(initial=0) < 0:
        raise InputError("clean: a question has no cluster; fill the column cluster or drop it")
    # How often each resample draws each question, and the counts, (resamples or 1, questions).
    rng = np.random.default_rng(seed)
    if resample == "questions":
        draws: Array = bootstrap.question_weights(leaked, n_resamples, rng, clusters)
        counts = {name: table[None] for name, table in observed.items()}
    else:
        draws = np.broadcast_to(np.int64(1), (n_resamples, len(leaked)))
        counts = {name: _redrawn(table, n_resamples, rng) for name, table in observed.items()}
    n_leaked = int(leaked.sum())
    subsets = {"all": slice(None), "leaked": slice(n_leaked), "unleaked": slice(n_leaked, None)}
    rows: list[tuple[object, ...]] = []
    for subset, questions in subsets.items():
        if not leaked[questions].size:
            continue
        options = {
            "bins": bins, "confidence_level": confidence_level, "clusters": clusters[questions],
        }  # fmt: skip
        of_subset = _select(observed, questions), _select(counts, questions), draws[:, questions]
        estimates = _estimates(*of_subset, CHUNK_SIZES[resample], options)
        rows += [
            (model, benchmark, strategy, subset, *values)
            for strategy, *values in _rows(estimates, confidence_level)
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def rows_about(table: pd.DataFrame, strategies: Collection[str]) -> pd.DataFrame:
    """The rows of a `metrics` table on some strategies, and on differences of others from them."""
    reference = table["metric"].str.partition("_vs_")[2]
    return table[table["strategy"].isin(strategies) | reference.isin(strategies)]


def _checked_counts(tables: Mapping[str, pd.DataFrame]) -> CountsByName:
    counts = {}
    for name, table in tables.items():
        columns = table["n_correct"], table["n_samples"]
        if name == "clean":
            checked = gaps.checked_clean_counts(*columns)
        else:
            checked = gaps.checked_counts(*columns, f"{name}: ")
        first_correct = gaps.checked_marks(table["first_correct"], f"{name}: first_correct")
        if (table["leaked"].to_numpy() != tables["clean"]["leaked"].to_numpy()).any():
            raise InputError(f"{name}: its leaked questions are not the clean table's")
        counts[name] = SolveCounts(*checked, first_correct.astype(bool))
    return counts


def _select(counts: CountsByName, questions: slice | Array) -> CountsByName:
    return {name: table[..., questions] for name, table in counts.items()}


def _redrawn(observed: SolveCounts, n_resamples: int, rng: np.random.Generator) -> SolveCounts:
    """Counts and first responses redrawn in each resample: (resamples, questions)."""
    n_correct = bootstrap.redraw(observed.n_correct, observed.n_samples, n_resamples, rng)
    n_samples = np.broadcast_to(observed.n_samples, n_correct.shape)
    probability = observed.probability.astype(np.float32)
    drawn = (rng.random(len(probability), dtype=np.float32) for _ in range(n_resamples))
    return SolveCounts(n_correct, n_samples, np.stack([each < probability for each in drawn]))


def _estimates(
    observed: CountsByName,
    counts: CountsByName,
    draws: Array,
    chunk_size: int,
    options: Mapping[str, Any],
) -> Estimates:
    """Every metric of every strategy; the clean model comes last, and has some of them.

    Args:
        observed: Arrays of shape (questions,).
        counts: Those of the resamples, (resamples or 1, questions).
        draws: How often each resample drew each question, (resamples, questions).
        chunk_size: Resamples computed at once, fewer if there are many questions.
        options: Of `Comparison`.
    """
    parts: dict[str, dict[str, list[Any]]] = {}
    for name in (*(name for name in observed if name != "clean"), "clean"):
        comparison = Comparison(observed[name], observed["clean"], **options)
        parts[name] = {
            metric.name: [float(metric.definition(comparison))]
            for metric in METRICS.values()
            if name != "clean" or metric.of_clean_model
        }
    chunk_size = max(1, min(chunk_size, MAX_DRAWS // draws.shape[1]))
    for start in range(0, len(draws), chunk_size):
        chunk = slice(start, start + chunk_size)
        part = {
            name: table if len(table.n_correct) == 1 else table[chunk]
            for name, table in counts.items()
        }
        strategies, weights = SolveCounts.stack(list(part.values())), draws[chunk].astype(float)
        comparison = Comparison(strategies, part["clean"], draws=weights, **options)
        for metric in METRICS.values():
            if metric.has_interval:
                by_strategy = metric.definition(comparison)  # (strategies, resamples)
                for name, resamples in zip(counts, by_strategy, strict=True):
                    if metric.name in parts[name]:
                        parts[name][metric.name].append(resamples)
    return {
        name: {metric: np.hstack(values) for metric, values in metrics.items()}
        for name, metrics in parts.items()
    }


def _rows(
    estimates: Estimates, confidence_level: float
) -> Iterator[tuple[str, str, float, float, float]]:
    """Rows of one subset: strategy, metric, value and the ends of its interval.

    After its metrics, each strategy has its paired differences from others.
    """
    strategies = [name for name in estimates if name != "clean"]
    for strategy, metrics in estimates.items():
        for name, values in metrics.items():
            yield strategy, name, *_with_interval(values, confidence_level, SHARE)
        if strategy == "clean":
            continue
        for metric in METRICS.values():
            compared = {"none": (), "references": REFERENCES, "all": strategies}
            for other in strategies:
                if other != strategy and other in compared[metric.differences]:
                    difference = metrics[metric.name] - estimates[other][metric.name]
                    cell = _with_interval(difference, confidence_level, UNBOUNDED)
                    yield strategy, f"{metric.name}_vs_{other}", *cell
    for metric in METRICS.values():
        if metric.differences == "all" and len(strategies) > 1:
            yield from _simultaneous(metric.name, strategies, estimates, confidence_level)


def _with_interval(
    values: Values, confidence_level: float, bounds: tuple[float, float]
) -> tuple[float, float, float]:
    """Value and ends; they are NaN if a resample is, since the others would be a selection."""
    kept = values if np.isfinite(values).all() else values[:1]
    return with_interval(kept, confidence_level, bounds)


def _simultaneous(
    metric: str, strategies: list[str], estimates: Estimates, confidence_level: float
) -> Iterator[tuple[str, str, float, float, float]]:
    """Differences with intervals that are simultaneous over all pairs of strategies."""
    pairs = list(combinations(strategies, 2))
    differences = np.array([estimates[a][metric] - estimates[b][metric] for a, b in pairs])
    ends = bootstrap.simultaneous(differences[:, 1:], differences[:, 0], confidence_level)
    columns = np.column_stack([differences[:, 0], *ends]).tolist()
    for (a, b), (value, low, high) in zip(pairs, columns, strict=True):
        yield a, f"{metric}_maxt_vs_{b}", value, low, high
        yield b, f"{metric}_maxt_vs_{a}", -value, -high, -low
