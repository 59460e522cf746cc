"""The numbers quoted in the paper's text, measured, next to the published values."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from zerogap.metrics import (
    interval,
    observed_and_resampled,
    plain_weights,
    strata,
    stratified_means,
)
from zerogap.metrics.bootstrap import SHARE, UNBOUNDED
from zerogap.metrics.gaps import Array, Values
from zerogap.metrics.same_questions import by_question, in_order, probabilities
from zerogap.published import printed

# Key in published.csv (or only ours) → description for readers.
QUANTITIES = {
    "readout_gap_01": "Mean per-question gap of two clean batches, 0/1 readout (one sample)",
    "readout_gap_01_expected": "The same, expected over every choice of the two samples",
    "readout_gap_probability": "Mean per-question gap of two clean batches, solve probability",
    "sa_ppg_noise_floor": "SA-PPG of the second clean batch (the noise floor)",
    "share_never_solved": "Share of questions the clean model never solves",
    "share_runner_up": "Share of disagreement steps with the clean token as runner-up, leaked",
    "share_runner_up_unleaked": "The same, unleaked",
    "delta_minus_ratio_lne_railcap": "Δ⁻ of LNE-blocking over Δ⁻ of RailCap",
    "g_app_ratio_railcap_lne": "G-APP of RailCap over G-APP of LNE-blocking",
    "verdict_factor_lne": "SA-PPG over G-APP, LNE-blocking",
    "g_app_minus_g_ap_lne": "G-APP minus G-AP, LNE-blocking",
    "s_delta_difference_railcap": "S-Δ⁺ minus S-Δ⁻, RailCap",
}
DIFFERENCES = ("g_app_minus_g_ap_lne", "s_delta_difference_railcap")
RATIOS = ("delta_minus_ratio_lne_railcap", "g_app_ratio_railcap_lne", "verdict_factor_lne")
COLUMNS = ["key", "quantity", "place", "published", "printed", "value", "ci_low", "ci_high"]
MAX_RANK_STEP = 10  # paper, Figure 1 b and d
ROUNDING = 1e-12  # the rounding error of sums that cancel

StratifiedMean = Callable[[Values], Values]  # value of each question → mean in each resample


def inline_numbers(
    clean: pd.DataFrame,
    clean_batch2: pd.DataFrame,
    strategies: Mapping[str, pd.DataFrame],
    ranks: pd.DataFrame | None = None,
    *,
    bins: int = 50,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """The quantities of `QUANTITIES` that the given tables allow, in that order.

    Args:
        clean: `solve` table of the clean model's first batch.
        clean_batch2: `solve` table of its second batch.
        strategies: Name → `solve` table; some quantities need LNE-blocking and RailCap.
        ranks: `ranks` table of the contaminated model on the clean model's greedy trajectory.
        bins: Number of strata.
        n_resamples: Number of bootstrap resamples.
        confidence_level: Of the intervals.
        seed: Of the bootstrap.

    Returns:
        Columns key, quantity, place, published (NaN where the paper has none), printed, value,
        ci_low, ci_high. The intervals are over questions, leaked and unleaked separately. Those of
        ratios are percentiles, because a ratio whose denominator can be zero may be infinite; the
        others are symmetric, as those of the metrics, but those of shares end at 0 and 1.

    Raises:
        InputError: Two tables have different questions, or a question twice.
    """
    clean = by_question(clean, "clean")
    leaked = clean["leaked"].to_numpy(dtype=bool)
    draws = observed_and_resampled(leaked, n_resamples, np.random.default_rng(seed))
    solve = {
        name: in_order(by_question(table, name), clean.index, name)
        for name, table in {"clean_batch2": clean_batch2, **strategies}.items()
    }
    stratum = strata(clean["n_correct"], clean["n_samples"], bins)

    def stratified(gap: Values) -> Values:
        return stratified_means(draws, stratum, gap, confidence_level)

    values = _clean_values(clean, solve["clean_batch2"], draws, stratified)
    if ranks is not None:
        for key, of_leaked in (("share_runner_up", True), ("share_runner_up_unleaked", False)):
            of_subset = ranks[ranks["leaked"] == of_leaked]
            values[key] = _runner_up_share(of_subset, clean.index, draws)
    values |= _strategy_values(clean, solve, draws, stratified)
    rows = [_row(key, values[key], confidence_level) for key in QUANTITIES if key in values]
    return pd.DataFrame(rows, columns=COLUMNS)


def _clean_values(
    clean: pd.DataFrame, batch2: pd.DataFrame, draws: Array, stratified: StratifiedMean
) -> dict[str, Values]:
    """The quantities of the clean model's two batches, in each resample."""
    plain = plain_weights(draws)
    p, q = (probabilities(table) for table in (clean, batch2))
    first_differs = clean["first_correct"].to_numpy() != batch2["first_correct"].to_numpy()
    return {
        "readout_gap_01": plain @ first_differs,
        "readout_gap_01_expected": plain @ (p * (1 - q) + q * (1 - p)),
        "readout_gap_probability": plain @ np.abs(q - p),
        "sa_ppg_noise_floor": stratified(np.abs(q - p)),
        "share_never_solved": plain @ (p == 0),
    }


def _strategy_values(
    clean: pd.DataFrame,
    solve: Mapping[str, pd.DataFrame],
    draws: Array,
    stratified: StratifiedMean,
) -> dict[str, Values]:
    """The quantities of LNE-blocking and RailCap, in each resample, if their tables are there."""
    plain, p = plain_weights(draws), probabilities(clean)
    gaps = {name: probabilities(table) - p for name, table in solve.items()}
    values = {}
    if "lne_blocking" in gaps:
        lne = gaps["lne_blocking"]
        g_app = np.abs(plain @ lne)
        marks = [t["first_correct"].to_numpy(np.float64) for t in (solve["lne_blocking"], clean)]
        values["verdict_factor_lne"] = _ratio(stratified(np.abs(lne)), g_app)
        values["g_app_minus_g_ap_lne"] = g_app - np.abs(plain @ (marks[0] - marks[1]))
    if "railcap" in gaps:
        railcap = gaps["railcap"]
        values["s_delta_difference_railcap"] = stratified(railcap)
    if gaps.keys() >= {"lne_blocking", "railcap"}:
        damage, railcap_damage = (plain @ np.maximum(-gap, 0) for gap in (lne, railcap))
        values["delta_minus_ratio_lne_railcap"] = _ratio(damage, railcap_damage)
        values["g_app_ratio_railcap_lne"] = _ratio(np.abs(plain @ railcap), g_app)
    return values


def _runner_up_share(ranks: pd.DataFrame, questions: pd.Index, draws: Array) -> Values:
    """Share of rank 2 among the first steps at which the models disagree, in each resample."""
    rows = ranks[(ranks["rank"] > 1) & (ranks["step"] <= MAX_RANK_STEP)]
    steps = _count_by_question(rows, questions)
    return _ratio(draws @ _count_by_question(rows[rows["rank"] == 2], questions), draws @ steps)


def _count_by_question(rows: pd.DataFrame, questions: pd.Index) -> Array:
    return rows.groupby("question_id").size().reindex(questions, fill_value=0).to_numpy()


def _ratio(numerator: Array, denominator: Array) -> Values:
    """Infinite where only the denominator is 0, NaN where both are."""
    denominator = np.where(np.abs(denominator) < ROUNDING, 0.0, denominator)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients: Values = np.true_divide(numerator, denominator)
    return quotients


def _row(key: str, values: Values, confidence_level: float) -> tuple[Any, ...]:
    published, characters, place = printed(key) or (float("nan"), "", "")
    value, resamples = values[0], values[1:]
    resamples = resamples[~np.isnan(resamples)]  # resamples without a disagreement are left out
    if np.isnan(value):
        low, high = value, value
    elif key not in RATIOS:
        bounds = UNBOUNDED if key in DIFFERENCES else SHARE
        low, high = interval(resamples, float(value), confidence_level, bounds)
    else:
        tails = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
        # A ratio can be infinite: take one of the resamples, do not interpolate between two.
        low, high = np.quantile(resamples, tails, method="inverted_cdf")
    return key, QUANTITIES[key], place, published, characters, value, float(low), float(high)
