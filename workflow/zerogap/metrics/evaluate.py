"""All readings of one model and benchmark, with intervals: the rows of the `metrics` table."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from zerogap.errors import InputError
from zerogap.metrics import bootstrap, correction, gaps
from zerogap.metrics.gaps import Values

# The readings of the paper, in its order.
PAPER = (
    "g_ap",
    "g_app",
    "a_ppg",
    "delta_plus",
    "delta_minus",
    "sa_ppg",
    "s_delta_plus",
    "s_delta_minus",
)
# `<metric>_vs_<reference>`: a strategy's reading minus the reference's, on the same replicates.
# The headline is compared with every other strategy, the rest with these.
REFERENCES = ("identity", "railcap", "all_zero")
SCHEMES = ("questions", "samples")
AT_ONCE = 256  # replicates; their weights have to fit a processor's cache

COLUMNS = ["model", "benchmark", "strategy", "subset", "metric", "value", "ci_low", "ci_high"]


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
    """Read every strategy against the clean model, on all, leaked and unleaked questions.

    Args:
        model, benchmark: names for the first two columns.
        clean: `solve` table of the clean model's first batch, the reference.
        strategies: name → `solve` table; the clean model's second batch goes in as
            ``clean_batch2`` (the noise floor).
        bins: the number of strata B.
        replicates, level, seed: of the bootstrap.
        over: what a replicate draws anew, ``questions`` or ``samples`` (see
            `zerogap.metrics.bootstrap`).

    Returns:
        A `metrics` table. For each strategy and subset: the readings in `PAPER`; ``solve_mean``,
        the mean solve probability (also of the reference, as strategy ``clean``);
        ``share_empty``, the share of questions without samples; ``g_ap_mean`` and ``g_ap_sd``
        over the choice of the one response that G-AP looks at (exact, without an interval);
        ``sa_ppg_corrected``, SA-PPG less what finitely many samples add to it
        (`zerogap.metrics.correction`, without an interval); paired differences
        ``<metric>_vs_<reference>``; and ``sa_ppg_maxt_vs_<reference>``, the same difference with
        an interval that holds for all pairs of the strategies and subset together. A subset
        without questions is left out.

    Raises:
        InputError: tables that do not hold the same questions, repeated questions, a clean
            question without samples, or an unknown scheme.
    """
    if resample not in SCHEMES:
        raise InputError(f"resample: {resample!r} is unknown; choose one of {', '.join(SCHEMES)}")
    clean = _by_question(clean, "clean")
    tables = {name: _like(clean, table, name) for name, table in strategies.items()}
    # Leaked questions first: the subsets are slices then, which cost no copy.
    order = np.argsort(~clean["leaked"].to_numpy(dtype=bool), kind="stable")
    clean = clean.iloc[order]
    tables = {name: table.iloc[order] for name, table in tables.items()}
    leaked = clean["leaked"].to_numpy(dtype=bool)
    subsets = {
        "all": slice(None),
        "leaked": slice(None, leaked.sum()),
        "unleaked": slice(leaked.sum(), None),
    }
    observed = {name: _columns(table) for name, table in {"clean": clean, **tables}.items()}
    rng = np.random.default_rng(seed)
    if resample == "questions":
        drawn = bootstrap.question_weights(leaked, n_resamples, rng)
        draws = observed
    else:
        drawn = np.broadcast_to(1, (n_resamples, len(clean)))
        draws = {name: _redraw(column, n_resamples, rng) for name, column in observed.items()}

    rows = []
    for subset, part in subsets.items():
        if not leaked[part].size:
            continue
        columns = {name: column.on(part) for name, column in observed.items()}
        reference = columns.pop("clean")
        values = {name: _point(column, reference, bins) for name, column in columns.items()}
        values["clean"] = {"solve_mean": float(reference.probability.mean())}
        spreads = _joined(
            _spreads(
                {name: draw.on(part, chunk) for name, draw in draws.items()},
                drawn[chunk, part],
                bins,
            )
            for chunk in _chunks(n_resamples)
        )
        for name, metric, value, spread in _with_differences(values, spreads):
            low, high = float("nan"), float("nan")
            if spread is not None:
                centre = value if resample == "samples" else None
                low, high = bootstrap.interval(spread, confidence_level, centre=centre)
                if "_vs_" not in metric:
                    low = max(low, 0.0)  # centring may move it below what can be read
            rows.append((model, benchmark, name, subset, metric, value, low, high))
        for name, metric, value, low, high in _together(
            values, spreads, confidence_level, resample
        ):
            rows.append((model, benchmark, name, subset, metric, value, low, high))
    return pd.DataFrame(rows, columns=COLUMNS)


class _Solve:
    """Counts and readouts of the questions of one table, or of its redraws in each replicate."""

    def __init__(self, correct: np.ndarray, samples: np.ndarray, first: np.ndarray) -> None:
        self.correct, self.samples, self.first = correct, samples, first
        self.probability: Values = np.divide(
            correct, samples, out=np.zeros(correct.shape), where=samples > 0
        )

    def on(self, part: slice, chunk: slice = slice(None)) -> "_Solve":
        """Some of the questions, and some of the replicates where there are any."""
        place = (chunk, part) if self.correct.ndim == 2 else part
        return _Solve(self.correct[place], self.samples[part], self.first[place])

    def strata(self, bins: int) -> np.ndarray:
        samples = np.broadcast_to(self.samples, self.correct.shape)
        flat = gaps.strata(self.correct.ravel(), samples.ravel(), bins)
        return flat.reshape(self.correct.shape)


def _columns(table: pd.DataFrame) -> _Solve:
    return _Solve(
        table["n_correct"].to_numpy(dtype=np.int64),
        table["n_samples"].to_numpy(dtype=np.int64),
        table["first_correct"].to_numpy(dtype=np.int64),
    )


def _redraw(observed: _Solve, replicates: int, rng: np.random.Generator) -> _Solve:
    correct = bootstrap.redraw(observed.correct, observed.samples, replicates, rng)
    chance = observed.probability.astype(np.float32)
    first = rng.random(correct.shape, dtype=np.float32) < chance
    return _Solve(correct, observed.samples, first)


def _chunks(replicates: int) -> Iterator[slice]:
    return (slice(start, start + AT_ONCE) for start in range(0, replicates, AT_ONCE))


def _point(column: _Solve, clean: _Solve, bins: int) -> dict[str, float]:
    counts = (column.correct, column.samples, clean.correct, clean.samples)
    mean, deviation = gaps.g_ap_over_choices(*counts)
    return {
        "g_ap": gaps.g_ap(column.first, clean.first),
        "g_app": gaps.g_app(*counts),
        "a_ppg": gaps.a_ppg(*counts),
        "delta_plus": gaps.delta_plus(*counts),
        "delta_minus": gaps.delta_minus(*counts),
        "sa_ppg": gaps.sa_ppg(*counts, bins=bins),
        "s_delta_plus": gaps.s_delta_plus(*counts, bins=bins),
        "s_delta_minus": gaps.s_delta_minus(*counts, bins=bins),
        "solve_mean": float(column.probability.mean()),
        "share_empty": float((column.samples == 0).mean()),
        "g_ap_mean": mean,
        "g_ap_sd": deviation,
        "sa_ppg_corrected": correction.sa_ppg_corrected(*counts, bins=bins),
    }


def _spreads(
    draws: Mapping[str, _Solve], drawn: np.ndarray, bins: int
) -> dict[str, dict[str, Values]]:
    """The readings of `_point` in some replicates, for those that have an interval."""
    clean = draws["clean"]
    plain = bootstrap.plain_weights(drawn)
    stratified = bootstrap.stratified_weights(drawn, clean.strata(bins))
    clean_mean, clean_first = _means(plain, [clean.probability, clean.first])
    (clean_stratified,) = _means(stratified, [clean.probability])
    spreads = {"clean": {"solve_mean": clean_mean}}
    for name, own in draws.items():
        if name == "clean":
            continue
        plus = np.maximum(own.probability - clean.probability, 0)
        mean, first, above, empty = _means(
            plain, [own.probability, own.first, plus, own.samples == 0]
        )
        mean_stratified, above_stratified = _means(stratified, [own.probability, plus])
        # What lies below the clean model is what lies above it less the difference of the means.
        below = above - (mean - clean_mean)
        below_stratified = above_stratified - (mean_stratified - clean_stratified)
        spreads[name] = {
            "g_ap": np.abs(first - clean_first),
            "g_app": np.abs(mean - clean_mean),
            "a_ppg": above + below,
            "delta_plus": above,
            "delta_minus": below,
            "sa_ppg": above_stratified + below_stratified,
            "s_delta_plus": above_stratified,
            "s_delta_minus": below_stratified,
            "solve_mean": mean,
            "share_empty": empty,
        }
    return spreads


def _means(weights: Values, columns: Sequence[np.ndarray]) -> Sequence[Values]:
    """Weighted means of several columns, in one pass where none was redrawn."""
    if all(column.ndim == 1 for column in columns):
        return (weights @ np.column_stack(columns)).T
    return [bootstrap.weighted_means(weights, column) for column in columns]


def _joined(parts: Iterator[dict[str, dict[str, Values]]]) -> dict[str, dict[str, Values]]:
    """The replicates of all chunks, one after the other."""
    parts = list(parts)
    return {
        name: {metric: np.concatenate([part[name][metric] for part in parts]) for metric in own}
        for name, own in parts[0].items()
    }


def _with_differences(
    values: Mapping[str, Mapping[str, float]], spreads: Mapping[str, Mapping[str, Values]]
) -> Iterator[tuple[str, str, float, Values | None]]:
    """Each strategy's readings, then its paired differences: name, metric, value, replicates."""
    for name, own in values.items():
        for metric, value in own.items():
            yield name, metric, value, spreads[name].get(metric)
        if name == "clean":
            continue
        for metric in PAPER:
            for other in values:
                compared = metric == "sa_ppg" or other in REFERENCES
                if other in (name, "clean") or not compared:
                    continue
                yield (
                    name,
                    f"{metric}_vs_{other}",
                    own[metric] - values[other][metric],
                    spreads[name][metric] - spreads[other][metric],
                )


def _together(
    values: Mapping[str, Mapping[str, float]],
    spreads: Mapping[str, Mapping[str, Values]],
    level: float,
    over: str,
) -> Iterator[tuple[str, str, float, float, float]]:
    """Differences of SA-PPG with intervals for all pairs at once: name, metric, value, ends."""
    pairs = list(combinations([name for name in values if name != "clean"], 2))
    if not pairs:
        return
    differences = np.array([values[a]["sa_ppg"] - values[b]["sa_ppg"] for a, b in pairs])
    replicates = np.array([spreads[a]["sa_ppg"] - spreads[b]["sa_ppg"] for a, b in pairs])
    if over == "samples":  # centred, as in `bootstrap.interval`
        replicates += (differences - replicates.mean(axis=1))[:, None]
    ends = bootstrap.simultaneous(replicates, differences, level)
    for (a, b), value, low, high in zip(pairs, differences, *ends, strict=True):
        yield a, f"sa_ppg_maxt_vs_{b}", value, low, high
        yield b, f"sa_ppg_maxt_vs_{a}", -value, -high, -low


def _by_question(table: pd.DataFrame, name: str) -> pd.DataFrame:
    if (repeated := table["question_id"][table["question_id"].duplicated()]).size:
        raise InputError(f"{name}: question {repeated.iloc[0]!r} appears more than once")
    return table.set_index("question_id")


def _like(clean: pd.DataFrame, table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table's rows in the order of the clean one."""
    table = _by_question(table, name)
    if (odd := clean.index.symmetric_difference(table.index)).size:
        where = "missing" if odd[0] in clean.index else "unknown to the clean model"
        raise InputError(
            f"{name}: question {odd[0]!r} is {where} ({odd.size} differ); "
            "sample both from the same questions"
        )
    table = table.loc[clean.index]
    if not (table["leaked"].to_numpy() == clean["leaked"].to_numpy()).all():
        raise InputError(f"{name}: its leaked questions are not the clean table's")
    return table
