"""Do the bootstrap intervals of SA-PPG cover what they should?

python benchmarks/interval_study.py --output docs/metric-study/intervals.md

Questions, solve probabilities and responses are simulated at the paper's m = B = 50. Each
repetition draws new questions and new responses, as another evaluation of the same kind would. The
study measures

- how often the paired 95 % interval of two strategies that are equally good excludes 0;
- how often the paired interval of two different strategies contains their mean difference;
- how often the interval of a strategy's SA-PPG contains its mean value at this N and m;
- how often simultaneous intervals of 21 equal pairs exclude 0 anywhere.

For comparison, every tenth repetition also measures the first for the plain bootstrap, which draws
questions with replacement and leaves out strata that are empty in a resample. It takes about three
minutes on one core.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from zerogap import metrics
from zerogap.metrics.gaps import Array, Values

M = BINS = 50
RESAMPLES = 1000
REPEATS = {100: 6000, 440: 4000, 1319: 3000}  # by number of questions
PLAIN_EVERY = 10  # repetitions
SHARED_DRAWS = 25  # repetitions that share their draws, which do not depend on the data

Population = Callable[[np.random.Generator, int], Values]


def as_in_the_paper(rng: np.random.Generator, n: int) -> Values:
    """Mean .22, a quarter without a correct response among 50 (paper: .219, nearly a quarter)."""
    return rng.beta(0.35, 1.24, n)


def spread_out(rng: np.random.Generator, n: int) -> Values:
    """A quarter never solved, 8 % always, the rest spread over [0, 1]."""
    kind = rng.random(n)
    return np.where(kind < 0.25, 0.0, np.where(kind < 0.33, 1.0, rng.beta(0.8, 1.1, n)))


POPULATIONS: dict[str, Population] = {
    "as in the paper": as_in_the_paper,
    "spread out": spread_out,
}


def leaked(n: int) -> Array:
    """The first half of the questions."""
    return np.arange(n) < n // 2


def inflated(rng: np.random.Generator, q: Values, kept: float) -> Values:
    """Leaked questions keep a fraction of the inflation on average, the others a twentieth."""
    mean = np.where(leaked(len(q)), kept, 0.05)
    return q + (1 - q) * rng.beta(4 * mean, 4 * (1 - mean))


def overdone(rng: np.random.Generator, q: Values) -> Values:
    """Leaked questions keep a sixth of the inflation, the others lose a quarter."""
    kept, lost = q + (1 - q) * rng.beta(1, 5, len(q)), q * (1 - rng.beta(1, 3, len(q)))
    return np.where(leaked(len(q)), kept, lost)


def solve_probabilities(rng: np.random.Generator, q: Values) -> dict[str, Values]:
    """Strategies by name; those of `EQUAL` pairs are equally good by construction."""
    contaminated = inflated(rng, q, 0.8)
    return {
        "contaminated": contaminated,
        "the same again": contaminated,
        "restored": q,
        "restored again": q,
        **{f"partial {k}": inflated(rng, q, 0.4) for k in range(7)},
        "overdone": overdone(rng, q),
        "overdone again": overdone(rng, q),
    }


EQUAL = {
    "same solve probabilities": ("contaminated", "the same again"),
    "both restored": ("restored", "restored again"),
    "partly restored, independently": ("partial 0", "partial 1"),
    "overdone, independently": ("overdone", "overdone again"),
}
DIFFERENT = {
    "partial − contaminated": ("partial 0", "contaminated"),
    "overdone − contaminated": ("overdone", "contaminated"),
    "overdone − partial": ("overdone", "partial 0"),
    "restored − partial": ("restored", "partial 0"),
}
SINGLE = ("contaminated", "partial 0", "overdone", "restored")
FAMILY = tuple(combinations([f"partial {k}" for k in range(7)], 2))


def plain_bootstrap(draws: Array, strata: Array, values: Values) -> Values:
    """Means over strata of the drawn questions, empty strata left out: (…, resamples)."""
    membership = np.eye(int(strata.max()) + 1)[strata]
    sizes = draws @ membership
    in_use = (sizes > 0).sum(axis=1, keepdims=True)
    weights = draws / (np.maximum(sizes, 1)[:, strata] * in_use)
    return np.asarray(values @ weights.T)


@dataclass
class Tally:
    """Estimates and interval ends of one quantity over the repetitions."""

    values: list[float] = field(default_factory=list)
    ends: list[tuple[float, float]] = field(default_factory=list)

    def add(self, value: float, resamples: Values) -> None:
        """Add a repetition."""
        self.values.append(value)
        self.ends.append(metrics.interval(resamples, value))

    def missed(self, target: float) -> float:
        """How often the interval does not contain the target."""
        ends = np.array(self.ends)
        return float(((target < ends[:, 0]) | (target > ends[:, 1])).mean())


@dataclass
class Study:
    """What the repetitions of one population and one number of questions gave."""

    equal: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in EQUAL})
    plain: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in EQUAL})
    different: dict[str, Tally] = field(
        default_factory=lambda: {name: Tally() for name in DIFFERENT}
    )
    single: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in SINGLE})
    family: list[bool] = field(default_factory=list)

    def add(self, gaps: dict[str, Values], strata: Array, draws: Array) -> None:
        """Add a repetition: |gap| of every strategy, (questions,), and the draws."""
        exact = metrics.stratum_weights(strata)
        points = {name: float(exact @ gap) for name, gap in gaps.items()}
        means = metrics.stratified_means(draws, strata, list(gaps.values()))
        resamples = dict(zip(gaps, means, strict=True))
        for name, (a, b) in EQUAL.items():
            self.equal[name].add(points[a] - points[b], resamples[a] - resamples[b])
        if len(self.family) % PLAIN_EVERY == 0:
            differences = np.array([gaps[a] - gaps[b] for a, b in EQUAL.values()])
            plain = plain_bootstrap(draws, strata, differences)
            for name, difference, spread in zip(EQUAL, differences @ exact, plain, strict=True):
                self.plain[name].add(float(difference), spread)
        for name, (a, b) in DIFFERENT.items():
            self.different[name].add(points[a] - points[b], resamples[a] - resamples[b])
        for name in SINGLE:
            self.single[name].add(points[name], resamples[name])
        pairs = np.array([resamples[a] - resamples[b] for a, b in FAMILY])
        low, high = metrics.simultaneous(pairs, [points[a] - points[b] for a, b in FAMILY])
        self.family.append(bool(((low > 0) | (high < 0)).any()))

    def rows(self) -> list[tuple[str, float, float | None]]:
        """Name, fraction of intervals that miss, and the same for the plain bootstrap."""
        rows: list[tuple[str, float, float | None]] = [
            (f"equal: {name}", tally.missed(0), self.plain[name].missed(0))
            for name, tally in self.equal.items()
        ]
        for title, tallies in (("different", self.different), ("SA-PPG", self.single)):
            for name, tally in tallies.items():
                mean = float(np.mean(tally.values))
                rows.append((f"{title}: {name}", tally.missed(mean), None))
        rows.append(("any of 21 equal pairs, simultaneous", float(np.mean(self.family)), None))
        return rows


def run(population: Population, n: int, repeats: int, seed: int = 0) -> Study:
    """Simulate `repeats` evaluations of `n` questions."""
    rng = np.random.default_rng([seed, n])
    study = Study()
    for repeat in range(repeats):
        if repeat % SHARED_DRAWS == 0:
            draws = metrics.question_weights(leaked(n), RESAMPLES, rng).astype(np.float64)
        q = population(rng, n)
        clean = rng.binomial(M, q)
        gaps = {
            name: np.abs(rng.binomial(M, p) - clean) / M
            for name, p in solve_probabilities(rng, q).items()
        }
        study.add(gaps, metrics.strata(clean, np.full(n, M), BINS), draws)
    return study


def table(studies: dict[str, dict[int, Study]]) -> str:
    """A Markdown table: one line per population and quantity, one column per N."""
    sizes = list(next(iter(studies.values())))
    header = ["clean model", "quantity", *(f"N = {n}" for n in sizes)]
    lines = [header, ["---"] * len(header)]
    for population, by_size in studies.items():
        columns = [by_size[n].rows() for n in sizes]
        for cells in zip(*columns, strict=True):
            shown = [
                f"{missed:.1%}" + ("" if plain is None else f" ({plain:.1%})")
                for _, missed, plain in cells
            ]
            lines.append([population, cells[0][0], *shown])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main() -> None:
    """Run the study and write its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/metric-study/intervals.md"))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="number of repeats, as a fraction of the study's"
    )
    args = parser.parse_args()
    studies = {
        name: {n: run(population, n, round(repeats * args.scale)) for n, repeats in REPEATS.items()}
        for name, population in POPULATIONS.items()
    }
    text = table(studies)
    args.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
