"""All readings of one model and domain, with intervals: the rows of the `metrics` table."""

from collections.abc import Iterator, Mapping

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

COLUMNS = ["model", "domain", "strategy", "subset", "metric", "value", "ci_low", "ci_high"]


def readings(
    model: str,
    domain: str,
    clean: pd.DataFrame,
    strategies: Mapping[str, pd.DataFrame],
    *,
    bins: int = 50,
    replicates: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    over: str = "questions",
) -> pd.DataFrame:
    """Read every strategy against the clean model, on all, leaked and unleaked questions.

    Args:
        model, domain: names for the first two columns.
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
        (`zerogap.metrics.correction`, without an interval); and paired differences
        ``<metric>_vs_<reference>``. A subset without questions is left out.

    Raises:
        InputError: tables that do not hold the same questions, repeated questions, a clean
            question without samples, or an unknown scheme.
    """
    if over not in SCHEMES:
        raise InputError(f"over: {over!r} is unknown; choose one of {', '.join(SCHEMES)}")
    clean = _by_question(clean, "clean")
    tables = {name: _like(clean, table, name) for name, table in strategies.items()}
    leaked = clean["leaked"].to_numpy(dtype=bool)
    rng = np.random.default_rng(seed)
    if over == "questions":
        drawn = bootstrap.question_weights(leaked, replicates, rng)
        redrawn = {}
    else:
        drawn = np.ones((replicates, len(clean)), dtype=np.int64)
        redrawn = {
            name: _redraw(table, replicates, rng)
            for name, table in {"clean": clean, **tables}.items()
        }

    rows = []
    for subset, mask in {"all": leaked | True, "leaked": leaked, "unleaked": ~leaked}.items():
        if not mask.any():
            continue
        reference = clean[mask]
        columns = {name: _columns(table[mask]) for name, table in tables.items()}
        clean_columns = _columns(reference)
        clean_draws = redrawn["clean"].on(mask) if redrawn else clean_columns
        plain = bootstrap.plain_weights(drawn[:, mask])
        stratified = bootstrap.stratified_weights(drawn[:, mask], clean_draws.strata(bins))

        values, spreads = {}, {}
        for name, column in columns.items():
            draws = redrawn[name].on(mask) if redrawn else column
            values[name] = _point(column, clean_columns, bins)
            spreads[name] = _spread(draws, clean_draws, plain, stratified)
        values["clean"] = {"solve_mean": float(clean_columns.probability.mean())}
        spreads["clean"] = {"solve_mean": bootstrap.weighted_means(plain, clean_draws.probability)}
        for name, metric, value, spread in _with_differences(values, spreads):
            low, high = float("nan"), float("nan")
            if spread is not None:
                centre = value if redrawn else None
                low, high = bootstrap.interval(spread, level, centre=centre)
                if "_vs_" not in metric:
                    low = max(low, 0.0)  # centring may move it below what can be read
            rows.append((model, domain, name, subset, metric, value, low, high))
    return pd.DataFrame(rows, columns=COLUMNS)


class _Solve:
    """Counts and readouts of the questions of one table, or of its redraws in each replicate."""

    def __init__(self, correct: np.ndarray, samples: np.ndarray, first: np.ndarray) -> None:
        self.correct, self.samples, self.first = correct, samples, first
        self.probability: Values = np.divide(
            correct, samples, out=np.zeros(correct.shape), where=samples > 0
        )

    def on(self, mask: np.ndarray) -> "_Solve":
        return _Solve(self.correct[..., mask], self.samples[mask], self.first[..., mask])

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


def _redraw(table: pd.DataFrame, replicates: int, rng: np.random.Generator) -> _Solve:
    observed = _columns(table)
    correct = bootstrap.redraw(observed.correct, observed.samples, replicates, rng)
    first = rng.random(correct.shape) < observed.probability
    return _Solve(correct, observed.samples, first.astype(np.int64))


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


def _spread(draws: _Solve, clean: _Solve, plain: Values, stratified: Values) -> dict[str, Values]:
    """The readings of `_point` in every replicate, for those that have an interval."""
    gap = draws.probability - clean.probability
    plus, minus = np.maximum(gap, 0), np.maximum(-gap, 0)
    mean = bootstrap.weighted_means
    spread = {
        "g_ap": np.abs(mean(plain, draws.first - clean.first)),
        "g_app": np.abs(mean(plain, gap)),
        "delta_plus": mean(plain, plus),
        "delta_minus": mean(plain, minus),
        "s_delta_plus": mean(stratified, plus),
        "s_delta_minus": mean(stratified, minus),
        "solve_mean": mean(plain, draws.probability),
        "share_empty": mean(plain, draws.samples == 0),
    }
    spread["a_ppg"] = spread["delta_plus"] + spread["delta_minus"]
    spread["sa_ppg"] = spread["s_delta_plus"] + spread["s_delta_minus"]
    return spread


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
