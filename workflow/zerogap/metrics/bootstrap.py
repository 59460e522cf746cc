"""Bootstrap intervals: a metric is a weighted mean over questions, a resample a set of weights.

There are two schemes, for two questions that a reader may ask.

*Questions* (the default): how much would the value change with other questions of the same kind? A
resample draws as many questions as there are, with replacement, separately among leaked and
unleaked ones (their numbers are fixed by design). A drawn question keeps its responses, so the
spread already contains the sampling noise; redrawing the responses as well would count it twice
(Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). Questions that
resemble each other, such as translations of one item, are drawn together, as a cluster (section
3.8 as well). Means over strata need care where strata hold few questions: `stratified_means`.

*Samples*: how much would the value change with other responses to the same questions? The questions
stay, and the counts are redrawn from a binomial distribution with the observed solve probability,
for the strategy and for the clean model. Redrawn counts contain the sampling noise twice, and |gap|
grows with noise, so these resamples are too high: intervals use their deviations from their mean.
Two strategies are redrawn independently, also TED and Identity, whose responses TED filters. With
one response per question nothing varies, and intervals have no width.

Strategies are compared on the same resamples: subtract first, then take the interval. Among many
differences some exclude 0 by chance; `simultaneous` gives intervals with joint coverage.
"""

from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from zerogap.errors import InputError
from zerogap.metrics.gaps import Values, solve_probability

RESAMPLES_AT_ONCE = 100  # drawn as int64, which would fill the memory for all of them
UNBOUNDED = (-np.inf, np.inf)
SHARE = (0.0, 1.0)  # the bounds of probabilities, shares and the paper's metrics
N_CELLS = 2**16  # equally likely counts per distinct question, one for each uint16


def question_weights(
    groups: ArrayLike, n_resamples: int, rng: np.random.Generator, clusters: ArrayLike | None = None
) -> NDArray[np.uint8]:
    """How often each resample drew each question: shape (resamples, questions).

    Counts above 255 have a probability below 1e-500. Each group is resampled separately, so that
    its weights add up to its size. Questions of a cluster are drawn together; clusters with
    questions of the same groups are resampled separately from others, so that their number is
    fixed, and that of the questions where clusters have one size.

    Args:
        groups: (questions,), a label of each.
        n_resamples: Number of resamples, at least 1.
        rng: Random number generator.
        clusters: (questions,), a label of each; each question is its own if None.

    Raises:
        InputError: No labels, or fewer than one resample.
    """
    groups = np.asarray(groups)
    if groups.ndim != 1 or groups.size == 0:
        raise InputError(f"groups: expected one label per question, got shape {groups.shape}")
    _check_resamples(n_resamples)
    cluster = pd.factorize(np.arange(len(groups)) if clusters is None else np.asarray(clusters))[0]
    labels, group = np.unique(groups, return_inverse=True)
    lacks = np.ones((cluster.max() + 1, len(labels)), dtype=bool)  # groups a cluster is not in
    lacks[cluster, group] = False
    _, kind = np.unique(lacks, axis=0, return_inverse=True)
    weights = np.empty((n_resamples, len(lacks)), dtype=np.uint8)
    for label in range(kind.max() + 1):
        members = np.flatnonzero(kind == label)
        uniform = np.full(len(members), 1 / len(members))
        for start in range(0, n_resamples, RESAMPLES_AT_ONCE):
            size = min(RESAMPLES_AT_ONCE, n_resamples - start)
            drawn = rng.multinomial(len(members), uniform, size=size)
            weights[start : start + size, members] = drawn
    return weights[:, cluster]


def observed_and_resampled(
    groups: ArrayLike, n_resamples: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """`question_weights` after a first row of ones, of the point estimate: (1 + resamples, …)."""
    weights = question_weights(groups, n_resamples, rng)
    return np.vstack([np.ones_like(weights[:1]), weights])


def redraw(
    n_correct: ArrayLike, n_samples: ArrayLike, n_resamples: int, rng: np.random.Generator
) -> NDArray[np.unsignedinteger]:
    """Counts redrawn binomially from the observed solve probabilities, (resamples, questions).

    A table of 65,536 equally likely counts per distinct question is ten times as fast as drawing
    each count from a binomial; no probability is off by more than 1/65,536.

    Raises:
        InputError: Fewer than one resample.
    """
    _check_resamples(n_resamples)
    probability = solve_probability(n_correct, n_samples)
    pairs = np.column_stack([n_correct, n_samples]).astype(np.int64)
    pairs, kinds = np.unique(pairs, axis=0, return_inverse=True)
    counts = np.empty((len(probability), n_resamples), dtype=np.min_scalar_type(pairs.max()))
    for kind, (correct, samples) in enumerate(pairs):
        members = np.flatnonzero(kinds.ravel() == kind)
        cells = rng.integers(N_CELLS, size=(len(members), n_resamples), dtype=np.uint16)
        counts[members] = counts_by_cell(correct, samples).astype(counts.dtype)[cells]
    return np.ascontiguousarray(counts.T)


def _check_resamples(n_resamples: int) -> None:
    if n_resamples < 1:
        raise InputError(f"n_resamples must be a positive integer (got {n_resamples})")


def counts_by_cell(correct: int, samples: int) -> NDArray[np.int64]:
    """65,536 counts, each as often as its binomial probability with p = correct / samples."""
    if correct in (0, samples):
        return np.full(N_CELLS, correct)
    cumulative = np.cumsum(binomial(samples, correct / samples))
    ends = np.rint(cumulative / cumulative[-1] * N_CELLS).astype(np.int64)
    return np.repeat(np.arange(samples + 1), np.diff(ends, prepend=0))


def binomial(samples: int, chance: float) -> Values:
    """Binomial probabilities of 0 … samples, the largest scaled to 1; 0 < chance < 1."""
    counts = np.arange(samples + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    logs = counts * np.log(chance) + counts[::-1] * np.log1p(-chance)
    logs -= log_factorials + log_factorials[::-1]
    return np.asarray(np.exp(logs - logs.max()))


def plain_weights(weights: ArrayLike) -> Values:
    """Scale the weights of each resample to add up to 1: every drawn question counts the same."""
    draws = np.asarray(weights, dtype=np.float64)
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def stratified_means(
    draws: ArrayLike,
    strata: ArrayLike,
    values: ArrayLike,
    confidence_level: float = 0.95,
    clusters: ArrayLike | None = None,
) -> Values:
    """The mean over strata of the mean within each, in each resample: (…, resamples).

    At m = B = 50 and a hundred questions, most strata hold one or two. The mean over the strata of
    the drawn questions leaves out a third of them and never varies a stratum of one question, so
    its spread is a quarter too small. Instead, a resample is the point estimate plus the influence
    of the questions, each as often as it was drawn beyond once, scaled to the variance of new
    questions (Rao and Wu, JASA 83, 1988):

    - In a stratum of n > 1 questions, a question's influence is its distance from the stratum's
      mean, times sqrt(n / (n - 1)). The variance is the unbiased one of a stratum's mean.
    - A stratum of one question shows nothing of its variation and is compared with all strata: its
      influence is its distance from their mean. This covers that new questions may leave it empty.
    - The variance is itself estimated. All influences are widened as the quantile of Student's t
      is, with Satterthwaite's degrees of freedom if questions vary equally in all strata.

    Strata are of questions, with or without clusters. The questions of a cluster are drawn equally
    often, so their influences add up, within and across strata, to the influence of the cluster:
    the resamples vary as the sums of clusters do. What shows variation is then a stratum's number
    of clusters, which replaces n above (a stratum of one cluster is like one of one question); and
    there are no more degrees of freedom than clusters less one.

    Coverage: docs/metric.md.

    Args:
        draws: (resamples, questions), how often each question was drawn.
        strata: (questions,).
        values: (…, questions).
        confidence_level: Of the intervals that the resamples are for; the widening depends on it.
        clusters: (questions,), as of `question_weights`.
    """
    values = np.asarray(values, dtype=np.float64)
    _, stratum = np.unique(np.asarray(strata), return_inverse=True)
    sizes = np.bincount(stratum).astype(np.int64)
    names = np.arange(len(stratum)) if clusters is None else np.asarray(clusters)
    cluster_names, cluster = np.unique(names, return_inverse=True)
    n_clusters = len(cluster_names)
    units = np.bincount(np.unique(stratum * n_clusters + cluster) // n_clusters)  # per stratum
    several = units > 1
    stratum_means = values @ (np.eye(len(sizes)) / sizes)[stratum]
    mean = stratum_means.mean(axis=-1, keepdims=True)
    centres = np.where(several, stratum_means, mean)
    widening = _t_widening(units, n_clusters, confidence_level)
    scales = widening * np.sqrt(units / np.where(several, units - 1, 1))
    influence = (scales / (len(sizes) * sizes))[stratum] * (values - centres[..., stratum])
    return np.asarray(mean + influence @ (np.asarray(draws, dtype=np.float64) - 1).T)


def _t_widening(units: NDArray[np.int64], n_clusters: int, confidence_level: float) -> float:
    """Student's t quantile over the normal one, by the number of clusters in each stratum.

    The first term of the Cornish-Fisher expansion: at 95 % within 0.01 from 13 degrees on.
    """
    several = units[units > 1]
    n_single = len(units) - len(several)
    variance_of_variance = np.sum(1 / (several**2 * (several - 1.0)))
    if n_single:  # all strata of one question give one estimate
        variance_of_variance += n_single**2 / max(n_single - 1, 1)
    if variance_of_variance == 0:
        return 1.0
    satterthwaite = np.sum(1 / units) ** 2 / variance_of_variance
    degrees_of_freedom = min(float(satterthwaite), max(n_clusters - 1, 1))
    quantile = NormalDist().inv_cdf((1 + confidence_level) / 2)
    return float(1 + (quantile**2 + 1) / 4 / degrees_of_freedom)


def weighted_means(weights: Values, values: ArrayLike) -> Values:
    """The mean of values (…, resamples or 1, questions) in each resample: (…, resamples).

    The weights, (resamples, questions), add up to 1 in each resample.
    """
    values = np.asarray(values)
    if values.shape[-2] == 1:
        return np.asarray(values[..., 0, :] @ weights.T)
    return np.asarray(np.einsum("...rq,rq->...r", values, weights))


def interval(
    resamples: ArrayLike,
    value: float,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] = UNBOUNDED,
) -> tuple[float, float]:
    """The symmetric interval of a metric: its value plus and minus a quantile of the deviations.

    Deviations are those of the resamples from their mean, which differs from the value where noise
    counts twice (scheme *samples*). With few questions, the skewness of the resamples is mostly
    chance, and equal tails on both sides would follow it: the coverage falls by one percentage
    point at N = 100.

    Args:
        resamples: The metric in each resample.
        value: The point estimate.
        confidence_level: Fraction of resamples inside.
        bounds: The smallest and largest value of the metric.
    """
    deviations: Values = np.asarray(resamples, dtype=np.float64)
    deviations = np.abs(deviations - deviations.mean())
    radius = float(np.quantile(deviations, confidence_level))
    return max(value - radius, bounds[0]), min(value + radius, bounds[1])


def with_interval(
    values: ArrayLike, confidence_level: float, bounds: tuple[float, float]
) -> tuple[float, float, float]:
    """The point estimate and the ends of its `interval`.

    `values` are the point estimate, then the metric in each resample; those that are not finite are
    left out. Without any, or without a finite estimate, the ends are NaN.
    """
    values = np.asarray(values, dtype=np.float64)
    value, resamples = float(values[0]), values[1:][np.isfinite(values[1:])]
    if not np.isfinite(value) or not resamples.size:
        return value, float("nan"), float("nan")
    return value, *interval(resamples, value, confidence_level, bounds)


def simultaneous(
    resamples: ArrayLike, values: ArrayLike, confidence_level: float = 0.95
) -> tuple[Values, Values]:
    """Intervals with joint coverage, by the largest deviation (max-T) of each resample.

    Each is the point estimate plus and minus its standard error times a factor that all share: the
    quantile over the resamples of the largest |deviation| / standard error. The resamples contain
    the dependence between the metrics, so the intervals are not wider than necessary, unlike
    Bonferroni's (Westfall and Young, Resampling-Based Multiple Testing, 1993, chapter 2).

    Args:
        resamples: (metrics, resamples).
        values: (metrics,), the point estimates.
        confidence_level: Probability that all intervals cover.

    Returns:
        Lower and upper ends, (metrics,) each; equal if all resamples are.
    """
    values = np.asarray(values, dtype=np.float64)
    resamples = np.asarray(resamples, dtype=np.float64)
    deviations = resamples - resamples.mean(axis=1, keepdims=True)
    errors = deviations.std(axis=1)
    varying = errors > 1e-12
    if not varying.any():
        return values, values
    largest = np.abs(deviations[varying] / errors[varying, None]).max(axis=0)
    widths = np.where(varying, np.quantile(largest, confidence_level) * errors, 0.0)
    return values - widths, values + widths
