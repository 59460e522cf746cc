"""The weights against a loop over resamples, and the coverage of the intervals."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap import metrics
from zerogap.errors import InputError
from zerogap.metrics.bootstrap import counts_by_cell


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
    at_once = np.random.default_rng(0).multinomial(3, [1 / 3] * 3, size=200)
    assert (weights[:, ~groups] == at_once).all()


def drawn_by_a_loop(groups, clusters, n_resamples, rng):
    """Literally: clusters with questions of the same groups are drawn among themselves."""
    kinds = {}
    for cluster in dict.fromkeys(clusters):
        kind = tuple(sorted({g for g, c in zip(groups, clusters, strict=True) if c == cluster}))
        kinds.setdefault(kind, []).append(cluster)
    rows = [[] for _ in range(n_resamples)]
    # Clusters of the first group only come first, those of several groups where the first one puts
    # them.
    for kind in sorted(kinds, key=lambda kind: [g not in kind for g in sorted(set(groups))]):
        for drawn in rows:
            times = rng.multinomial(len(kinds[kind]), [1 / len(kinds[kind])] * len(kinds[kind]))
            for cluster, repeats in zip(kinds[kind], times, strict=True):
                members = [k for k, c in enumerate(clusters) if c == cluster]
                drawn += members * repeats
    return rows


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_clusters_are_drawn_whole_among_those_of_the_same_groups(seed):
    rng = np.random.default_rng(seed)
    groups, clusters = rng.integers(2, size=15), rng.choice(list("vwxyz"), 15)
    weights = metrics.question_weights(groups, 9, np.random.default_rng(seed), clusters)
    rows = drawn_by_a_loop(groups, clusters, 9, np.random.default_rng(seed))
    assert weights.tolist() == [np.bincount(drawn, minlength=15).tolist() for drawn in rows]


def test_spread_of_stratified_means_is_that_of_new_clusters():
    """Clusters of two within a stratum, and a cluster alone in two strata."""
    values = np.array([0.1, 0.3, 0.5, 0.9, 0.2, 0.8, 0.6])
    strata, clusters = np.array([0, 0, 0, 0, 3, 3, 7]), np.array([5, 5, 6, 6, 9, 9, 9])
    mean = (0.45 + 0.5 + 0.6) / 3
    within = ((0.2 - 0.45) ** 2 + (0.7 - 0.45) ** 2) / 2
    alone = (0.5 - mean + 0.6 - mean) ** 2  # both deviations are of one cluster
    drawn = np.random.default_rng(0).poisson(1, (100_000, 10))[:, clusters]
    means = metrics.stratified_means(drawn, strata, values, clusters=clusters)
    # Satterthwaite: 1/2 with 1 degree of freedom, and two single ones with 1; at most 3 clusters.
    degrees = min((1 / 2 + 2) ** 2 / (1 / 4 + 4), 2)
    spread = (1 + 1.21 / degrees) * np.sqrt(within + alone) / 3
    assert means.std() == pytest.approx(spread, rel=0.01)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_stratified_means_are_linear_and_the_metric_where_each_question_is_drawn_once(seed, bins):
    rng = np.random.default_rng(seed)
    data = simulated(rng, n=15)
    strata, gap = metrics.strata(*data[2:], bins), np.abs(metrics.ppg(*data))
    draws = metrics.question_weights(np.zeros(15), 8, rng)
    draws[0] = 1
    other = rng.random(15)
    means, of_other, of_both = metrics.stratified_means(draws, strata, [gap, other, gap - other])
    assert means[0] == pytest.approx(metrics.sa_ppg(*data, bins=bins))
    assert of_both == pytest.approx(means - of_other)
    assert metrics.stratified_means(draws, strata, np.full(15, 0.3)) == pytest.approx(0.3)


@pytest.mark.parametrize(("level", "widening"), [(0.95, 1.21), (0.9, 0.926), (0.99, 1.909)])
def test_spread_of_stratified_means_is_that_of_new_questions(level, widening):
    """Within strata the unbiased variance, for single questions the distance from the mean.

    It is widened as Student's t at the level of the interval: by (z² + 1) / 4 over the degrees.
    """
    values = np.array([0.1, 0.5, 0.3, 0.2, 0.6, 0.9, 0.4, 0.7, 0.2, 0.5])
    strata = np.array([0, 0, 0, 1, 1, 4, 5, 7, 8, 8])
    pairs = [[0.1, 0.5, 0.3], [0.2, 0.6], [0.2, 0.5]]
    mean = (np.sum([np.mean(p) for p in pairs]) + 0.9 + 0.4 + 0.7) / 6
    within = sum(np.var(p, ddof=1) / len(p) for p in pairs)
    between = sum((single - mean) ** 2 for single in (0.9, 0.4, 0.7))
    draws = np.random.default_rng(0).poisson(1, (100_000, 10))
    means = metrics.stratified_means(draws, strata, values, level)
    # Satterthwaite: 1/3 with 2 degrees of freedom, twice 1/2 with 1, and three single ones with 2.
    degrees = (1 / 3 + 1 / 2 + 1 / 2 + 3) ** 2 / (1 / 9 / 2 + 1 / 4 + 1 / 4 + 9 / 2)
    spread = (1 + widening / degrees) * np.sqrt(within + between) / 6
    assert means.std() == pytest.approx(spread, rel=0.01)
    assert means.mean() == pytest.approx(mean, abs=0.001)


def test_equal_strategies_are_told_apart_in_one_of_twenty_pairs():
    """Thirty templates of eight questions; without clusters it would be one in three."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(30), 8)
    units = {"clusters": clusters, "questions": np.arange(240)}
    excluded = {name: [] for name in units}  # whether the interval of a difference is without 0
    for repeat in range(400):
        if repeat % 25 == 0:
            draws = {
                name: metrics.question_weights(clusters < 15, 300, rng, unit)
                for name, unit in units.items()
            }
        q = np.clip(rng.beta(0.5, 1.2, 30)[clusters] + rng.normal(0, 0.1, 240), 0, 1)
        clean = rng.binomial(20, q)
        counts = rng.binomial(20, q + (1 - q) * rng.beta(0.8, 1.2, (6, 30))[:, clusters])
        strata = metrics.strata(clean, np.full(240, 20), 10)
        gaps = np.abs(counts - clean) / 20
        differences = gaps[::2] - gaps[1::2]
        values = differences @ metrics.stratum_weights(strata)
        for name, unit in units.items():
            means = metrics.stratified_means(draws[name], strata, differences, clusters=unit)
            ends = [metrics.interval(r, value) for r, value in zip(means, values, strict=True)]
            excluded[name] += [low > 0 or high < 0 for low, high in ends]
    assert 0.03 < np.mean(excluded["clusters"]) < 0.08
    assert np.mean(excluded["questions"]) > 0.25


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_redrawn_counts_move_questions_between_strata(seed):
    rng = np.random.default_rng(seed)
    correct, samples, clean_correct, clean_samples = simulated(rng, n=12, m=9)
    redrawn = metrics.redraw(clean_correct, clean_samples, 6, rng)
    strata = np.array([metrics.strata(row, clean_samples, 10) for row in redrawn])
    weights = metrics.stratum_weights(strata)
    gap = np.abs(correct / samples - redrawn / clean_samples)
    means = metrics.weighted_means(weights, gap)
    for r in range(6):
        exact = metrics.sa_ppg(correct, samples, redrawn[r], clean_samples, bins=10)
        assert means[r] == pytest.approx(exact)


@given(st.integers(1, 300), st.data())
def test_redrawn_counts_are_binomial(samples, data):
    correct = data.draw(st.integers(0, samples))
    counts = counts_by_cell(correct, samples)
    p = correct / samples
    exact = [comb(samples, k) * p**k * (1 - p) ** (samples - k) for k in range(samples + 1)]
    frequencies = np.bincount(counts, minlength=samples + 1) / 2**16
    assert frequencies == pytest.approx(exact, abs=2**-16)


@pytest.mark.parametrize(
    ("resamples", "value", "options", "ends"),
    [
        (np.arange(1001) / 1000, 0.5, {}, (0.025, 0.975)),
        (np.arange(1001) / 1000, 0.0, {"confidence_level": 0.5}, (-0.25, 0.25)),
        ([0.0] * 90 + [10.0] * 10, 1.0, {}, (-8.0, 10.0)),
        (np.arange(1001) / 1000, 0.1, {"bounds": (0, 1)}, (0, 0.575)),
        (np.arange(1001) / 1000, 0.9, {"bounds": (0, 1)}, (0.425, 1)),
    ],
)
def test_interval_is_symmetric_about_the_value_and_ends_at_the_bounds(
    resamples, value, options, ends
):
    assert metrics.interval(resamples, value, **options) == pytest.approx(ends)


def test_simultaneous_interval_of_one_metric_is_the_usual_one_and_wider_for_more():
    rng = np.random.default_rng(0)
    resamples = rng.normal([[1.0], [2.0], [3.0]], [[1.0], [0.1], [0.0]], (3, 20_000))
    low, high = metrics.simultaneous(resamples, [1.0, 2.0, 3.0])
    one_low, one_high = metrics.simultaneous(resamples[:1], [1.0])
    assert (one_low[0], one_high[0]) == pytest.approx((1 - 1.96, 1 + 1.96), abs=0.05)
    assert high[0] - 1 == pytest.approx(2.236, abs=0.05)  # two independent ones at 95 %
    assert (high - low)[1] == pytest.approx((high - low)[0] / 10, rel=0.05)
    assert low[2] == high[2] == 3


def test_no_resamples_and_no_groups_are_rejected():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"^n_resamples must be a positive integer"):
        metrics.question_weights([1, 2], 0, rng)
    with pytest.raises(InputError, match=r"^n_resamples must be a positive integer"):
        metrics.redraw([1, 2], [3, 3], -1, rng)
    for groups in ([], [[1, 2]]):
        with pytest.raises(InputError, match=r"^groups: expected one label per question"):
            metrics.question_weights(groups, 5, rng)
    assert metrics.question_weights([1, 2], 1, rng).shape == (1, 2)
    assert metrics.redraw([1, 0], [1, 0], 1, rng).tolist() == [[1, 0]]
