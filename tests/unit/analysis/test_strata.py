import numpy as np
import pandas as pd
import pytest

from zerogap.analysis.strata import Ranges, values_by_bins
from zerogap.metrics import sa_ppg


def solve_table(n_correct, n_samples=50):
    ids = [f"q{k}" for k in range(len(n_correct))]
    return pd.DataFrame({"question_id": ids, "n_correct": n_correct, "n_samples": n_samples})


@pytest.mark.parametrize("bins", [1, 6, 10, 25, 50])
def test_every_range_is_centred_on_its_strata(bins):
    ranges = Ranges(solve_table([0, 20, 50]), bins)
    middles = (np.arange(bins) + 0.5) / bins
    group = np.arange(bins) * ranges.n_groups // bins
    assert ranges.n_groups == min(bins, 10)
    expected = [middles[group == number].mean() for number in range(ranges.n_groups)]
    assert ranges.centres == pytest.approx(expected)
    assert ranges.n_questions.sum() == 3


@pytest.mark.parametrize("bins", [6, 25, 50])
def test_the_mean_over_the_ranges_weighted_by_their_strata_is_sa_ppg(bins):
    rng = np.random.default_rng(0)
    clean, strategy = (solve_table(rng.integers(51, size=40)) for _ in range(2))
    ranges = Ranges(clean, bins)
    means, value = ranges.mean_gaps(strategy)
    group = np.unique(ranges.stratum) * ranges.n_groups // bins
    weights = np.bincount(group, minlength=ranges.n_groups)
    counts = [table[column] for table in (strategy, clean) for column in ("n_correct", "n_samples")]
    assert value == pytest.approx(sa_ppg(*counts, bins=bins))
    assert np.nansum(weights * means) / weights.sum() == pytest.approx(value)


def test_sa_ppg_has_a_value_for_each_number_of_strata_and_these_are_counted():
    clean, halved = solve_table([0, 0, 4, 25, 26]), solve_table([0, 0, 2, 12, 13])
    table = values_by_bins(clean, {"identity": clean, "halved": halved[::-1]})
    identity, other = table.to_dict("records")
    assert identity["sa_ppg_50"] == identity["a_ppg"] == 0
    # With B = 5, 0 and 4 of 50 share a stratum, and 25 and 26 another one.
    assert (other["filled_50"], other["single_50"]) == (4, 3)
    assert (other["filled_5"], other["single_5"]) == (2, 0)
    assert other["sa_ppg_50"] == pytest.approx((0 + 2 + 13 + 13) / 50 / 4)
    assert other["sa_ppg_5"] == pytest.approx((2 / 3 + 13) / 50 / 2)
    assert other["a_ppg"] == pytest.approx((2 + 13 + 13) / 50 / 5)
