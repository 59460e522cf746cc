"""A strategy's counts against the clean model's: what every metric is computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zerogap.errors import InputError
from zerogap.metrics import bootstrap, gaps
from zerogap.metrics.gaps import Array, Values

NEGLIGIBLE = 1e-25  # probability


@dataclass(frozen=True)
class SolveCounts:
    """Counts of one model or strategy: arrays of one shape, questions on the last axis.

    Attributes:
        n_correct: Correct responses.
        n_samples: All responses.
        first_correct: Whether the first response is correct; None if it is not known.
    """

    n_correct: Array
    n_samples: Array
    first_correct: Array | None = None

    @cached_property
    def probability(self) -> Values:
        """Solve probabilities; 0 where there are no samples."""
        return gaps.fractions(self.n_correct, self.n_samples)

    def __getitem__(self, index: Any) -> "SolveCounts":
        """The same index into every array."""
        first = self.first_correct
        return SolveCounts(
            self.n_correct[index], self.n_samples[index], None if first is None else first[index]
        )

    @classmethod
    def stack(cls, tables: Sequence["SolveCounts"]) -> "SolveCounts":
        """Tables with known first responses, along a new first axis."""
        columns = ((table.n_correct, table.n_samples, table.first_correct) for table in tables)
        return cls(*map(np.stack, zip(*columns, strict=True)))


@dataclass(frozen=True)
class Comparison:
    """A strategy against the clean model, as a point estimate or in many bootstrap resamples.

    Metrics are written with `mean` and `stratified_mean`, which work for both:

    - Point estimate (`draws` is None): arrays have shape (questions,), means have shape ().
    - Resamples: `draws` has shape (resamples, questions). Arrays of `strategy` have shape
      (strategies, resamples, questions), those of `clean` (resamples, questions); the axis of
      resamples has length 1 where counts are not redrawn. Means have shape (strategies, resamples).

    Attributes:
        strategy: Counts of the strategy.
        clean: Counts of the clean model, the reference.
        bins: Number of strata B.
        draws: How often each resample drew each question.
        confidence_level: Of the intervals that resamples are for.
        clusters: Cluster of each question, (questions,); each question is its own if None.
    """

    strategy: SolveCounts
    clean: SolveCounts
    bins: int = 50
    draws: Array | None = None
    confidence_level: float = 0.95
    clusters: Array | None = None

    @cached_property
    def gap(self) -> Values:
        """Solve probability minus the clean model's (PPG)."""
        return self.strategy.probability - self.clean.probability

    @cached_property
    def under_suppression(self) -> Values:
        """Positive part of the gap: contamination that remains."""
        return _positive_part(self.gap)

    @cached_property
    def over_suppression(self) -> Values:
        """Negative part of the gap, as a positive number: damage."""
        return _positive_part(-self.gap)

    @cached_property
    def first_response_gap(self) -> Values:
        """Difference of the 0/1 readouts of the first responses."""
        if self.strategy.first_correct is None or self.clean.first_correct is None:
            raise InputError("first_correct: needed for metrics of a single response")
        return np.subtract(self.strategy.first_correct, self.clean.first_correct, dtype=np.float64)

    @cached_property
    def accuracy_difference_distribution(self) -> Values:
        """Probability of each difference of correct readouts, -N … N, of a point estimate.

        Each question's readout is that of one response drawn at random, independently for both
        models. A sum of independent Bernoulli variables: a convolution of binomial distributions,
        one per solve probability, without the ends that are `NEGLIGIBLE`.
        """
        # X - Y has the distribution of X + Y' - N, where Y' counts the clean model's failures.
        probabilities = np.concatenate([self.strategy.probability, 1 - self.clean.probability])
        mass, first = np.ones(1), 0
        for chance, repeats in zip(*np.unique(probabilities, return_counts=True), strict=True):
            if chance in (0, 1):
                first += int(chance * repeats)
                continue
            counts = bootstrap.binomial(repeats, chance)
            mass = np.convolve(mass, counts / counts.sum())
            kept = np.flatnonzero(mass > NEGLIGIBLE)
            mass, first = mass[kept[0] : kept[-1] + 1], first + int(kept[0])
        return np.pad(mass, (first, len(probabilities) + 1 - first - len(mass)))

    @cached_property
    def strata(self) -> Array:
        """Stratum of each question by the clean model's solve probability."""
        return gaps.strata_of_counts(self.clean.n_correct, self.clean.n_samples, self.bins)

    def mean(self, values: Array) -> Values:
        """Mean over questions: every question counts the same."""
        if self._question_weights is None:
            return np.asarray(values.mean(axis=-1))
        return bootstrap.weighted_means(self._question_weights, values)

    def stratified_mean(self, values: Array) -> Values:
        """Mean over the non-empty strata of the mean within each: every stratum counts the same."""
        if self.draws is None:
            return np.asarray(self._stratum_weights @ values)
        if len(self.strata) == 1:
            return bootstrap.stratified_means(
                self.draws, self.strata[0], values[..., 0, :], self.confidence_level, self.clusters
            )
        # Every question is drawn once; its counts, and so its stratum, are redrawn.
        return bootstrap.weighted_means(self._stratum_weights, values)

    @cached_property
    def _question_weights(self) -> Values | None:
        return None if self.draws is None else bootstrap.plain_weights(self.draws)

    @cached_property
    def _stratum_weights(self) -> Values:
        return gaps.stratum_weights(self.strata)


def compare(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> Comparison:
    """The point estimate's comparison of two models' counts, one entry per question.

    Raises:
        InputError: As `zerogap.metrics.ppg` and `zerogap.metrics.strata`.
    """
    strategy = SolveCounts(*gaps.checked_counts(n_correct, n_samples))
    clean = SolveCounts(*gaps.checked_clean_counts(clean_n_correct, clean_n_samples))
    gaps.check_same_length("n_correct", strategy.n_correct, "clean_n_correct", clean.n_correct)
    gaps.check_bins(bins)
    return Comparison(strategy, clean, bins)


def ppg(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> Values:
    """Per-question probability gap: the strategy's solve probability minus the clean model's.

    Positive where contamination remains (under-suppression), negative where the strategy did
    damage (over-suppression).

    Raises:
        InputError: As `zerogap.metrics.solve_probability`; also if the numbers of questions differ
            or the clean model has no samples for a question.
    """
    return compare(n_correct, n_samples, clean_n_correct, clean_n_samples).gap


def _positive_part(values: Values) -> Values:
    return np.maximum(values, 0.0) + 0.0  # + 0.0: no negative zero
