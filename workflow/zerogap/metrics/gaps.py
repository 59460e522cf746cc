"""How far a strategy is from the clean model, from counts alone (paper, section 3).

Every function takes one entry a question, in the same order for the strategy and for the clean
model: ``n_correct`` correct responses of ``n_samples``. Lists, numpy arrays and pandas columns are
all welcome, and the number of samples may differ between questions. A question on which a strategy
is left without samples (TED may drop them all) counts as never solved; the clean model needs at
least one sample a question. All readings are in [0, 1]; lower is better.

Solve probabilities are quotients of integers, correctly rounded: a gap is zero exactly when the two
fractions are equal, so A-PPG and SA-PPG are zero exactly when every question is restored.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zerogap.errors import InputError

Counts = NDArray[np.int64]
Values = NDArray[np.float64]


def solve_probability(n_correct: ArrayLike, n_samples: ArrayLike) -> Values:
    """The share of correct responses, c/m, of each question; 0 where there are no samples.

    Raises:
        InputError: entries that are no counts, differing lengths, or more correct than sampled.
    """
    correct, samples = _counts(n_correct, n_samples, "")
    return np.divide(correct, samples, out=np.zeros(len(correct)), where=samples > 0)


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
        InputError: as `solve_probability`; also differing numbers of questions, or a clean
            question without samples.
    """
    readout = solve_probability(n_correct, n_samples)
    clean_correct, clean_samples = _clean_counts(clean_n_correct, clean_n_samples)
    _same_length("n_correct", readout, "clean_n_correct", clean_correct)
    return readout - clean_correct / clean_samples


def g_ap(first_correct: ArrayLike, clean_first_correct: ArrayLike) -> float:
    """Gap of aggregate performance: the distance between two accuracies.

    Takes the 0/1 readout of one response a question, as in prior work.

    Raises:
        InputError: a readout that is not 0 or 1, or differing numbers of questions.
    """
    readout = _marks(first_correct, "first_correct")
    clean = _marks(clean_first_correct, "clean_first_correct")
    _same_length("first_correct", readout, "clean_first_correct", clean)
    # The difference of integers first: two equal accuracies read exactly 0.
    return abs(int(readout.sum()) - int(clean.sum())) / len(readout)


def g_app(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Gap of aggregate per-question probabilities: |mean gap|, where opposite gaps cancel."""
    return float(abs(ppg(n_correct, n_samples, clean_n_correct, clean_n_samples).mean()))


def a_ppg(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Aggregate of per-question probability gaps: mean |gap|."""
    return float(np.abs(ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)).mean())


def delta_plus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Under-suppression, residual contamination: mean of the positive parts of the gaps."""
    return float(_positive(ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)).mean())


def delta_minus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """Over-suppression, collateral damage: mean of the negative parts of the gaps, as positive."""
    return float(_positive(-ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)).mean())


def strata(clean_n_correct: ArrayLike, clean_n_samples: ArrayLike, bins: int = 50) -> Counts:
    """The stratum of each question, 0 … bins-1, by the clean model's solve probability.

    Stratum b holds [b/bins, (b+1)/bins), the last one also 1. Computed with integers: with
    m = B = 50 every solve probability lies on an edge, and floor(0.58 * 50) is 28 in floating
    point.

    Raises:
        InputError: as `ppg`; `bins` is no positive integer.
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise InputError(f"bins: {bins!r} is no positive integer")
    correct, samples = _clean_counts(clean_n_correct, clean_n_samples)
    return np.minimum(bins - 1, correct * int(bins) // samples)


def stratum_weights(stratum: ArrayLike) -> Values:
    """The weight of each question when strata count equally: 1 / (strata in use · its size).

    The weights sum to 1; a stratified mean is a sum weighted by them.
    """
    _, index, sizes = np.unique(np.asarray(stratum), return_inverse=True, return_counts=True)
    return 1.0 / (len(sizes) * sizes[index])


def sa_ppg(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> float:
    """Stratified aggregate of per-question probability gaps (paper, section 3.3).

    Mean |gap| within each stratum of the clean model's solve probability (see `strata`), then
    the mean over the strata that hold a question.
    """
    gap = ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)
    return _stratified_mean(np.abs(gap), clean_n_correct, clean_n_samples, bins)


def s_delta_plus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> float:
    """Stratified under-suppression; with `s_delta_minus` it adds up to `sa_ppg`."""
    gap = ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)
    return _stratified_mean(_positive(gap), clean_n_correct, clean_n_samples, bins)


def s_delta_minus(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> float:
    """Stratified over-suppression; with `s_delta_plus` it adds up to `sa_ppg`."""
    gap = ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)
    return _stratified_mean(_positive(-gap), clean_n_correct, clean_n_samples, bins)


def g_ap_over_choices(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> tuple[float, float]:
    """Mean and standard deviation of G-AP over the choice of the one response it looks at.

    Each question's response is drawn afresh from its samples, for both models, independently.
    Exact: the number of correct readouts is a sum of independent Bernoulli variables, whose
    distribution is built question by question, in O(N²).
    """
    readout = solve_probability(n_correct, n_samples)
    clean_correct, clean_samples = _clean_counts(clean_n_correct, clean_n_samples)
    _same_length("n_correct", readout, "clean_n_correct", clean_correct)
    n = len(readout)
    # X - Y has the distribution of X + Y' - n, where Y' counts the clean model's failures.
    chances = np.concatenate([readout, 1 - clean_correct / clean_samples])
    mass = np.zeros(2 * n + 1)
    mass[0] = 1.0
    for k, chance in enumerate(chances):
        mass[1 : k + 2] = mass[1 : k + 2] * (1 - chance) + mass[: k + 1] * chance
        mass[0] *= 1 - chance
    reading = np.abs(np.arange(2 * n + 1) - n) / n
    mean = float(mass @ reading)
    return mean, float(np.sqrt(max(0.0, mass @ (reading - mean) ** 2)))


def _stratified_mean(values: Values, correct: ArrayLike, samples: ArrayLike, bins: int) -> float:
    return float(stratum_weights(strata(correct, samples, bins)) @ values)


def _positive(values: Values) -> Values:
    return np.maximum(values, 0.0) + 0.0  # no negative zero


def _counts(n_correct: ArrayLike, n_samples: ArrayLike, prefix: str) -> tuple[Counts, Counts]:
    correct = _whole(n_correct, f"{prefix}n_correct")
    samples = _whole(n_samples, f"{prefix}n_samples")
    _same_length(f"{prefix}n_correct", correct, f"{prefix}n_samples", samples)
    if (bad := np.flatnonzero(correct > samples)).size:
        k = bad[0]
        raise InputError(
            f"{prefix}n_correct: question {k} has {correct[k]} correct of {samples[k]} samples"
        )
    return correct, samples


def _clean_counts(n_correct: ArrayLike, n_samples: ArrayLike) -> tuple[Counts, Counts]:
    correct, samples = _counts(n_correct, n_samples, "clean_")
    if (empty := np.flatnonzero(samples == 0)).size:
        raise InputError(
            f"clean_n_samples: question {empty[0]} has no samples; "
            "the clean model is the reference and needs at least one on every question"
        )
    return correct, samples


def _whole(values: ArrayLike, name: str) -> Counts:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}: one entry a question expected, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: whole numbers expected, got {array.dtype}")
    # NaN is unequal to its own floor, so missing values are caught here as well.
    if (bad := np.flatnonzero((array < 0) | (array != np.floor(array)) | np.isinf(array))).size:
        raise InputError(f"{name}: question {bad[0]} has {array[bad[0]]}; a count is 0, 1, 2, …")
    return array.astype(np.int64)


def _marks(values: ArrayLike, name: str) -> Counts:
    marks = _whole(values, name)
    if (bad := np.flatnonzero(marks > 1)).size:
        raise InputError(f"{name}: question {bad[0]} has {marks[bad[0]]}; a 0/1 readout expected")
    return marks


def _same_length(name: str, values: NDArray, other: str, others: NDArray) -> None:
    if len(values) != len(others):
        raise InputError(
            f"{name} has {len(values)} questions, {other} has {len(others)}; "
            "give one entry a question, in the same order"
        )
