"""Per-question solve probabilities, gaps and strata, from counts (paper, section 3).

Counts are given with one entry per question, in the same order for the strategy and for the clean
model: ``n_correct`` correct responses out of ``n_samples``. Lists, numpy arrays and pandas columns
are accepted, and the number of samples may differ between questions. A question for which a
strategy has no samples (TED may drop all of them) counts as never solved; the clean model needs at
least one sample per question.

Solve probabilities are correctly rounded quotients of integers, so a gap is zero exactly when the
two fractions are equal.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zerogap.errors import InputError

Array = NDArray[Any]
Counts = NDArray[np.int64]
Values = NDArray[np.float64]

MAX_COUNT = 2**31 - 1  # the product of a count and the number of strata fits into 64 bits


def solve_probability(n_correct: ArrayLike, n_samples: ArrayLike) -> Values:
    """Fraction of correct responses c/m per question; 0 where there are no samples.

    Raises:
        InputError: Entries are not counts, the lengths differ, or more responses are correct than
            were sampled.
    """
    return fractions(*checked_counts(n_correct, n_samples))


def strata(clean_n_correct: ArrayLike, clean_n_samples: ArrayLike, bins: int = 50) -> Counts:
    """Stratum of each question, 0 … bins-1, by the clean model's solve probability.

    Stratum b holds [b/bins, (b+1)/bins), the last one also 1.

    Raises:
        InputError: As `zerogap.metrics.ppg`; also if `bins` is not a positive integer.
    """
    check_bins(bins)
    return strata_of_counts(*checked_clean_counts(clean_n_correct, clean_n_samples), bins)


def stratum_weights(strata: ArrayLike) -> Values:
    """Weight of each question when strata count equally: 1 / (non-empty strata · stratum size).

    The weights sum to 1; a stratified mean is a sum weighted by them.

    Args:
        strata: (questions,), or (resamples, questions), where each row has its own weights.
    """
    strata = np.asarray(strata)
    labels, stratum = np.unique(strata, return_inverse=True)
    rows = stratum.reshape(-1, strata.shape[-1])
    cells = rows + len(labels) * np.arange(len(rows))[:, None]
    sizes = np.bincount(cells.ravel(), minlength=len(rows) * len(labels))
    n_in_use = (sizes.reshape(len(rows), -1) > 0).sum(axis=1, keepdims=True)
    weights: Values = 1 / (sizes[cells] * n_in_use)
    return weights.reshape(strata.shape)


def fractions(correct: Array, samples: Array) -> Values:
    """`solve_probability` of arrays of any shape, without checks."""
    quotients: Values = np.zeros(correct.shape)
    np.divide(correct, samples, out=quotients, where=samples > 0)
    return quotients


def strata_of_counts(correct: Array, samples: Array, bins: int) -> Counts:
    """`strata` of arrays of any shape, without checks."""
    # Integer arithmetic: with m = B = 50 every solve probability is the edge of a stratum, and
    # floor(0.58 * 50) is 28 in floating point.
    stratum: Counts = correct.astype(np.int64) * int(bins) // samples
    return np.minimum(stratum, bins - 1)


def checked_counts(
    n_correct: ArrayLike, n_samples: ArrayLike, prefix: str = ""
) -> tuple[Counts, Counts]:
    """The two columns as integer arrays; in errors, `prefix` precedes their names.

    Raises:
        InputError: As `solve_probability`.
    """
    correct = _whole_numbers(n_correct, f"{prefix}n_correct")
    samples = _whole_numbers(n_samples, f"{prefix}n_samples")
    check_same_length(f"{prefix}n_correct", correct, f"{prefix}n_samples", samples)
    if (invalid := np.flatnonzero(correct > samples)).size:
        k = invalid[0]
        raise InputError(
            f"{prefix}n_correct: question {k} has {correct[k]} correct of {samples[k]} samples"
        )
    return correct, samples


def checked_clean_counts(n_correct: ArrayLike, n_samples: ArrayLike) -> tuple[Counts, Counts]:
    """`checked_counts` of the clean model, which needs a sample for every question."""
    correct, samples = checked_counts(n_correct, n_samples, "clean_")
    if (empty := np.flatnonzero(samples == 0)).size:
        raise InputError(
            f"clean_n_samples: question {empty[0]} has no samples; "
            "the clean model is the reference and needs at least one for every question"
        )
    return correct, samples


def checked_marks(values: ArrayLike, name: str) -> Counts:
    """A column of 0/1 marks as integers.

    Raises:
        InputError: An entry is neither 0 nor 1.
    """
    marks = _whole_numbers(values, name)
    if (invalid := np.flatnonzero(marks > 1)).size:
        k = invalid[0]
        raise InputError(f"{name}: question {k} has {marks[k]}; expected a 0/1 readout")
    return marks


def check_bins(bins: int) -> None:
    """Raise an InputError if `bins` is not an integer from 1 to MAX_COUNT."""
    is_integer = isinstance(bins, int | np.integer) and not isinstance(bins, bool)
    if not is_integer or not 1 <= bins <= MAX_COUNT:
        raise InputError(f"bins must be a positive integer, at most {MAX_COUNT} (got {bins!r})")


def check_same_length(name: str, values: Array, other_name: str, others: Array) -> None:
    """Raise an InputError if two columns differ in length."""
    if len(values) != len(others):
        raise InputError(
            f"{name} has {len(values)} questions, {other_name} has {len(others)}; "
            "give one entry per question, in the same order"
        )


def _whole_numbers(values: ArrayLike, name: str) -> Counts:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}: expected one entry per question, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: expected whole numbers, got {array.dtype}")
    # NaN is unequal to its own floor, so missing values are caught here as well.
    if (invalid := np.flatnonzero((array < 0) | (array != np.floor(array)) | np.isinf(array))).size:
        k = invalid[0]
        raise InputError(f"{name}: question {k} has {array[k]}; a count is 0, 1, 2, …")
    if (array > MAX_COUNT).any():
        raise InputError(f"{name}: question {array.argmax()} has more than {MAX_COUNT}")
    return array.astype(np.int64)
