"""The metrics against literal implementations in exact fractions; their corrected values."""

import math
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerogap import metrics
from zerogap.errors import InputError
from zerogap.metrics.definitions import METRICS

TOLERANCE = 1e-12


@st.composite
def counts(draw, max_samples=60):
    """A strategy's and the clean model's counts on a handful of questions."""
    n = draw(st.integers(1, 12))
    samples = draw(st.lists(st.integers(0, max_samples), min_size=n, max_size=n))
    clean_samples = draw(st.lists(st.integers(1, max_samples), min_size=n, max_size=n))
    correct = [draw(st.integers(0, m)) for m in samples]
    clean_correct = [draw(st.integers(0, m)) for m in clean_samples]
    return correct, samples, clean_correct, clean_samples


def literal_gaps(correct, samples, clean_correct, clean_samples):
    def readout(c, m):
        return Fraction(c, m) if m else Fraction(0)

    return [
        readout(c, m) - Fraction(cc, cm)
        for c, m, cc, cm in zip(correct, samples, clean_correct, clean_samples, strict=True)
    ]


def literal_stratum(probability: Fraction, bins: int) -> int:
    """The b of the paper's D_b, counted from 0, by walking through the intervals."""
    for b in range(1, bins):
        if Fraction(b - 1, bins) <= probability < Fraction(b, bins):
            return b - 1
    return bins - 1


def literal_sa(values, clean_correct, clean_samples, bins):
    groups: dict[int, list[Fraction]] = {}
    for value, c, m in zip(values, clean_correct, clean_samples, strict=True):
        groups.setdefault(literal_stratum(Fraction(c, m), bins), []).append(value)
    return sum(sum(group) / len(group) for group in groups.values()) / len(groups)


@given(counts(), st.integers(1, 60))
def test_metrics_equal_exact_fractions(data, bins):
    gaps = literal_gaps(*data)
    n = len(gaps)
    plus, minus = [max(g, 0) for g in gaps], [max(-g, 0) for g in gaps]
    sizes = [abs(g) for g in gaps]
    exact = {
        metrics.g_app: abs(sum(gaps) / n),
        metrics.a_ppg: sum(sizes) / n,
        metrics.delta_plus: sum(plus) / n,
        metrics.delta_minus: sum(minus) / n,
        metrics.sa_ppg: literal_sa(sizes, *data[2:], bins),
        metrics.s_delta_plus: literal_sa(plus, *data[2:], bins),
        metrics.s_delta_minus: literal_sa(minus, *data[2:], bins),
    }
    for metric, value in exact.items():
        assert metric(*data, bins=bins) == pytest.approx(float(value), abs=TOLERANCE)


def test_strata_with_fifty_samples_and_fifty_bins_equal_the_counts():
    stratum = metrics.strata(range(51), [50] * 51, bins=50)
    assert stratum.tolist() == [*range(50), 49]


@given(st.integers(1, 300), st.integers(1, 120), st.data())
def test_strata_equal_the_papers_intervals(m, bins, data):
    c = data.draw(st.integers(0, m))
    assert metrics.strata([c], [m], bins)[0] == literal_stratum(Fraction(c, m), bins)


def test_g_ap_is_the_difference_of_two_accuracies():
    assert metrics.g_ap([True, True, False, False], [0, 0, 1, 0]) == pytest.approx(0.25)
    assert metrics.g_ap([1, 0, 0], [0, 0, 1]) == 0.0


def moments_of_g_ap(*counts):
    return [METRICS[name](*counts) for name in ("g_ap_mean", "g_ap_sd")]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3))
def test_g_ap_over_choices_equals_enumeration(pairs):
    """Every choice of one of three responses per question, for both models."""
    correct, clean = zip(*pairs, strict=True)
    n = len(pairs)

    def totals(counts):
        marks = [[1] * c + [0] * (3 - c) for c in counts]
        return [sum(choice) for choice in product(*marks)]

    values = [Fraction(abs(a - b), n) for a in totals(correct) for b in totals(clean)]
    mean = sum(values) / len(values)
    variance = sum((r - mean) ** 2 for r in values) / len(values)
    moments = moments_of_g_ap(correct, [3] * n, clean, [3] * n)
    assert moments == pytest.approx((float(mean), math.sqrt(variance)), abs=1e-9)


def test_g_ap_over_choices_of_many_questions_is_the_difference_of_two_means():
    moments = moments_of_g_ap([45] * 5000, [50] * 5000, [5] * 5000, [50] * 5000)
    assert moments == pytest.approx((0.8, math.sqrt(2 * 0.9 * 0.1 / 5000)), abs=1e-9)


def test_pandas_columns_are_accepted_whatever_their_index():
    table = pd.DataFrame({"c": [1, 2], "m": [2, 2]}, index=[7, 9])
    other = pd.DataFrame({"c": [2, 1], "m": [2, 2]})
    assert metrics.a_ppg(table.c, table.m, other.c, other.m) == pytest.approx(0.5)


def test_large_counts_do_not_overflow():
    m = np.array([2**31 - 1], dtype=np.int32)
    assert metrics.strata(m - 1, m, bins=50).tolist() == [49]
    assert metrics.strata(m - 1, m, bins=2**31 - 1).tolist() == [2**31 - 2]


COUNT = "a count is 0, 1, 2, …"
BINS = "bins must be a positive integer, at most 2147483647"


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("ppg", ([1], [2], [1, 1], [2, 2]), "n_correct has 1 questions, clean_n_correct has 2; "),
        ("sa_ppg", ([1, 3], [2, 2], [1, 1], [2, 2]), "n_correct: question 1 has 3 correct of 2"),
        ("sa_ppg", ([-1], [2], [1], [2]), f"n_correct: question 0 has -1; {COUNT}"),
        ("ppg", ([1, math.nan], [2, 2], [1], [2]), f"n_correct: question 1 has nan; {COUNT}"),
        ("ppg", ([1], [2], [1], [math.inf]), f"clean_n_samples: question 0 has inf; {COUNT}"),
        ("strata", ([0, 2**31], [0, 2**31]), "clean_n_correct: question 1 has more than 21474836"),
        ("ppg", (["1"], [2], [1], [2]), "n_correct: expected whole numbers, got <U1"),
        ("ppg", ([[1]], [[2]], [1], [2]), "one entry per question, got shape (1, 1)"),
        ("ppg", ([], [], [], []), "n_correct: expected one entry per question, got shape (0,)"),
        ("strata", ([0, 0], [2, 0]), "clean_n_samples: question 1 has no samples; the clean model"),
        ("sa_ppg", ([1], [2], [1], [2], 0), f"{BINS} (got 0)"),
        ("strata", ([1], [2], True), f"{BINS} (got True)"),
        ("g_ap", ([2], [1]), "first_correct: question 0 has 2; expected a 0/1 readout"),
        ("g_ap", ([1], [1, 0]), "first_correct has 1 questions, clean_first_correct has 2"),
    ],
)
def test_invalid_counts_are_rejected_with_their_position(call, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        getattr(metrics, call)(*arguments)


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
def test_the_corrected_value_never_changes(bins, value):
    """Start, smoothing and number of steps are choices: docs/metric.md has their results."""
    strategy = [3, 50, 0, 20, 7, 7, 0], [50, 50, 0, 50, 9, 9, 50]
    clean = [10, 50, 5, 0, 7, 7, 49], [50] * 7
    assert metrics.sa_ppg_corrected(*strategy, *clean, bins=bins) == pytest.approx(value, abs=1e-9)


def test_a_single_certain_question_keeps_its_gap():
    assert metrics.sa_ppg_corrected([50], [50], [0], [50]) == pytest.approx(1, abs=0.06)
