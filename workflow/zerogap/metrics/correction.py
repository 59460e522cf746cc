"""SA-PPG corrected for the finite number of samples (not in the paper).

Solve probabilities estimated from m responses scatter by up to 0.5/sqrt(m), and an absolute gap
does not average that away: two batches of the same model do not have SA-PPG 0. Stratifying by the
clean model's noisy solve probability adds regression to the mean. The definition remains the
headline; the corrected value next to it shows how much of it is due to the choice of m.

The counts are binomial, and SA-PPG is about their probabilities (p, q), the strategy's and the
clean model's. So the joint distribution of (p, q) over the questions is estimated from the counts,
and the corrected value is its posterior expectation (nonparametric empirical Bayes: Laird, JASA 73,
1978; Efron, Biometrika 103, 2016):

    stratum b:  sum_i P(q_i in b | counts) E[|p - q| | b, counts]  /  sum_i P(q_i in b | counts)

averaged over the strata by their probability of holding a question. The distribution is estimated
by expectation maximisation on a grid, starting half on "restored" (p = q) and half on a uniform
distribution. The maximum itself is a handful of spikes that leave strata empty by chance, so a
little mass moves to neighbouring points after each step (smoothed EM: Silverman et al., JRSS B 52,
1990): along constant gaps, and along p = 0 and p = 1, so that restored, never solved and always
solved questions stay so. Start, smoothing and number of steps were chosen by simulation with known
probabilities (docs/metric.md).
"""

import numpy as np
from numpy.typing import NDArray

from zerogap.metrics.comparison import Comparison
from zerogap.metrics.gaps import Counts, Values

QUESTIONS_PER_STEP = 6
STEPS = 10, 200  # fewest and most EM steps
RESTORED = 0.5  # mass of the starting distribution on p = q
FLOW = 0.2  # fraction of its mass that a grid point passes to each neighbour after each step
CELLS = 50, 200  # fewest, and most unless there are more strata


def corrected(comparison: Comparison) -> float:
    """The corrected SA-PPG of a point estimate's comparison."""
    strategy, clean, bins = comparison.strategy, comparison.clean, comparison.bins
    columns = [strategy.n_correct, strategy.n_samples, clean.n_correct, clean.n_samples]
    # Questions with the same four counts have the same posterior: compute it once for each kind.
    kinds, repeats = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    correct, samples, clean_correct, clean_samples = kinds.T
    grid, stratum = _grid(int(max(samples.max(), clean_samples.max())), bins)
    likelihood = _likelihood(correct, samples, grid)
    likelihood[samples == 0] = grid == 0
    clean_likelihood = _likelihood(clean_correct, clean_samples, grid)

    joint = _joint(clean_likelihood, likelihood, repeats)
    evidence = ((clean_likelihood @ joint) * likelihood).sum(axis=1, keepdims=True)
    distance = np.abs(grid[:, None] - grid)
    # (kinds, strata): probability of the stratum, and the expected gap on that event.
    posterior = clean_likelihood * (likelihood @ joint.T) / evidence
    posterior_gap = clean_likelihood * (likelihood @ (joint * distance).T) / evidence
    member = _by_stratum(posterior, stratum)
    gap = _by_stratum(posterior_gap, stratum)

    with np.errstate(divide="ignore"):
        in_use = -np.expm1(repeats @ np.log1p(-np.minimum(member, 1)))
    sizes = repeats @ member
    non_empty = sizes > 1e-12
    means = (repeats @ gap)[non_empty] / sizes[non_empty]
    return float(in_use[non_empty] @ means / in_use[non_empty].sum())


def _grid(samples: int, bins: int) -> tuple[Values, Counts]:
    """Solve probabilities 0, the middles of equal cells, and 1; and the stratum of each.

    The cells divide the strata, so that no point is the edge of one, and are as fine as the number
    of samples can resolve.
    """
    fewest, most = CELLS
    n_cells = min(max(fewest, int(np.ceil(np.sqrt(samples)))), most)
    cells = bins * -(-n_cells // bins)  # rounded up to a multiple
    grid = np.concatenate([[0.0], (np.arange(cells) + 0.5) / cells, [1.0]])
    stratum = np.concatenate([[0], np.arange(cells) * bins // cells, [bins - 1]])
    return grid, stratum


def _likelihood(correct: Counts, samples: Counts, grid: Values) -> Values:
    """Binomial likelihood of each kind at each grid point, its largest value scaled to 1."""
    inner = grid[1:-1]
    wrong = samples - correct
    logs = np.empty((len(correct), len(grid)))
    logs[:, 1:-1] = correct[:, None] * np.log(inner) + wrong[:, None] * np.log1p(-inner)
    logs[:, 0] = np.where(correct == 0, 0.0, -np.inf)
    logs[:, -1] = np.where(wrong == 0, 0.0, -np.inf)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _joint(clean_likelihood: Values, likelihood: Values, repeats: NDArray[np.int64]) -> Values:
    """Distribution of (q, p), the clean model's and the strategy's, by smoothed EM; sums to 1."""
    n = clean_likelihood.shape[1]
    joint: Values = RESTORED * np.eye(n) / n + (1 - RESTORED) / n**2
    questions = int(repeats.sum())
    fraction = repeats[:, None] / questions
    # With few questions, many steps would fit the noise of single questions.
    for _ in range(int(np.clip(questions // QUESTIONS_PER_STEP, *STEPS))):
        evidence = ((clean_likelihood @ joint) * likelihood).sum(axis=1, keepdims=True)
        joint = _smooth(joint * (clean_likelihood.T @ (likelihood * (fraction / evidence))))
    return joint


def _smooth(joint: Values) -> Values:
    """Move mass between neighbours along the diagonals (equal gaps) and along p = 0 and p = 1.

    The rows q = 0 and q = 1 keep their mass. What flows out of a point flows into its neighbour, so
    the sum stays 1.
    """
    smooth = joint.copy()
    # All inner points, shifted along the diagonal; then the two columns, shifted along q.
    inner = slice(1, -1)
    for line in ((inner, inner), (inner, 0), (inner, -1)):
        before, after = joint[line], smooth[line]
        lower, upper = (slice(None, -1),) * before.ndim, (slice(1, None),) * before.ndim
        flow = FLOW * (before[upper] - before[lower])
        after[lower] += flow
        after[upper] -= flow
    return smooth


def _by_stratum(values: Values, stratum: Counts) -> Values:
    """Sum the columns of each stratum: (kinds, grid points) to (kinds, strata)."""
    starts = np.searchsorted(stratum, np.arange(stratum[-1] + 1))
    return np.asarray(np.add.reduceat(values, starts, axis=1))
