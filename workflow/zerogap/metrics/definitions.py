"""The metrics: how far a strategy is from the clean model (paper, section 3).

A metric is one function of a :class:`~zerogap.metrics.comparison.Comparison`, which serves the
point estimate and the bootstrap resamples alike. The decorator makes a :class:`Metric` of it, which
is called with counts:

    a_ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)

To add one, decorate its definition with `register_metric`; the `metrics` table, `zerogap score` and
the labels of the reports then follow. Every value is in [0, 1]; for gaps, lower is better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from zerogap.metrics import correction, gaps
from zerogap.metrics.comparison import Comparison, compare
from zerogap.metrics.gaps import Values

Definition = Callable[[Comparison], Values]


@dataclass(frozen=True)
class Metric:
    """A metric and how it is reported.

    Attributes:
        name: Its value in the column ``metric``.
        label: What tables and figures print.
        definition: Its values, shape () for a point estimate and (strategies, resamples) for
            resamples. Values are between 0 and 1.
        in_paper: Whether the paper reports it.
        differences: The strategies from which paired differences are taken: none, the
            `zerogap.metrics.evaluate.REFERENCES`, or all (then also with simultaneous intervals).
            They need an interval.
        has_interval: Whether it is computed for the resamples too.
        of_clean_model: Whether it is also reported for the clean model itself.
        uses_first_response: Whether it needs ``first_correct``.
        summary_column: Its position in the table of `zerogap score`; 0 if it is not shown.

    Raises:
        ValueError: It has differences and no interval.
    """

    name: str
    label: str
    definition: Definition
    in_paper: bool = False
    differences: Literal["none", "references", "all"] = "none"
    has_interval: bool = True
    of_clean_model: bool = False
    uses_first_response: bool = False
    summary_column: int = 0

    def __post_init__(self) -> None:
        if self.differences != "none" and not self.has_interval:
            raise ValueError(f"metric {self.name}: differences need has_interval=True")

    def __call__(
        self,
        n_correct: ArrayLike,
        n_samples: ArrayLike,
        clean_n_correct: ArrayLike,
        clean_n_samples: ArrayLike,
        bins: int = 50,
    ) -> float:
        """The metric of a strategy, from counts.

        Args:
            n_correct: (questions,), the strategy's correct responses.
            n_samples: (questions,), all of its responses; a question without any is never solved.
            clean_n_correct: (questions,), the clean model's correct responses, in the same order.
            clean_n_samples: (questions,), all of its responses, at least one per question.
            bins: Number of strata B, for the metrics that are means over strata.

        Raises:
            InputError: Entries are not counts, more responses are correct than were sampled, the
                numbers of questions differ, the clean model has no samples for a question, or
                `bins` is not a positive integer.
        """
        comparison = compare(n_correct, n_samples, clean_n_correct, clean_n_samples, bins)
        return float(self.definition(comparison))


# By name, in the order of the rows of a `metrics` table.
METRICS: dict[str, Metric] = {}


def register_metric(name: str, label: str, **options: Any) -> Callable[[Definition], Metric]:
    """Make a `Metric` of the decorated definition; the arguments are its attributes."""

    def register(definition: Definition) -> Metric:
        METRICS[name] = Metric(name, label, definition, **options)
        return METRICS[name]

    return register


_of_paper = partial(register_metric, in_paper=True, differences="references")


@_of_paper("g_ap", "G-AP", uses_first_response=True, summary_column=6)
def _g_ap(comparison: Comparison) -> Values:
    """Gap of aggregate performance: the difference of two accuracies of one response each."""
    return np.abs(comparison.mean(comparison.first_response_gap))


def g_ap(first_correct: ArrayLike, clean_first_correct: ArrayLike) -> float:
    """Gap of aggregate performance: the difference of two accuracies of one response each.

    Raises:
        InputError: A readout is not 0 or 1, or the numbers of questions differ.
    """
    marks = gaps.checked_marks(first_correct, "first_correct")
    clean_marks = gaps.checked_marks(clean_first_correct, "clean_first_correct")
    gaps.check_same_length("first_correct", marks, "clean_first_correct", clean_marks)
    return float(abs(np.mean(marks - clean_marks)))


@_of_paper("g_app", "G-APP", summary_column=5)
def g_app(comparison: Comparison) -> Values:
    """Gap of aggregate per-question probabilities: |mean gap|, where opposite gaps cancel."""
    return np.abs(comparison.mean(comparison.gap))


@_of_paper("a_ppg", "A-PPG", summary_column=4)
def a_ppg(comparison: Comparison) -> Values:
    """Aggregate of per-question probability gaps: mean |gap|."""
    return comparison.mean(np.abs(comparison.gap))


@_of_paper("delta_plus", "Δ⁺")
def delta_plus(comparison: Comparison) -> Values:
    """Under-suppression (residual contamination): mean of the positive parts of the gaps."""
    return comparison.mean(comparison.under_suppression)


@_of_paper("delta_minus", "Δ⁻")
def delta_minus(comparison: Comparison) -> Values:
    """Over-suppression (collateral damage): mean of the negative parts, as a positive number."""
    return comparison.mean(comparison.over_suppression)


@_of_paper("sa_ppg", "SA-PPG", differences="all", summary_column=1)
def sa_ppg(comparison: Comparison) -> Values:
    """Stratified aggregate of per-question probability gaps (paper, section 3.3).

    Mean |gap| within each stratum of the clean model's solve probability (see
    `zerogap.metrics.strata`), then the mean over the non-empty strata. Zero exactly when every
    question is restored.
    """
    return comparison.stratified_mean(np.abs(comparison.gap))


@_of_paper("s_delta_plus", "S-Δ⁺", summary_column=2)
def s_delta_plus(comparison: Comparison) -> Values:
    """Stratified under-suppression; with `s_delta_minus` it adds up to `sa_ppg`."""
    return comparison.stratified_mean(comparison.under_suppression)


@_of_paper("s_delta_minus", "S-Δ⁻", summary_column=3)
def s_delta_minus(comparison: Comparison) -> Values:
    """Stratified over-suppression; with `s_delta_plus` it adds up to `sa_ppg`."""
    return comparison.stratified_mean(comparison.over_suppression)


@register_metric("solve_mean", "Solved", of_clean_model=True, summary_column=7)
def solve_mean(comparison: Comparison) -> Values:
    """Mean solve probability of the strategy."""
    return comparison.mean(comparison.strategy.probability)


@register_metric("share_empty", "No samples")
def share_empty(comparison: Comparison) -> Values:
    """Fraction of questions without samples, after a filter dropped them all."""
    return comparison.mean(comparison.strategy.n_samples == 0)


@register_metric("g_ap_mean", "G-AP, mean", has_interval=False)
def _g_ap_mean(comparison: Comparison) -> Values:
    mass = comparison.accuracy_difference_distribution
    return np.asarray(mass @ _possible_g_ap(mass))


@register_metric("g_ap_sd", "G-AP, s.d.", has_interval=False)
def _g_ap_sd(comparison: Comparison) -> Values:
    mass = comparison.accuracy_difference_distribution
    deviations = _possible_g_ap(mass) - _g_ap_mean.definition(comparison)
    return np.sqrt(np.maximum(0.0, mass @ deviations**2))


def _possible_g_ap(mass: Values) -> Values:
    n_questions = len(mass) // 2
    return np.abs(np.arange(len(mass)) - n_questions) / n_questions


@register_metric("sa_ppg_corrected", "SA-PPG, corrected", has_interval=False)
def sa_ppg_corrected(comparison: Comparison) -> Values:
    """SA-PPG corrected for the finite number of samples (`zerogap.metrics.correction`).

    It tends to the value of `sa_ppg` as the samples grow. The samples of the two models must be
    independent. A question without samples counts as never solved, with certainty. Takes about
    0.1 s for 1,319 questions.
    """
    return np.asarray(correction.corrected(comparison))
