"""All metrics of one model and benchmark, with intervals: the rows of the `metrics` table."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import bootstrap, gaps
from zerogap.metrics.comparison import Comparison, SolveCounts
from zerogap.metrics.gaps import Array, Values
from zerogap.metrics.registry import METRICS, Metric
from zerogap.metrics.same_questions import by_question, in_order

# `<metric>_vs_<reference>`: a strategy's metric value minus the reference's, on the same resamples.
REFERENCES = ("identity", "railcap", "all_zero")
SCHEMES = ("questions", "samples")
# Resamples computed at once, by scheme: their arrays should fit into a processor's cache.
CHUNK_SIZES = {"questions": 256, "samples": 32}

OF_CLEAN_MODEL = [metric for metric in METRICS.values() if metric.of_clean_model]

COLUMNS = ["model", "benchmark", "strategy", "subset", "metric", "value", "ci_low", "ci_high"]

CountsByName = dict[str, SolveCounts]
PointEstimates = dict[str, dict[str, float]]  # strategy → metric → value
Resamples = dict[str, dict[str, Values]]  # strategy → metric → (resamples,)


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
        model: Name for the first column.
        benchmark: Name for the second column.
        clean: `solve` table of the clean model's first batch, the reference.
        strategies: Name → `solve` table. The clean model's second batch is passed as
            ``clean_batch2`` (the noise floor).
        bins: Number of strata B.
        n_resamples: Number of bootstrap resamples.
        confidence_level: Of the intervals.
        seed: Of the bootstrap.
        resample: What a resample draws again, ``questions`` or ``samples`` (see
            `zerogap.metrics.bootstrap`).

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
    if resample not in SCHEMES:
        raise InputError(f"resample: {resample!r} is unknown; choose one of {', '.join(SCHEMES)}")
    gaps.check_bins(bins)
    tables = _aligned(clean, strategies)
    leaked = tables["clean"]["leaked"].to_numpy(dtype=bool)
    leaked_first = np.argsort(~leaked, kind="stable")  # subsets are slices then, and not copied
    observed = _select(_checked_counts(tables), leaked_first)
    leaked = leaked[leaked_first]
    draws, counts = _draw_resamples(observed, leaked, n_resamples, seed, resample)
    rows: list[tuple[object, ...]] = []
    for subset, questions in _subsets(leaked).items():
        points = _point_estimates(_select(observed, questions), bins)
        resamples = _resampled(
            _select(counts, questions),
            draws[:, questions],
            bins,
            confidence_level,
            CHUNK_SIZES[resample],
        )
        rows += [
            (model, benchmark, strategy, subset, metric, value, low, high)
            for strategy, metric, value, low, high in _with_intervals(
                points, resamples, confidence_level
            )
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def rows_about(table: pd.DataFrame, strategies: Collection[str]) -> pd.DataFrame:
    """The rows of a `metrics` table on some strategies, and on differences of others from them."""
    reference = table["metric"].str.partition("_vs_")[2]
    return table[table["strategy"].isin(strategies) | reference.isin(strategies)]


def _draw_resamples(
    observed: CountsByName, leaked: Array, n_resamples: int, seed: int, resample: str
) -> tuple[Array, CountsByName]:
    """How often each resample draws each question, and the counts, (resamples or 1, questions)."""
    rng = np.random.default_rng(seed)
    if resample == "questions":
        draws = bootstrap.question_weights(leaked, n_resamples, rng)
        return draws, {name: table[None] for name, table in observed.items()}
    draws = np.broadcast_to(np.int64(1), (n_resamples, len(leaked)))
    return draws, {name: _redrawn(table, n_resamples, rng) for name, table in observed.items()}


def _subsets(leaked: Array) -> dict[str, slice]:
    """The questions of each subset that has any; leaked questions come first."""
    n_leaked = int(leaked.sum())
    subsets = {
        "all": slice(None),
        "leaked": slice(None, n_leaked),
        "unleaked": slice(n_leaked, None),
    }
    return {name: questions for name, questions in subsets.items() if leaked[questions].size}


def _aligned(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """All tables in the order of the clean one."""
    clean = by_question(clean, "clean")
    tables = {"clean": clean}
    for name, table in strategies.items():
        tables[name] = in_order(by_question(table, name), clean.index, name)
        if not (tables[name]["leaked"].to_numpy() == clean["leaked"].to_numpy()).all():
            raise InputError(f"{name}: its leaked questions are not the clean table's")
    return tables


def _checked_counts(tables: Mapping[str, pd.DataFrame]) -> CountsByName:
    counts = {}
    for name, table in tables.items():
        columns = table["n_correct"], table["n_samples"]
        n_correct, n_samples = (
            gaps.checked_clean_counts(*columns)
            if name == "clean"
            else gaps.checked_counts(*columns, f"{name}: ")
        )
        first_correct = gaps.checked_marks(table["first_correct"], f"{name}: first_correct")
        first_correct = first_correct.astype(bool)
        counts[name] = SolveCounts(n_correct, n_samples, first_correct)
    return counts


def _select(counts: CountsByName, questions: slice | Array) -> CountsByName:
    return {name: table[..., questions] for name, table in counts.items()}


def _redrawn(observed: SolveCounts, n_resamples: int, rng: np.random.Generator) -> SolveCounts:
    """Counts and first responses redrawn in each resample: (resamples, questions)."""
    n_correct = bootstrap.redraw(observed.n_correct, observed.n_samples, n_resamples, rng)
    n_samples = np.broadcast_to(observed.n_samples, n_correct.shape)
    probability = observed.probability.astype(np.float32)
    first_correct = rng.random(n_correct.shape, dtype=np.float32) < probability
    return SolveCounts(n_correct, n_samples, first_correct)


def _point_estimates(counts: CountsByName, bins: int) -> PointEstimates:
    """Every metric of every strategy; the clean model comes last."""
    clean = counts["clean"]
    points = {
        name: _point_estimate(Comparison(table, clean, bins), METRICS.values())
        for name, table in counts.items()
        if name != "clean"
    }
    points["clean"] = _point_estimate(Comparison(clean, clean, bins), OF_CLEAN_MODEL)
    return points


def _point_estimate(comparison: Comparison, metrics: Iterable[Metric]) -> dict[str, float]:
    return {metric.name: float(metric.definition(comparison)) for metric in metrics}


def _resampled(
    counts: CountsByName, draws: Array, bins: int, confidence_level: float, chunk_size: int
) -> Resamples:
    """Every metric that has an interval, of every strategy, in every resample.

    Args:
        counts: Arrays of shape (resamples or 1, questions).
        draws: How often each resample drew each question, (resamples, questions).
        bins: Number of strata.
        confidence_level: Of the intervals.
        chunk_size: Resamples computed at once.
    """
    names = list(counts)
    metrics = [metric for metric in METRICS.values() if metric.has_interval]
    values: dict[str, dict[str, list[Values]]] = {name: defaultdict(list) for name in names}
    for start in range(0, len(draws), chunk_size):
        chunk = slice(start, start + chunk_size)
        part = {
            name: table if len(table.n_correct) == 1 else table[chunk]
            for name, table in counts.items()
        }
        strategies = SolveCounts.stack([part[name] for name in names])
        weights = draws[chunk].astype(np.float64)
        comparison = Comparison(strategies, part["clean"], bins, weights, confidence_level)
        for metric in metrics:
            by_strategy = metric.definition(comparison)  # (strategies, resamples)
            for name, resamples in zip(names, by_strategy, strict=True):
                values[name][metric.name].append(resamples)
    return {
        name: {metric: np.concatenate(chunks) for metric, chunks in by_metric.items()}
        for name, by_metric in values.items()
    }


def _with_intervals(
    points: PointEstimates, resamples: Resamples, confidence_level: float
) -> Iterator[tuple[str, str, float, float, float]]:
    """Rows of one subset: strategy, metric, value and the ends of its interval.

    Args:
        points: Point estimates.
        resamples: The same metrics in the resamples.
        confidence_level: Of the intervals.
    """
    for strategy, metric, value, values in _with_differences(points, resamples):
        if values is None:
            yield strategy, metric, value, float("nan"), float("nan")
            continue
        bounds = bootstrap.UNBOUNDED if "_vs_" in metric else bootstrap.SHARE
        low, high = bootstrap.interval(values, value, confidence_level, bounds)
        yield strategy, metric, value, low, high
    yield from _simultaneous_differences(points, resamples, confidence_level)


def _with_differences(
    points: PointEstimates, resamples: Resamples
) -> Iterator[tuple[str, str, float, Values | None]]:
    """Each strategy's metrics, then its paired differences: name, metric, value, resamples."""
    for strategy, by_metric in points.items():
        for name, value in by_metric.items():
            yield strategy, name, value, resamples[strategy].get(name)
        if strategy == "clean":
            continue
        for metric in METRICS.values():
            for other in points:
                if other in (strategy, "clean") or not _is_compared(metric, other):
                    continue
                yield (
                    strategy,
                    f"{metric.name}_vs_{other}",
                    by_metric[metric.name] - points[other][metric.name],
                    resamples[strategy][metric.name] - resamples[other][metric.name],
                )


def _is_compared(metric: Metric, reference: str) -> bool:
    if metric.differences == "references":
        return reference in REFERENCES
    return metric.differences == "all"


def _simultaneous_differences(
    points: PointEstimates, resamples: Resamples, confidence_level: float
) -> Iterator[tuple[str, str, float, float, float]]:
    """Differences with intervals that are simultaneous over all pairs of strategies."""
    pairs = list(combinations([name for name in points if name != "clean"], 2))
    if not pairs:
        return
    for metric in METRICS.values():
        if metric.differences != "all":
            continue
        name = metric.name
        differences = np.array([points[a][name] - points[b][name] for a, b in pairs])
        values = np.array([resamples[a][name] - resamples[b][name] for a, b in pairs])
        lows, highs = bootstrap.simultaneous(values, differences, confidence_level)
        for (a, b), value, low, high in zip(pairs, differences, lows, highs, strict=True):
            yield a, f"{name}_maxt_vs_{b}", float(value), float(low), float(high)
            yield b, f"{name}_maxt_vs_{a}", -float(value), -float(high), -float(low)
