"""A model's questions against controls that cannot have leaked: how much better, and by chance?

Everything rests on one assumption: to a model that has seen neither, a question and a control are
exchangeable. Then a difference of means has a permutation p-value, and a question whose value
exceeds those of most controls a conformal one (Vovk et al., Algorithmic Learning in a Random World,
2005). A control may belong to one question, as the same question with other numbers: *pairs*.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zerogap.errors import InputError
from zerogap.metrics.bootstrap import (
    SHARE,
    UNBOUNDED,
    observed_and_resampled,
    plain_weights,
    with_interval,
)
from zerogap.metrics.gaps import Values

N_PERMUTATIONS = 9_999
N_RESAMPLES = 2_000
CONFIDENCE_LEVEL = 0.95
TOLERANCE = 1e-9  # of sums of the same numbers in another order
EXTREME = 0.95  # quantile of the controls above which a question counts as memorised

Interval = tuple[float, float, float]  # the value, and the ends of its interval


class Difference(NamedTuple):
    """What sets a benchmark apart from its controls.

    `benchmark` and `controls` are means and `difference` is the first minus the second, with a 95 %
    bootstrap interval over questions. `auc` is the probability that a question of the benchmark has
    a larger value than a control, ties counting half, and `p` the one-sided p-value of the
    difference.
    """

    benchmark: float
    controls: float
    difference: Interval
    auc: float
    p: float


def difference(
    benchmark: ArrayLike, controls: ArrayLike, *, paired: bool, seed: int = 0
) -> Difference:
    """Compare one value per question with one per control.

    The p-value is that of a permutation test: of the signs of the pairs' differences, or of the
    labels of all questions if there are no pairs.

    Args:
        benchmark: values (N,), larger where memorisation is more likely.
        controls: values (M,); of pairs, in the order of the benchmark's.
        paired: whether each control belongs to one question.
        seed: of permutations and resamples.

    Raises:
        InputError: there are fewer than two values on one side, or pairs of different numbers.
    """
    first, second = _values(benchmark, controls, paired)
    rng = np.random.default_rng(seed)
    weights = map(plain_weights, _draws(len(first), len(second), paired, rng))
    means = [weight @ values for weight, values in zip(weights, (first, second), strict=True)]
    observed = float(first.mean() - second.mean())
    if paired:
        signs = rng.choice([-1.0, 1.0], (N_PERMUTATIONS, len(first)))
        permuted = signs @ (first - second) / len(first)
    else:
        rows = np.tile(np.concatenate([first, second]), (N_PERMUTATIONS, 1))
        rows = rng.permuted(rows, axis=1)
        permuted = rows[:, : len(first)].mean(1) - rows[:, len(first) :].mean(1)
    at_least = (permuted >= observed - TOLERANCE).sum()
    return Difference(
        benchmark=float(first.mean()),
        controls=float(second.mean()),
        difference=with_interval(means[0] - means[1], CONFIDENCE_LEVEL, UNBOUNDED),
        auc=auc(first, second),
        p=float((1 + at_least) / (1 + N_PERMUTATIONS)),
    )


def auc(first: Values, second: Values) -> float:
    """How often a value of the first (N,) exceeds one of the second (M,), ties counting half."""
    return float((np.sign(first[:, None] - second).mean() + 1) / 2)


def memorised_share(benchmark: ArrayLike, controls: ArrayLike, *, paired: bool) -> Interval:
    """The share of questions that are memorised, at least, with a 95 % bootstrap interval.

    It is (F − C) / (1 − C), where F and C are the shares of questions and of controls above the 95
    % quantile of the controls; memorised questions below it are missed. Resamples have their own
    quantile.

    Args and errors are those of :func:`difference`.
    """
    first, second = _values(benchmark, controls, paired)
    draws = _draws(len(first), len(second), paired, np.random.default_rng(0))
    shares = [
        _exceeding(np.repeat(first, times), np.repeat(second, times_too))
        for times, times_too in zip(*draws, strict=True)
    ]
    return with_interval(shares, CONFIDENCE_LEVEL, SHARE)


def _exceeding(first: Values, second: Values) -> float:
    bound = np.quantile(second, EXTREME)
    usual = float((second > bound).mean())
    return max(float((first > bound).mean()) - usual, 0.0) / (1 - usual)


def flagged(
    benchmark: ArrayLike, controls: ArrayLike, false_discovery_rate: float = 0.1
) -> NDArray[np.bool_]:
    """Which questions exceed the controls: at most this share of them by chance, in expectation.

    A question's conformal p-value is its rank among the M controls, (1 + controls with at least its
    value) / (1 + M). Benjamini and Hochberg's procedure controls the false discovery rate (for
    conformal p-values: Bates et al., Annals of Statistics 2023).
    """
    first, second = (np.asarray(values, dtype=float) for values in (benchmark, controls))
    p = (1 + (second >= first[:, None]).sum(1)) / (1 + len(second))
    ordered = np.sort(p)
    is_below = ordered <= false_discovery_rate * np.arange(1, len(p) + 1) / len(p)
    return np.asarray(p <= ordered[is_below].max(initial=0.0))


def _values(benchmark: ArrayLike, controls: ArrayLike, paired: bool) -> tuple[Values, Values]:
    first, second = (np.asarray(values, dtype=float) for values in (benchmark, controls))
    if min(len(first), len(second)) < 2 or (paired and len(first) != len(second)):
        raise InputError(
            "controls: expected at least two questions and two controls, and as many controls as "
            f"questions if they are pairs (got {len(first)} and {len(second)})"
        )
    return first, second


def _draws(
    num_questions: int, num_controls: int, paired: bool, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """How often each question and each control is drawn: once, then as in the resamples."""
    if paired:
        draws = observed_and_resampled(np.zeros(num_questions), N_RESAMPLES, rng)
        return draws, draws
    groups = np.repeat([0, 1], [num_questions, num_controls])
    draws = observed_and_resampled(groups, N_RESAMPLES, rng)
    return draws[:, :num_questions], draws[:, num_questions:]
