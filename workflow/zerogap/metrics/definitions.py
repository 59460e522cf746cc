"""The metrics: how far a strategy is from the clean model (paper, section 3).

Each definition serves the point estimate and the bootstrap (see `zerogap.metrics.registry`), and
most have a public function on counts next to it. Those functions take one entry per question (see
`zerogap.metrics.gaps`). Every value is in [0, 1]; for gaps, lower is better.
"""

import numpy as np
from numpy.typing import ArrayLike

from zerogap.metrics import correction, gaps
from zerogap.metrics.comparison import Comparison, SolveCounts, compare
from zerogap.metrics.gaps import Values
from zerogap.metrics.registry import register_metric


@register_metric(
    "g_ap",
    "G-AP",
    in_paper=True,
    differences="references",
    uses_first_response=True,
    summary_column=6,
)
def _g_ap(comparison: Comparison) -> Values:
    return np.abs(comparison.mean(comparison.first_response_gap))


def g_ap(first_correct: ArrayLike, clean_first_correct: ArrayLike) -> float:
    """Gap of aggregate performance: the difference of two accuracies.

    Takes the 0/1 readout of one response per question, as in prior work.

    Raises:
        InputError: A readout is not 0 or 1, or the numbers of questions differ.
    """
    marks = gaps.checked_marks(first_correct, "first_correct")
    clean_marks = gaps.checked_marks(clean_first_correct, "clean_first_correct")
    gaps.check_same_length("first_correct", marks, "clean_first_correct", clean_marks)
    one = np.ones_like(marks)
    strategy, clean = SolveCounts(marks, one, marks), SolveCounts(clean_marks, one, clean_marks)
    return float(_g_ap(Comparison(strategy, clean)))


@register_metric("g_app", "G-APP", in_paper=True, differences="references", summary_column=5)
def _g_app(comparison: Comparison) -> Values:
    return np.abs(comparison.mean(comparison.gap))


def g_app(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Gap of aggregate per-question probabilities: |mean gap|, where opposite gaps cancel.

    Raises:
        InputError: As `sa_ppg`.
    """
    return float(_g_app(compare(n_correct, n_samples, clean_n_correct, clean_n_samples)))


@register_metric("a_ppg", "A-PPG", in_paper=True, differences="references", summary_column=4)
def _a_ppg(comparison: Comparison) -> Values:
    return comparison.mean(np.abs(comparison.gap))


def a_ppg(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Aggregate of per-question probability gaps: mean |gap|.

    Raises:
        InputError: As `sa_ppg`.
    """
    return float(_a_ppg(compare(n_correct, n_samples, clean_n_correct, clean_n_samples)))


@register_metric("delta_plus", "Δ⁺", in_paper=True, differences="references")
def _delta_plus(comparison: Comparison) -> Values:
    return comparison.mean(comparison.under_suppression)


def delta_plus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Under-suppression (residual contamination): mean of the positive parts of the gaps.

    Raises:
        InputError: As `sa_ppg`.
    """
    return float(_delta_plus(compare(n_correct, n_samples, clean_n_correct, clean_n_samples)))


@register_metric("delta_minus", "Δ⁻", in_paper=True, differences="references")
def _delta_minus(comparison: Comparison) -> Values:
    return comparison.mean(comparison.over_suppression)


def delta_minus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Over-suppression (collateral damage): mean of the negative parts, as a positive number.

    Raises:
        InputError: As `sa_ppg`.
    """
    return float(_delta_minus(compare(n_correct, n_samples, clean_n_correct, clean_n_samples)))


@register_metric("sa_ppg", "SA-PPG", in_paper=True, differences="all", summary_column=1)
def _sa_ppg(comparison: Comparison) -> Values:
    return comparison.stratified_mean(np.abs(comparison.gap))


def sa_ppg(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> float:
    """Stratified aggregate of per-question probability gaps (paper, section 3.3).

    Mean |gap| within each stratum of the clean model's solve probability (see
    `zerogap.metrics.strata`), then the mean over the non-empty strata. Zero exactly when every
    question is restored.

    Args:
        n_correct: (questions,), the strategy's correct responses.
        n_samples: (questions,), all of its responses; a question without any is never solved.
        clean_n_correct: (questions,), the clean model's correct responses, in the same order.
        clean_n_samples: (questions,), all of its responses, at least one per question.
        bins: Number of strata B.

    Raises:
        InputError: Entries are not counts, more responses are correct than were sampled, the
            numbers of questions differ, the clean model has no samples for a question, or `bins` is
            not a positive integer.
    """
    return float(_sa_ppg(compare(n_correct, n_samples, clean_n_correct, clean_n_samples, bins)))


@register_metric("s_delta_plus", "S-Δ⁺", in_paper=True, differences="references", summary_column=2)
def _s_delta_plus(comparison: Comparison) -> Values:
    return comparison.stratified_mean(comparison.under_suppression)


def s_delta_plus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> float:
    """Stratified under-suppression; with `s_delta_minus` it adds up to `sa_ppg`.

    Raises:
        InputError: As `sa_ppg`.
    """
    comparison = compare(n_correct, n_samples, clean_n_correct, clean_n_samples, bins)
    return float(_s_delta_plus(comparison))


@register_metric("s_delta_minus", "S-Δ⁻", in_paper=True, differences="references", summary_column=3)
def _s_delta_minus(comparison: Comparison) -> Values:
    return comparison.stratified_mean(comparison.over_suppression)


def s_delta_minus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> float:
    """Stratified over-suppression; with `s_delta_plus` it adds up to `sa_ppg`.

    Raises:
        InputError: As `sa_ppg`.
    """
    comparison = compare(n_correct, n_samples, clean_n_correct, clean_n_samples, bins)
    return float(_s_delta_minus(comparison))


@register_metric("solve_mean", "Solved", of_clean_model=True, summary_column=7)
def _solve_mean(comparison: Comparison) -> Values:
    """Mean solve probability."""
    return comparison.mean(comparison.strategy.probability)


@register_metric("share_empty", "No samples")
def _share_empty(comparison: Comparison) -> Values:
    """Fraction of questions without samples, after a filter dropped them all."""
    return comparison.mean(comparison.strategy.n_samples == 0)


@register_metric("g_ap_mean", "G-AP, mean", has_interval=False)
def _g_ap_mean(comparison: Comparison) -> Values:
    """Mean of G-AP over the choice of the one response it uses."""
    mass = comparison.accuracy_difference_distribution
    return np.asarray(mass @ _possible_g_ap(mass))


@register_metric("g_ap_sd", "G-AP, s.d.", has_interval=False)
def _g_ap_sd(comparison: Comparison) -> Values:
    """Standard deviation of G-AP over the choice of the one response it uses."""
    mass = comparison.accuracy_difference_distribution
    deviations = _possible_g_ap(mass) - _g_ap_mean(comparison)
    return np.sqrt(np.maximum(0.0, mass @ deviations**2))


def _possible_g_ap(mass: Values) -> Values:
    n_questions = len(mass) // 2
    return np.abs(np.arange(len(mass)) - n_questions) / n_questions


def g_ap_over_choices(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> tuple[float, float]:
    """Mean and standard deviation of G-AP over the choice of the one response it uses.

    Each question's response is drawn at random from its samples, independently for both models. The
    values are exact, not simulated.

    Raises:
        InputError: As `sa_ppg`.
    """
    comparison = compare(n_correct, n_samples, clean_n_correct, clean_n_samples)
    return float(_g_ap_mean(comparison)), float(_g_ap_sd(comparison))


@register_metric("sa_ppg_corrected", "SA-PPG, corrected", has_interval=False)
def _sa_ppg_corrected(comparison: Comparison) -> Values:
    """SA-PPG less what finitely many samples add to it."""
    return np.asarray(correction.corrected(comparison))
