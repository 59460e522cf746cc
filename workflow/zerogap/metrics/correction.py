"""SA-PPG and A-PPG without the share that comes from sampling (not in the paper).

Solve probabilities from m responses scatter by up to 0.5/sqrt(m), and an absolute gap cannot
average that away: two batches of one model do not read 0. Stratifying by the clean model's noisy
solve probability adds regression to the mean. The definition stays the headline; the corrected
reading beside it says how much of it is a matter of m.

The counts are binomial, and it is their probabilities (p, q), the strategy's and the clean model's,
that SA-PPG is about. So their joint distribution over the questions is estimated from the counts,
and the reading is its posterior expectation (nonparametric empirical Bayes: Laird, JASA 73, 1978;
Efron, Biometrika 103, 2016):

    stratum b:  sum_i P(q_i in b | counts) E[|p - q| | b, counts]  /  sum_i P(q_i in b | counts)

averaged over the strata by their probability of holding a question. The distribution is found by
expectation maximisation on a grid, starting half on "restored" (p = q) and half on anything. The
maximum itself is a handful of spikes that leave strata empty by chance, so a little mass moves to
neighbouring questions after each step (smoothed EM: Silverman et al., JRSS B 52, 1990): along
constant gaps, and along p = 0 and p = 1, so that what is restored, dead or fully solved stays so.
Start, smoothing and number of steps were chosen by simulation with known probabilities
(docs/metric-study.md).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zerogap.metrics import gaps
from zerogap.metrics.gaps import Counts, Values

STEPS = 10, 200  # fewest and most; a step for every six questions between
RESTORED = 0.5  # share of the starting distribution on p = q
SHARE = 0.2  # of its mass that a grid point hands to either neighbour after each step
CELLS = 50, 200  # fewest, and most unless there are more strata


def sa_ppg_corrected(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
    bins: int = 50,
) -> float:
    """`sa_ppg` corrected for the finite number of samples; in [0, 1].

    Takes what `sa_ppg` takes, one entry a question, and tends to the same value as the samples
    grow. The two models' samples have to be independent. A question without samples counts as
    never solved, with certainty. Some 0.1 s for 1,319 questions.

    Raises:
        InputError: as `sa_ppg`.
    """
    gaps.ppg(n_correct, n_samples, clean_n_correct, clean_n_samples)  # all checks in one place
    gaps.strata(clean_n_correct, clean_n_samples, bins)
    columns = (n_correct, n_samples, clean_n_correct, clean_n_samples)
    rows, repeats = np.unique(
        np.column_stack([np.asarray(column, dtype=np.int64) for column in columns]),
        axis=0,
        return_counts=True,
    )
    correct, samples, clean_correct, clean_samples = rows.T
    chances, stratum = _grid(int(max(samples.max(), clean_samples.max())), bins)
    strategy = _likelihood(correct, samples, chances)
    strategy[samples == 0] = chances == 0
    clean = _likelihood(clean_correct, clean_samples, chances)

    joint = _joint(clean, strategy, repeats)
    evidence = ((clean @ joint) * strategy).sum(axis=1, keepdims=True)
    distance = np.abs(chances[:, None] - chances)
    # (rows, strata): the chance to be in the stratum, and the expected gap on that event.
    member = _by_stratum(clean * (strategy @ joint.T) / evidence, stratum)
    gap = _by_stratum(clean * (strategy @ (joint * distance).T) / evidence, stratum)

    with np.errstate(divide="ignore"):
        in_use = -np.expm1(repeats @ np.log1p(-np.minimum(member, 1)))
    size = repeats @ member
    held = size > 1e-12
    means = (repeats @ gap)[held] / size[held]
    return float(in_use[held] @ means / in_use[held].sum())


def a_ppg_corrected(
    n_correct: ArrayLike,
    n_samples: ArrayLike,
    clean_n_correct: ArrayLike,
    clean_n_samples: ArrayLike,
) -> float:
    """`a_ppg` corrected for the finite number of samples: SA-PPG with one stratum."""
    return sa_ppg_corrected(n_correct, n_samples, clean_n_correct, clean_n_samples, bins=1)


def _grid(samples: int, bins: int) -> tuple[Values, Counts]:
    """Solve probabilities, 0, the middles of equal cells, and 1; and the stratum of each.

    The cells divide the strata, so none lies on an edge, and are as fine as the samples can tell.
    """
    fewest, most = CELLS
    wanted = min(max(fewest, int(np.ceil(np.sqrt(samples)))), most)
    cells = bins * -(-wanted // bins)
    chances = np.concatenate([[0.0], (np.arange(cells) + 0.5) / cells, [1.0]])
    stratum = np.concatenate([[0], np.arange(cells) * bins // cells, [bins - 1]])
    return chances, stratum


def _likelihood(correct: Counts, samples: Counts, chances: Values) -> Values:
    """Binomial likelihood of each row at each chance, (rows, chances), its largest scaled to 1."""
    inner = chances[1:-1]
    wrong = samples - correct
    logs = np.empty((len(correct), len(chances)))
    logs[:, 1:-1] = correct[:, None] * np.log(inner) + wrong[:, None] * np.log1p(-inner)
    logs[:, 0] = np.where(correct == 0, 0.0, -np.inf)
    logs[:, -1] = np.where(wrong == 0, 0.0, -np.inf)
    return np.exp(logs - logs.max(axis=1, keepdims=True))


def _joint(clean: Values, strategy: Values, repeats: NDArray[np.int64]) -> Values:
    """The distribution of (clean chance, strategy's chance) by smoothed EM; sums to 1."""
    n = clean.shape[1]
    joint = RESTORED * np.eye(n) / n + (1 - RESTORED) / n**2
    questions = int(repeats.sum())
    share = repeats[:, None] / questions
    # Few questions, many steps: the noise of the single question would be taken for the truth.
    for _ in range(int(np.clip(questions // 6, *STEPS))):
        evidence = ((clean @ joint) * strategy).sum(axis=1, keepdims=True)
        joint = _smooth(joint * (clean.T @ (strategy * (share / evidence))))
    return joint


def _smooth(joint: Values) -> Values:
    """Move mass between neighbours of one gap, or of p = 0 or 1; clean chances 0 and 1 keep it."""
    smooth = joint.copy()
    inner = slice(1, -1)
    for line in ((inner, inner), (inner, 0), (inner, -1)):
        old, new = joint[line], smooth[line]
        lower, upper = (slice(None, -1),) * old.ndim, (slice(1, None),) * old.ndim
        flow = SHARE * (old[upper] - old[lower])
        new[lower] += flow
        new[upper] -= flow
    return smooth


def _by_stratum(values: Values, stratum: Counts) -> Values:
    """Sum the columns of each stratum: (rows, chances) to (rows, strata)."""
    return np.add.reduceat(values, np.searchsorted(stratum, np.arange(stratum[-1] + 1)), axis=1)
