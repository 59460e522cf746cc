"""Bias, coverage and power of SA-PPG, and how its value depends on the number of questions.

python benchmarks/metric_study.py --output metric-study

Responses are simulated for questions with known solve probabilities, for clean models that solve
much and little. The study measures the bias of the definition and of the corrected value, how often
bootstrap intervals contain the truth, the smallest difference that paired intervals detect with
80 % power, and the value that one strategy has with other numbers of questions and strata. It
writes tables, which docs/metric.md discusses.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from zerogap import metrics
from zerogap.metrics.gaps import Array, Values

SAMPLES = (10, 50, 200)
QUESTIONS = (100, 300, 500, 1319)
STRATA = (5, 10, 20, 50)
BINS = 50
POPULATION = 200_000  # questions that stand for all questions of a kind
RESAMPLES = 300
INCREMENTS = np.array([0, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.19, 0.27, 0.38])

Draw = Callable[[np.random.Generator, int], Values]
Strategy = Callable[[np.random.Generator, Values], Values]


class Counts(NamedTuple):
    """Correct and sampled responses of a strategy and of the clean model."""

    n_correct: Array
    n_samples: Array
    clean_n_correct: Array
    clean_n_samples: Array


def spread(rng: np.random.Generator, n: int) -> Values:
    """A quarter of the questions never solved, 8 % always, the rest spread over [0, 1]."""
    kind = rng.random(n)
    return np.where(kind < 0.25, 0.0, np.where(kind < 0.33, 1.0, rng.beta(0.8, 1.1, n)))


# Of the two skewed clean models, a quarter of the questions has no correct response among 50.
CLEAN: dict[str, Draw] = {
    "spread, mean .36": spread,
    "skewed, mean .22": lambda rng, n: rng.beta(0.35, 1.24, n),  # the paper's mean
    "skewed, mean .10": lambda rng, n: rng.beta(0.6, 5.4, n),
}


def leaked(n: int) -> Array:
    """The first half of the questions."""
    return np.arange(n) < n // 2


def inflated(rng: np.random.Generator, q: Values, kept: float) -> Values:
    """Leaked questions keep a share of the inflation on average, the others a twentieth."""
    mean = np.where(leaked(len(q)), kept, 0.05)
    return q + (1 - q) * rng.beta(4 * mean, 4 * (1 - mean))


STRATEGIES: dict[str, Strategy] = {
    "restored exactly": lambda _, q: q,
    "partly restored": lambda rng, q: inflated(rng, q, 0.2),
    "every probability halved": lambda _, q: q / 2,
    "leaked always solved": lambda _, q: np.where(leaked(len(q)), 1.0, q),
    "All-Zero": lambda _, q: np.zeros_like(q),
}


def respond(rng: np.random.Generator, p: Values, q: Values, m: int) -> Counts:
    """Counts of m responses per question of the strategy (p) and of the clean model (q)."""
    samples = np.full(len(p), m)
    return Counts(rng.binomial(m, p), samples, rng.binomial(m, q), samples)


def true_sa_ppg(p: Values, q: Values) -> float:
    """SA-PPG of the probabilities themselves, with B = 50."""
    stratum = np.minimum(BINS - 1, (q * BINS).astype(int))
    return float(metrics.stratum_weights(stratum) @ np.abs(p - q))


def resampled(data: Sequence[Counts], rng: np.random.Generator) -> list[Values]:
    """SA-PPG of strategies with the same clean batch, in bootstrap resamples over questions."""
    weights = metrics.question_weights(leaked(len(data[0].n_correct)), RESAMPLES, rng)
    gaps = [np.abs(metrics.ppg(*counts)) for counts in data]
    strata = metrics.strata(data[0].clean_n_correct, data[0].clean_n_samples, BINS)
    return list(metrics.stratified_means(weights, strata, gaps))


def measure_bias(repeats: int, questions: int) -> pd.DataFrame:
    """Mean error (standard deviation) of the definition and of the corrected value."""
    rows = []
    for (clean, draw), (name, strategy), m in product(CLEAN.items(), STRATEGIES.items(), SAMPLES):
        errors, truths = [], []
        for repeat in range(repeats):
            rng = np.random.default_rng([1, questions, m, repeat])
            q = draw(rng, questions)
            p = strategy(rng, q)
            counts, truth = respond(rng, p, q, m), true_sa_ppg(p, q)
            values = metrics.sa_ppg(*counts, bins=BINS), metrics.sa_ppg_corrected(*counts, BINS)
            errors.append(np.array(values) - truth)
            truths.append(truth)
        cells = [
            f"{mean:+.3f} ({sd:.3f})"
            for mean, sd in zip(np.mean(errors, axis=0), np.std(errors, axis=0), strict=True)
        ]
        rows.append((clean, name, f"{np.mean(truths):.3f}", m, *cells))
    return pd.DataFrame(
        rows, columns=["clean model", "strategy", "truth", "m", "definition", "corrected"]
    )


def measure_dependence(repeats: int) -> pd.DataFrame:
    """The mean SA-PPG of halved probabilities at m = 50, for every N and B.

    In brackets: the mean number of strata with a question, and the share of these that have one.
    """
    rows = []
    for (clean, draw), bins in product(CLEAN.items(), STRATA):
        cells = []
        for n in QUESTIONS:
            values = []
            for repeat in range(repeats):
                rng = np.random.default_rng([6, n, repeat])
                q = draw(rng, n)
                counts = respond(rng, q / 2, q, 50)
                strata = metrics.strata(counts.clean_n_correct, counts.clean_n_samples, bins)
                sizes = np.unique(strata, return_counts=True)[1]
                values.append((metrics.sa_ppg(*counts, bins=bins), len(sizes), np.mean(sizes == 1)))
            value, filled, single = np.mean(values, axis=0)
            cells.append(f"{value:.3f} ({filled:.1f}, {single:.0%})")
        rows.append((clean, bins, *cells))
    return pd.DataFrame(rows, columns=["clean model", "B", *(f"N = {n}" for n in QUESTIONS)])


def measure_coverage(repeats: int, questions: int) -> pd.DataFrame:
    """How often a 95 % interval contains a value.

    The values are the mean at this m, the truth of the population, and the truth after the interval
    was shifted by the correction.
    """
    rows = []
    names = ("restored exactly", "partly restored", "every probability halved")
    for (clean, draw), name, m in product(CLEAN.items(), names, SAMPLES):
        rng = np.random.default_rng(2)
        q = draw(rng, POPULATION)
        truth = true_sa_ppg(STRATEGIES[name](rng, q), q)
        values, shifts, intervals = [], [], []
        for repeat in range(repeats):
            rng = np.random.default_rng([3, questions, m, repeat])
            q = draw(rng, questions)
            counts = respond(rng, STRATEGIES[name](rng, q), q, m)
            values.append(metrics.sa_ppg(*counts, bins=BINS))
            shifts.append(metrics.sa_ppg_corrected(*counts, BINS) - values[-1])
            intervals.append(metrics.interval(resampled([counts], rng)[0], values[-1]))
        ends, mean = np.array(intervals), float(np.mean(values))
        shifted = ends + np.array(shifts)[:, None]
        covered = [contained(*pair) for pair in ((ends, mean), (ends, truth), (shifted, truth))]
        rows.append((clean, name, m, f"{truth:.3f}", f"{mean:.3f}", *covered))
    columns = ["clean model", "strategy", "m", "truth", "mean value"]
    return pd.DataFrame(rows, columns=[*columns, "has the mean", "has the truth", "shifted"])


def contained(intervals: Values, value: float) -> str:
    """How many of the intervals contain the value."""
    return f"{((intervals[:, 0] <= value) & (value <= intervals[:, 1])).mean():.0%}"


def measure_power(repeats: int) -> pd.DataFrame:
    """The smallest true difference whose paired 95 % interval excludes 0 in 80 % of runs.

    The strategies keep a share of the inflation, independently by question and strategy: they have
    nothing in common but the questions.
    """
    rows = []
    for (clean, draw), n in product(CLEAN.items(), QUESTIONS):
        rng = np.random.default_rng(4)
        q = draw(rng, POPULATION)
        truths = np.array([true_sa_ppg(inflated(rng, q, 0.4 + more), q) for more in INCREMENTS])
        cells = []
        for m in (10, 20, 50, 100):
            n_detected = np.zeros(len(truths) - 1)
            for repeat in range(repeats):
                rng = np.random.default_rng([5, n, m, repeat])
                q = draw(rng, n)
                batch = respond(rng, q, q, m)
                data = [
                    batch._replace(n_correct=rng.binomial(m, inflated(rng, q, 0.4 + more)))
                    for more in INCREMENTS
                ]
                first, *others = resampled(data, rng)
                value, *values = (metrics.sa_ppg(*counts, bins=BINS) for counts in data)
                n_detected += [
                    metrics.interval(other - first, other_value - value)[0] > 0
                    for other, other_value in zip(others, values, strict=True)
                ]
            cells.append(f"{smallest(truths[1:] - truths[0], n_detected / repeats):.3f}")
        rows.append((clean, n, *cells))
    return pd.DataFrame(rows, columns=["clean model", "N", "m = 10", "m = 20", "m = 50", "m = 100"])


def smallest(differences: Values, powers: Values, target: float = 0.8) -> float:
    """The difference at which the power reaches the target, interpolated; NaN if none does."""
    # Simulated power is not quite monotone; its running maximum is.
    increasing = np.maximum.accumulate(np.concatenate([[0.025], powers]))
    if increasing[-1] < target:
        return float("nan")
    return float(np.interp(target, increasing, np.concatenate([[0.0], differences])))


def options(description: str) -> argparse.Namespace:
    """The options of a study; the folder of its tables is made."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("metric-study"))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="number of repeats, as a fraction of the study's"
    )
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    return args


def publish(folder: Path, name: str, table: pd.DataFrame) -> None:
    """Write a table as Markdown, and print it."""
    text = table.to_markdown(index=False, disable_numparse=True)
    (folder / f"{name}.md").write_text(f"{text}\n")
    print(f"{name}\n\n{text}\n", flush=True)


def main() -> None:
    """Run the study and write its tables."""
    args = options(__doc__)

    def scaled(repeats: int) -> int:
        return max(2, round(repeats * args.scale))

    tables: Mapping[str, Callable[[], pd.DataFrame]] = {
        "dependence": lambda: measure_dependence(scaled(300)),
        "bias": lambda: measure_bias(scaled(20), QUESTIONS[-1]),
        "bias-few-questions": lambda: measure_bias(scaled(40), 300),
        "coverage": lambda: measure_coverage(scaled(100), QUESTIONS[-1]),
        "coverage-few-questions": lambda: measure_coverage(scaled(100), 300),
        "power": lambda: measure_power(scaled(200)),
    }
    for name, measure in tables.items():
        publish(args.output, name, measure())


if __name__ == "__main__":
    main()
