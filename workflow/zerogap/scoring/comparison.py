"""Two sets of responses to the same questions: their paired difference, and how to see one."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from zerogap.metrics import interval, plain_weights, question_weights
from zerogap.metrics.same_questions import probabilities
from zerogap.scoring.inputs import Loaded
from zerogap.scoring.score import MIN_QUESTIONS, UNITS, align, notes_on_files, unit_column

SOLVED = 0.5  # a question counts as solved from this solve probability on
POWER = 0.8  # of the number of questions needed
N_RESAMPLES = 2000
INDEPENDENT = "McNemar's test takes the questions of a cluster as independent; trust the interval"


@dataclass(frozen=True)
class Paired:
    """A comparison of B with A.

    Attributes:
        units: what the bootstrap draws, "questions" or "clusters of questions".
        n_questions, n_samples: questions, and responses to each (median of the file with fewer,
            at least 1).
        means, difference: mean solve probabilities of A and B; B − A and the ends of its interval.
        gained, lost, p_value: questions that only B or only A solves, and McNemar's exact test.
        spread: variance of the mean difference times the number of questions, without the noise of
            sampling; questions of a cluster that agree make it larger.
        noise: variance of the difference of one response each, mean over the questions; part of
            `spread` if a file has one response per question.
        notes: what a reader should know of the files.
    """

    units: str
    n_questions: int
    n_samples: int
    means: tuple[float, float]
    difference: tuple[float, float, float]
    gained: int
    lost: int
    p_value: float
    spread: float
    noise: float
    notes: tuple[str, ...]

    def n_questions_needed(self, difference: float, confidence_level: float, n_samples: int) -> int:
        """How many questions like these show a difference with a power of `POWER`.

        It cannot be estimated, and is 2, where `spread` and `noise` are 0.
        """
        normal = NormalDist()
        quantiles = normal.inv_cdf((1 + confidence_level) / 2) + normal.inv_cdf(POWER)
        variance = self.spread + self.noise / n_samples
        return max(2, math.ceil(variance * (quantiles / difference) ** 2))


def compare(first: Loaded, second: Loaded, confidence_level: float) -> Paired:
    """Compare two files; the interval is by bootstrap over questions, or clusters if they have any.

    Raises:
        InputError: the files do not have the same questions and gold answers.
    """
    # Which questions are leaked does not matter here, so that files may disagree on it.
    aligned = align(first, {"second": second}, leaked=[])
    tables = [aligned.clean, aligned.strategies["second"]]
    solved = np.array([probabilities(table) for table in tables])
    samples = np.array([table["n_samples"] for table in tables])
    differences = solved[1] - solved[0]
    rng = np.random.default_rng(0)
    unit = unit_column(aligned.clean)
    clusters = pd.factorize(aligned.clean[unit])[0]
    weights = question_weights(np.zeros(len(differences)), N_RESAMPLES, rng, clusters)
    value = float(differences.mean())
    ends = interval(plain_weights(weights) @ differences, value, confidence_level, (-1.0, 1.0))
    totals = np.bincount(clusters, differences - value)
    n = len(totals)
    spread, noise = float(totals @ totals) / len(differences) * n / max(n - 1, 1), 0.0
    several = samples.min(axis=0) > 1
    if several.any():  # those questions show how large the noise of sampling is
        p, m = solved[:, several], samples[:, several]
        # Unbiased: the observed p (1 - p) is too small by the factor (m - 1) / m.
        per_mean = p * (1 - p) / (m - 1)
        spread = max(0.0, spread - float(per_mean.sum(axis=0).mean()))
        noise = float((per_mean * m).sum(axis=0).mean())
    first_solves, second_solves = solved >= SOLVED
    gained = int((second_solves & ~first_solves).sum())
    lost = int((first_solves & ~second_solves).sum())
    caveats = [INDEPENDENT] if unit == "cluster" else []
    if n < MIN_QUESTIONS:
        caveats = [f"{n} {UNITS[unit]} are too few for an interval: it can be far too narrow"]
    return Paired(
        units=UNITS[unit],
        n_questions=len(differences),
        n_samples=max(1, int(np.median(samples, axis=1).min())),
        means=(float(solved[0].mean()), float(solved[1].mean())),
        difference=(value, *ends),
        gained=gained,
        lost=lost,
        p_value=_sign_test(gained, lost),
        spread=spread,
        noise=noise,
        notes=(*notes_on_files({"A": first, "B": second}), *caveats),
    )


def _sign_test(gained: int, lost: int) -> float:
    """The two-sided p value of two counts that would be equal in the mean."""
    n = gained + lost
    tail: float = sum(math.comb(n, k) for k in range(min(gained, lost) + 1)) / 2**n
    return min(1.0, 2 * tail)
