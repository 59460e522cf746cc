"""The numbers quoted in the paper's text, measured, next to the published values."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from zerogap.metrics import observed_and_resampled, plain_weights, strata, stratified_means
from zerogap.metrics.bootstrap import SHARE, UNBOUNDED, with_interval
from zerogap.metrics.gaps import Array, Values
from zerogap.metrics.same_questions import in_order, probabilities
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
    tables = in_order({"clean": clean, "clean_batch2": clean_batch2, **strategies})
    clean = tables["clean"]
    draws = observed_and_resampled(clean["leaked"], n_resamples, np.random.default_rng(seed))
    stratum = strata(clean["n_correct"], clean["n_samples"], bins)
    stratified = partial(stratified_means, draws, stratum, confidence_level=confidence_level)
    values = _values(tables, plain_weights(draws), stratified)
    if ranks is not None:
        for key, of_leaked in (("share_runner_up", True), ("share_runner_up_unleaked", False)):
            of_subset = ranks[ranks["leaked"] == of_leaked]
            values[key] = _runner_up_share(of_subset, clean.index, draws)
    rows = [_row(key, values[key], confidence_level) for key in QUANTITIES if key in values]
    return pd.DataFrame(rows, columns=COLUMNS)


def _values(
    tables: Mapping[str, pd.DataFrame], plain: Array, stratified: Callable[[Values], Values]
) -> dict[str, Values]:
    """The quantities of solve counts, observed and in each resample, as far as tables are there.

    Args:
        tables: Name → `solve` table, all of the same questions.
        plain: Weights of the questions, (1 + resamples, questions).
        stratified: Value of each question → mean over strata, observed and in each resample.
    """
    solved = {name: probabilities(table) for name, table in tables.items()}
    first = {name: table["first_correct"].to_numpy(np.float64) for name, table in tables.items()}
    p, q = solved["clean"], solved["clean_batch2"]
    gaps = {name: each - p for name, each in solved.items()}
    values = {
        "readout_gap_01": plain @ (first["clean"] != first["clean_batch2"]),
        "readout_gap_01_expected": plain @ (p * (1 - q) + q * (1 - p)),
        "readout_gap_probability": plain @ np.abs(q - p),
        "sa_ppg_noise_floor": stratified(np.abs(q - p)),
        "share_never_solved": plain @ (p == 0),
    }
    if "lne_blocking" in gaps:
        lne = gaps["lne_blocking"]
        g_app = np.abs(plain @ lne)
        g_ap = np.abs(plain @ (first["lne_blocking"] - first["clean"]))
        values["verdict_factor_lne"] = _ratio(stratified(np.abs(lne)), g_app)
        values["g_app_minus_g_ap_lne"] = g_app - g_ap
    if "railcap" in gaps:
        values["s_delta_difference_railcap"] = stratified(gaps["railcap"])
    if gaps.keys() >= {"lne_blocking", "railcap"}:
        damage, railcap_damage = (
            plain @ np.maximum(-gaps[name], 0) for name in ("lne_blocking", "railcap")
        )
        values["delta_minus_ratio_lne_railcap"] = _ratio(damage, railcap_damage)
        values["g_app_ratio_railcap_lne"] = _ratio(np.abs(plain @ gaps["railcap"]), g_app)
    return values


def _runner_up_share(ranks: pd.DataFrame, questions: pd.Index, draws: Array) -> Values:
    """Share of rank 2 among the first steps at which the models disagree."""
    rows = ranks[(ranks["rank"] > 1) & (ranks["step"] <= MAX_RANK_STEP)]
    runner_up, steps = (
        each.groupby("question_id").size().reindex(questions, fill_value=0).to_numpy()
        for each in (rows[rows["rank"] == 2], rows)
    )
    return _ratio(draws @ runner_up, draws @ steps)


def _ratio(numerator: Array, denominator: Array) -> Values:
    """Infinite where only the denominator is 0, NaN where both are."""
    denominator = np.where(np.abs(denominator) < ROUNDING, 0.0, denominator)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients: Values = np.true_divide(numerator, denominator)
    return quotients


def _row(key: str, values: Values, confidence_level: float) -> tuple[Any, ...]:
    published, characters, place = printed(key) or (float("nan"), "", "")
    if key in RATIOS and not np.isnan(values[0]):
        tails = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
        # A ratio can be infinite: take one of the resamples, do not interpolate between two.
        resamples = values[1:][~np.isnan(values[1:])]
        ends = np.quantile(resamples, tails, method="inverted_cdf").tolist()
        cell = values[0], *ends
    else:
        bounds = UNBOUNDED if key in DIFFERENCES else SHARE
        cell = with_interval(values, confidence_level, bounds)
    return key, QUANTITIES[key], place, published, characters, *cell
