"""The corrected metrics: their limit, and where they are better than the definition."""

import numpy as np
import pytest

from zerogap import metrics


def clean_probabilities(rng, n):
    """A quarter never solved, some always, the rest anywhere."""
    u = rng.random(n)
    return np.where(u < 0.25, 0.0, np.where(u < 0.33, 1.0, rng.beta(0.8, 1.1, n)))


def drawn(rng, p, q, m):
    n = len(p)
    return rng.binomial(m, p), np.full(n, m), rng.binomial(m, q), np.full(n, m)


@pytest.mark.parametrize("bins", [1, 7, 50, 60])
@pytest.mark.parametrize("m", [100_000, 2**30])
def test_corrected_value_tends_to_the_definition_with_many_samples(bins, m):
    rng = np.random.default_rng(bins)
    q = clean_probabilities(rng, 150)
    p = np.where(np.arange(150) < 75, 1 - (1 - q) * rng.uniform(0, 0.7, 150), q)
    data = drawn(rng, p, q, m)
    corrected = metrics.sa_ppg_corrected(*data, bins=bins)
    assert corrected == pytest.approx(metrics.sa_ppg(*data, bins=bins), abs=0.004)


@pytest.mark.parametrize("m", [20, 50])
def test_corrected_value_is_nearer_to_the_truth_where_there_is_a_gap(m):
    rng = np.random.default_rng(m)
    errors = []
    for _ in range(4):
        q = clean_probabilities(rng, 1000)
        p = np.where(np.arange(1000) < 500, 1 - (1 - q) * 0.6, q)
        whole = np.full(1000, 10**9)
        truth = metrics.sa_ppg((p * 10**9).astype(int), whole, (q * 10**9).astype(int), whole)
        data = drawn(rng, p, q, m)
        errors.append((metrics.sa_ppg(*data) - truth, metrics.sa_ppg_corrected(*data) - truth))
    definition, corrected = np.mean(errors, axis=0)
    assert abs(corrected) < definition / 2


@pytest.mark.parametrize(
    ("bins", "value"), [(1, 0.4109960773906), (7, 0.4153225672527), (60, 0.4147552963104)]
)
def test_the_value_is_the_recorded_one(bins, value):
    """Start, smoothing and number of steps are choices: docs/metric.md has their results."""
    strategy = [3, 50, 0, 20, 7, 7, 0], [50, 50, 0, 50, 9, 9, 50]
    clean = [10, 50, 5, 0, 7, 7, 49], [50] * 7
    assert metrics.sa_ppg_corrected(*strategy, *clean, bins=bins) == pytest.approx(value, abs=1e-9)
    if bins == 1:
        assert metrics.a_ppg_corrected(*strategy, *clean) == pytest.approx(value, abs=1e-9)


def test_a_single_certain_question_keeps_its_gap():
    assert metrics.sa_ppg_corrected([50], [50], [0], [50]) == pytest.approx(1, abs=0.06)
