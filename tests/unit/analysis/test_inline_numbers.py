import numpy as np
import pandas as pd
import pytest

from helpers.synthetic_run import rank_table, solve_tables
from zerogap import metrics
from zerogap.analysis.inline_numbers import QUANTITIES, RATIOS, inline_numbers


def run(clean, tables, ranks=None, **options):
    strategies = {name: tables[name] for name in ("lne_blocking", "railcap") if name in tables}
    options = {"n_resamples": 80, "bins": 20} | options
    return inline_numbers(clean, tables["clean_batch2"], strategies, ranks, **options).set_index(
        "key"
    )


@pytest.fixture(scope="module")
def tables():
    return solve_tables(n=60, m=20)


def test_values_equal_direct_computations(tables):
    clean, strategies = tables
    ranks = rank_table(n=60)
    table = run(clean, strategies, ranks)
    assert table.index.tolist() == list(QUANTITIES)
    assert (table["ci_low"] <= table["value"]).all()
    assert (table["value"] <= table["ci_high"]).all()
    table = table["value"]
    batch2, lne, railcap = (strategies[k] for k in ("clean_batch2", "lne_blocking", "railcap"))

    def counts(solve):
        return solve.n_correct, solve.n_samples, clean.n_correct, clean.n_samples

    p, q = clean.n_correct / clean.n_samples, batch2.n_correct / batch2.n_samples
    steps = ranks[(ranks["rank"] > 1) & ranks["leaked"]]["rank"]
    expected = {
        "readout_gap_01": (clean.first_correct ^ batch2.first_correct).mean(),
        "readout_gap_01_expected": (p + q - 2 * p * q).mean(),
        "readout_gap_probability": metrics.a_ppg(*counts(batch2)),
        "sa_ppg_noise_floor": metrics.sa_ppg(*counts(batch2), bins=20),
        "share_never_solved": (clean.n_correct == 0).mean(),
        "share_runner_up": (steps == 2).mean(),
        "delta_minus_ratio_lne_railcap": metrics.delta_minus(*counts(lne))
        / metrics.delta_minus(*counts(railcap)),
        "g_app_ratio_railcap_lne": metrics.g_app(*counts(railcap)) / metrics.g_app(*counts(lne)),
        "verdict_factor_lne": metrics.sa_ppg(*counts(lne), bins=20) / metrics.g_app(*counts(lne)),
    }
    for key, value in expected.items():
        assert table[key] == pytest.approx(value), key


def test_intervals_are_symmetric_but_for_ratios_and_stand_next_to_the_published_values(tables):
    table = run(*tables)
    middle = (table["ci_low"] + table["ci_high"]) / 2
    symmetric = table.index[np.isclose(middle, table["value"])]
    assert list(symmetric) == [key for key in table.index if key not in RATIOS]
    assert table.loc["readout_gap_01", ["published", "place"]].tolist() == [0.19, "Section 5.2.2"]
    assert np.isnan(table.loc["sa_ppg_noise_floor", "published"])


def test_intervals_of_shares_end_at_0_and_1(tables):
    """Nine of ten disagreements with the clean token at rank 2, each in a question of its own."""
    ranks = rank_table(n=60).assign(rank=1)
    disagreeing = ranks[ranks.leaked].drop_duplicates("question_id").index[:10]
    ranks.loc[disagreeing, "rank"] = [2] * 9 + [3]
    row = run(*tables, ranks).loc["share_runner_up"]
    assert row["value"] == 0.9
    assert row["ci_low"] < 0.8  # the symmetric interval would end above 1
    assert row["ci_high"] == 1


def test_the_runner_up_counts_in_the_first_ten_steps_and_is_nan_without_disagreements(tables):
    ranks = rank_table(n=60)
    late = pd.concat([ranks, ranks.assign(step=11, rank=2)])
    first, with_late = (
        run(*tables, each).loc["share_runner_up", "value"] for each in (ranks, late)
    )
    assert first == with_late
    never = run(*tables, ranks.assign(rank=1)).loc["share_runner_up", ["value", "ci_low"]]
    assert never.isna().all()


def test_quantities_without_their_tables_are_left_out(tables):
    clean, strategies = tables
    table = run(clean, {"clean_batch2": strategies["clean_batch2"]})
    assert "share_runner_up" not in table.index
    assert "verdict_factor_lne" not in table.index


def test_ratio_is_infinite_or_nan_where_its_denominator_is_zero(tables):
    clean, strategies = tables
    table = run(clean, strategies | {"railcap": clean, "lne_blocking": clean})
    assert np.isnan(table.loc["verdict_factor_lne", "value"])
    worse = clean.assign(n_correct=0)
    table = run(clean, strategies | {"railcap": clean, "lne_blocking": worse})
    assert table.loc["delta_minus_ratio_lne_railcap", "value"] == np.inf
    assert table.loc["delta_minus_ratio_lne_railcap", "ci_low"] == np.inf
