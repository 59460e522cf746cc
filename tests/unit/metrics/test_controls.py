"""A benchmark against controls: exact p-values, error rates under exchangeability, and errors."""

from itertools import combinations, product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerogap.errors import InputError
from zerogap.metrics.controls import N_PERMUTATIONS, difference, flagged, memorised_share

counts = st.integers(0, 4).map(lambda count: count / 4)
REPEATED = range(150)  # simulated benchmarks
QUANTILE = NormalDist().inv_cdf(0.95)  # of the controls


def solved(rng, size=50):
    """Solve probabilities of clean questions, from ten responses each."""
    return rng.binomial(10, rng.beta(0.7, 2, size)) / 10


def exact_p(benchmark, controls, paired):
    """The p-value over all permutations instead of some."""
    observed = np.mean(benchmark) - np.mean(controls)
    pooled, size = [*benchmark, *controls], len(benchmark)
    if paired:
        gaps = np.subtract(benchmark, controls)
        values = [np.mean(gaps * signs) for signs in product((-1, 1), repeat=size)]
    else:
        values = [
            np.mean([pooled[k] for k in chosen])
            - np.mean([pooled[k] for k in range(len(pooled)) if k not in chosen])
            for chosen in map(set, combinations(range(len(pooled)), size))
        ]
    return np.mean(np.array(values) >= observed - 1e-9)


@given(st.lists(counts, min_size=5, max_size=5), st.lists(counts, min_size=5, max_size=5))
def test_the_p_value_is_that_of_all_permutations(benchmark, controls):
    for paired in (False, True):
        exact = exact_p(benchmark, controls, paired)
        spread = 5 * np.sqrt(exact * (1 - exact) / N_PERMUTATIONS) + 2 / N_PERMUTATIONS
        assert abs(difference(benchmark, controls, paired=paired).p - exact) <= spread


@given(st.lists(counts, min_size=2, max_size=9), st.lists(counts, min_size=2, max_size=9))
def test_means_and_auc_are_those_of_all_pairs(benchmark, controls):
    found = difference(benchmark, controls, paired=False)
    wins = [(b > c) + (b == c) / 2 for b in benchmark for c in controls]
    assert found.auc == pytest.approx(np.mean(wins))
    value, low, high = found.difference
    assert value == pytest.approx(np.mean(benchmark) - np.mean(controls))
    assert (found.benchmark, found.controls) == pytest.approx(
        (np.mean(benchmark), np.mean(controls))
    )
    assert low <= value <= high


@pytest.mark.parametrize("paired", [False, True])
def test_exchangeable_questions_are_called_inflated_as_often_as_the_level_says(paired):
    rng = np.random.default_rng(1)
    found = [difference(solved(rng), solved(rng), paired=paired) for _ in REPEATED]
    assert np.mean([each.p <= 0.05 for each in found]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)
    covers = [each.difference[1] <= 0 <= each.difference[2] for each in found]
    assert np.mean(covers) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 150)


def test_pairs_that_share_their_difficulty_need_fewer_questions():
    rng = np.random.default_rng(2)
    difficulty = np.linspace(0, 0.8, 20)
    benchmark, controls = (rng.binomial(50, difficulty + rise) / 50 for rise in (0.1, 0))
    assert difference(benchmark, controls, paired=True).p < 0.01
    assert difference(benchmark, controls, paired=False).p > 0.05


def test_the_memorised_share_is_found_and_is_none_among_clean_questions():
    rng = np.random.default_rng(3)
    benchmark, controls = np.r_[np.ones(40), rng.uniform(0, 0.9, 60)], rng.uniform(0, 0.9, 100)
    value, low, high = memorised_share(benchmark, controls, paired=False)
    assert low < 0.4 < high
    assert value == pytest.approx(0.4, abs=0.07)
    assert memorised_share(controls, controls, paired=True) == (0, 0, 0)


def test_the_interval_of_the_memorised_share_covers_that_of_all_questions(monkeypatch):
    monkeypatch.setattr("zerogap.metrics.controls.N_RESAMPLES", 300)
    rng, truth = np.random.default_rng(6), 0.4 * (NormalDist().cdf(1.5 - QUANTILE) - 0.05) / 0.95
    covers = []
    for _ in REPEATED:
        benchmark = rng.normal(size=50) + 1.5 * (rng.random(50) < 0.4)
        _, low, high = memorised_share(benchmark, rng.normal(size=50), paired=False)
        covers.append(low <= truth <= high)
    assert np.mean(covers) >= 0.9


def test_few_of_the_flagged_questions_are_clean():
    rng, wrong, power = np.random.default_rng(4), [], []
    for _ in REPEATED:
        found = flagged(np.r_[np.full(25, 2.0), rng.normal(size=25)], rng.normal(size=50), 0.1)
        wrong.append(found[25:].sum() / max(found.sum(), 1))
        power.append(found[:25].mean())
    assert np.mean(wrong) <= 0.1
    assert np.mean(power) > 0.5
    assert not flagged([0.5] * 50, [0.5] * 50).any()


@pytest.mark.parametrize(
    ("benchmark", "controls", "paired"), [([1], [1, 0], False), ([1, 0], [1, 0, 0], True)]
)
def test_too_few_questions_and_unequal_pairs_are_errors(benchmark, controls, paired):
    for compare in (difference, memorised_share):
        with pytest.raises(InputError, match="at least two questions"):
            compare(benchmark, controls, paired=paired)
