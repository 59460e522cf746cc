"""The numbers of the paper's text, measured: a table with the published value beside each."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.errors import InputError
from zerogap.metrics import bootstrap, gaps
from zerogap.published import printed

# key in published.csv (or ours alone) → what it is, in a reader's words
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
}


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
        clean, clean_batch2: `solve` tables of two sampling batches of the clean model.
        strategies: name → `solve` table; LNE-blocking and RailCap give the ratios.
        ranks: `ranks` table of the contaminated model on the clean model's greedy prefix.

    Returns:
        Columns key, quantity, place, published (NaN where the paper has none), printed, value,
        ci_low, ci_high. The intervals are over questions, leaked and unleaked apart; a ratio
        whose denominator can vanish may reach infinity.

    Raises:
        InputError: two tables that do not hold the same questions.
    """
    clean = clean.set_index("question_id")
    leaked = clean["leaked"].to_numpy(dtype=bool)
    rng = np.random.default_rng(seed)
    drawn = bootstrap.question_weights(leaked, n_resamples, rng)
    # The reading itself is the replicate that draws every question once, in the first row.
    drawn = np.vstack([np.ones((1, len(clean)), dtype=np.int64), drawn])
    plain = bootstrap.plain_weights(drawn)
    stratum = gaps.strata(clean["n_correct"], clean["n_samples"], bins)
    stratified = bootstrap.stratified_weights(drawn, stratum)

    solve = {
        name: _aligned(clean, table, name)
        for name, table in {"clean_batch2": clean_batch2, **strategies}.items()
    }
    p = gaps.solve_probability(clean["n_correct"], clean["n_samples"])
    gap = {
        name: gaps.solve_probability(table["n_correct"], table["n_samples"]) - p
        for name, table in solve.items()
    }
    q = gap["clean_batch2"] + p
    first = clean["first_correct"].to_numpy() != solve["clean_batch2"]["first_correct"].to_numpy()
    found = {
        "readout_gap_01": plain @ first,
        "readout_gap_01_expected": plain @ (p * (1 - q) + q * (1 - p)),
        "readout_gap_probability": plain @ np.abs(q - p),
        "sa_ppg_noise_floor": stratified @ np.abs(q - p),
        "share_never_solved": plain @ (p == 0),
    }
    if ranks is not None:
        found["share_runner_up"] = _runner_up(ranks, clean.index, drawn, of_leaked=True)
        found["share_runner_up_unleaked"] = _runner_up(ranks, clean.index, drawn, of_leaked=False)
    if "lne_blocking" in gap:
        lne_g_app = np.abs(plain @ gap["lne_blocking"])
        sa_ppg = stratified @ np.abs(gap["lne_blocking"])
        found["verdict_factor_lne"] = _ratio(sa_ppg, lne_g_app)
        if "railcap" in gap:
            lne, railcap = (
                plain @ np.maximum(-gap[name], 0) for name in ("lne_blocking", "railcap")
            )
            found["delta_minus_ratio_lne_railcap"] = _ratio(lne, railcap)
            railcap_g_app = np.abs(plain @ gap["railcap"])
            found["g_app_ratio_railcap_lne"] = _ratio(railcap_g_app, lne_g_app)
    return pd.DataFrame(
        [_row(key, found[key], confidence_level) for key in QUANTITIES if key in found],
        columns=[
            *("key", "quantity", "place", "published", "printed"),
            *("value", "ci_low", "ci_high"),
        ],
    )


def _row(key: str, found: NDArray[np.float64], level: float) -> tuple:
    published, characters, place = printed(key) or (float("nan"), "", "")
    value, replicates = found[0], found[1:]
    replicates = replicates[~np.isnan(replicates)]  # a replicate without a single disagreement
    if np.isnan(value):
        low, high = value, value
    else:
        tails = [(1 - level) / 2, (1 + level) / 2]
        # A replicate can be infinite (a ratio): take one of them, never a point between two.
        low, high = np.quantile(replicates, tails, method="inverted_cdf")
    return key, QUANTITIES[key], place, published, characters, value, float(low), float(high)


def _runner_up(
    ranks: pd.DataFrame, questions: pd.Index, drawn: NDArray[np.int64], *, of_leaked: bool
) -> NDArray[np.float64]:
    """Share of rank 2 among the first ten steps at which the models disagree, in each replicate."""
    rows = ranks[(ranks["leaked"] == of_leaked) & (ranks["rank"] > 1) & (ranks["step"] <= 10)]
    steps = rows.groupby("question_id").size().reindex(questions, fill_value=0).to_numpy()
    second = rows[rows["rank"] == 2].groupby("question_id").size()
    return _ratio(drawn @ second.reindex(questions, fill_value=0).to_numpy(), drawn @ steps)


def _ratio(above: NDArray, below: NDArray) -> NDArray[np.float64]:
    """Infinite where only the denominator is 0, NaN where both are."""
    # A gap below 1e-12 is the rounding of sums that cancel: zero.
    below = np.where(np.abs(below) < 1e-12, 0.0, below)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.true_divide(above, below)


def _aligned(clean: pd.DataFrame, table: pd.DataFrame, name: str) -> pd.DataFrame:
    table = table.set_index("question_id")
    if not table.index.is_unique or (odd := clean.index.symmetric_difference(table.index)).size:
        which = odd[0] if table.index.is_unique else table.index[table.index.duplicated()][0]
        raise InputError(f"{name}: question {which!r} is not exactly once in it and in clean")
    return table.loc[clean.index]
