"""The weights against a loop over replicates, and the coverage of the intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap import metrics
from zerogap.errors import InputError


def simulated(rng, n=120, m=50):
    """A clean model, and a contaminated one that is inflated on the first half."""
    clean_p = rng.beta(0.6, 0.8, n)
    p = clean_p.copy()
    p[: n // 2] = 1 - (1 - p[: n // 2]) * rng.uniform(0, 0.6, n // 2)
    return rng.binomial(m, p), np.full(n, m), rng.binomial(m, clean_p), np.full(n, m)


def test_question_weights_keep_the_size_of_each_group():
    groups = np.array([True, False, False, True, False])
    weights = metrics.question_weights(groups, 200, np.random.default_rng(0))
    assert weights.shape == (200, 5)
    assert (weights[:, groups].sum(axis=1) == 2).all()
    assert (weights[:, ~groups].sum(axis=1) == 3).all()
    assert len(np.unique(weights, axis=0)) > 10


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_replicates_equal_reading_the_drawn_questions_one_by_one(seed, bins):
    rng = np.random.default_rng(seed)
    data = simulated(rng, n=15)
    weights = metrics.question_weights(np.arange(15) % 2, 8, rng)
    gap = np.abs(metrics.ppg(*data))
    stratified = metrics.stratified_weights(weights, metrics.strata(*data[2:], bins))
    sa = metrics.weighted_means(stratified, gap)
    a = metrics.weighted_means(metrics.plain_weights(weights), gap)
    for r, drawn in enumerate(weights):
        rows = np.repeat(np.arange(15), drawn)
        again = [column[rows] for column in data]
        assert sa[r] == pytest.approx(metrics.sa_ppg(*again, bins=bins))
        assert a[r] == pytest.approx(metrics.a_ppg(*again))


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_redrawn_counts_move_questions_between_strata(seed):
    rng = np.random.default_rng(seed)
    correct, samples, clean_correct, clean_samples = simulated(rng, n=12, m=9)
    redrawn = metrics.redraw(clean_correct, clean_samples, 6, rng)
    strata = np.array([metrics.strata(row, clean_samples, 10) for row in redrawn])
    weights = metrics.stratified_weights(np.ones((6, 12)), strata)
    gap = np.abs(correct / samples - redrawn / clean_samples)
    found = metrics.weighted_means(weights, gap)
    for r in range(6):
        exact = metrics.sa_ppg(correct, samples, redrawn[r], clean_samples, bins=10)
        assert found[r] == pytest.approx(exact)


def test_redraw_keeps_certain_questions_and_scatters_the_others():
    redrawn = metrics.redraw([0, 50, 25, 0], [50, 50, 50, 0], 500, np.random.default_rng(1))
    assert (redrawn[:, [0, 3]] == 0).all()
    assert (redrawn[:, 1] == 50).all()
    assert redrawn[:, 2].mean() == pytest.approx(25, abs=0.6)
    assert redrawn[:, 2].std() == pytest.approx(np.sqrt(50 * 0.25), rel=0.15)


def test_intervals_cover_the_mean_reading():
    """Of 95 % intervals, about 95 in 100 hold what is read on average."""
    readings, intervals = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        data = simulated(rng)
        readings.append(metrics.sa_ppg(*data))
        weights = metrics.question_weights(np.arange(120) < 60, 300, rng)
        weights = metrics.stratified_weights(weights, metrics.strata(*data[2:]))
        replicates = metrics.weighted_means(weights, np.abs(metrics.ppg(*data)))
        intervals.append(metrics.interval(replicates))
    truth = np.mean(readings)
    covered = [low <= truth <= high for low, high in intervals]
    assert 0.88 <= np.mean(covered) <= 0.995


def test_interval_can_be_centred():
    replicates = np.arange(1001) / 1000
    assert metrics.interval(replicates) == pytest.approx((0.025, 0.975))
    assert metrics.interval(replicates, 0.5, centre=0.0) == pytest.approx((-0.25, 0.25))


def test_seed_decides_the_weights():
    first, second = (
        metrics.question_weights(np.zeros(9), 5, np.random.default_rng(3)) for _ in range(2)
    )
    assert (first == second).all()


def test_bad_input():
    with pytest.raises(InputError, match="replicates"):
        metrics.question_weights([1, 2], 0, np.random.default_rng(0))
    with pytest.raises(InputError, match="groups"):
        metrics.question_weights([], 5, np.random.default_rng(0))
