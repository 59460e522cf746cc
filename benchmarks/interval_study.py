"""Do the bootstrap intervals of the metrics cover what they should?

python benchmarks/interval_study.py --output metric-study

Questions, solve probabilities and responses are simulated at the paper's m = B = 50, and at the
quick scale. Each repetition draws new questions and new responses, as another evaluation of the
same kind would. For SA-PPG (intervals.md) and the paper's other metrics
(secondary-intervals.md) the study measures

- how often the paired 95 % interval of two strategies that are equally good excludes 0;
- how often the paired interval of two different strategies contains their mean difference;
- how often the interval of a strategy's value contains its mean at this N and m;

and for SA-PPG also how often simultaneous intervals of 21 equal pairs exclude 0 anywhere, and, in
every tenth repetition, the first for the plain bootstrap, which draws questions with replacement
and leaves out strata that are empty in a resample. It takes about 15 minutes on one core.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from metric_study import Draw, inflated, leaked, options, publish, spread

from zerogap import metrics
from zerogap.metrics.comparison import Comparison, SolveCounts
from zerogap.metrics.definitions import METRICS
from zerogap.metrics.gaps import Array, Values
from zerogap.reporting.claims import DAMAGE_METRICS, DAMAGE_WIDENING

RESAMPLES = 1000
PLAIN_EVERY = 10  # repetitions
SHARED_DRAWS = 25  # repetitions that share their draws, which do not depend on the data
HEADLINE = "sa_ppg"
SECONDARY = [metric for metric in METRICS.values() if metric.in_paper and metric.name != HEADLINE]


class Scale(NamedTuple):
    """Questions, responses per question (as many as strata), and simulated evaluations."""

    num_questions: int
    num_samples: int
    repeats: int


SCALES = {
    "N = 100": Scale(100, 50, 6000),
    "N = 440": Scale(440, 50, 4000),
    "N = 1319": Scale(1319, 50, 3000),
    "N = 80, m = B = 30": Scale(80, 30, 6000),
}


def as_in_the_paper(rng: np.random.Generator, n: int) -> Values:
    """Mean .22, a quarter without a correct response among 50 (paper: .219, nearly a quarter)."""
    return rng.beta(0.35, 1.24, n)


def weak(rng: np.random.Generator, n: int) -> Values:
    """Mean .10, .15 without a correct response among 50, as in earlier runs of SmolLM2-135M."""
    return rng.beta(1, 9, n)


POPULATIONS: dict[str, Draw] = {
    "as in the paper": as_in_the_paper,
    "spread out": spread,
    "weak": weak,
}


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
KINDS = {"equal": "equal pairs", "different": "different pairs", "single": "own value"}
DAMAGE_KINDS = KINDS | {"wider": "different pairs, a third wider"}
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

    def missed(self, target: float, widening: float = 1) -> float:
        """How often the interval, so many times as wide, does not contain the target."""
        values = np.array(self.values)
        low, high = values + widening * (np.array(self.ends).T - values)
        return float(((target < low) | (target > high)).mean())

    def missed_mean(self, widening: float = 1) -> float:
        """How often the interval does not contain the mean estimate."""
        return self.missed(float(np.mean(self.values)), widening)


class Missed(NamedTuple):
    """How often the intervals of one metric miss, by pair or strategy.

    `wider` is that of the different pairs with intervals that the claims use for damage.
    """

    equal: dict[str, float]
    different: dict[str, float]
    single: dict[str, float]
    wider: dict[str, float]


@dataclass
class Study:
    """What the repetitions of one population at one scale gave; tallies by metric and name."""

    tallies: defaultdict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    plain: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in EQUAL})
    family: list[bool] = field(default_factory=list)

    def add(
        self, strategies: dict[str, SolveCounts], clean: SolveCounts, bins: int, draws: Values
    ) -> None:
        """Add a repetition: counts of the models, and how often resamples draw each question."""
        observed = {name: Comparison(counts, clean, bins) for name, counts in strategies.items()}
        resampled = Comparison(
            SolveCounts.stack([counts[None] for counts in strategies.values()]),
            clean[None],
            bins,
            draws,
        )
        for metric in (METRICS[HEADLINE], *SECONDARY):
            points = {name: float(metric.definition(one)) for name, one in observed.items()}
            resamples = dict(zip(strategies, metric.definition(resampled), strict=True))
            for name, (a, b) in (EQUAL | DIFFERENT).items():
                difference = resamples[a] - resamples[b]
                self.tallies[metric.name, name].add(points[a] - points[b], difference)
            for name in SINGLE:
                self.tallies[metric.name, name].add(points[name], resamples[name])
            if metric.name == HEADLINE:
                self._add_family(points, resamples)
        if len(self.family) % PLAIN_EVERY == 0:
            self._add_plain(observed, draws)

    def _add_family(self, points: dict[str, float], resamples: dict[str, Values]) -> None:
        pairs = np.array([resamples[a] - resamples[b] for a, b in FAMILY])
        low, high = metrics.simultaneous(pairs, [points[a] - points[b] for a, b in FAMILY])
        self.family.append(bool(((low > 0) | (high < 0)).any()))

    def _add_plain(self, observed: dict[str, Comparison], draws: Values) -> None:
        for name, (a, b) in EQUAL.items():
            strata = observed[a].strata
            difference = np.abs(observed[a].gap) - np.abs(observed[b].gap)
            value = float(metrics.stratum_weights(strata) @ difference)
            self.plain[name].add(value, plain_bootstrap(draws, strata, difference))

    def missed(self, metric: str) -> Missed:
        """How often the intervals of a metric miss."""
        return Missed(
            {name: self.tallies[metric, name].missed(0) for name in EQUAL},
            {name: self.tallies[metric, name].missed_mean() for name in DIFFERENT},
            {name: self.tallies[metric, name].missed_mean() for name in SINGLE},
            {name: self.tallies[metric, name].missed_mean(DAMAGE_WIDENING) for name in DIFFERENT},
        )


def run(population: Draw, scale: Scale, repeats: int, seed: int = 0) -> Study:
    """Simulate `repeats` evaluations."""
    n, m, _ = scale
    rng = np.random.default_rng([seed, n])
    study = Study()
    for repeat in range(repeats):
        if repeat % SHARED_DRAWS == 0:
            draws = metrics.question_weights(leaked(n), RESAMPLES, rng).astype(np.float64)
        q = population(rng, n)
        clean = responses(rng, q, m)
        strategies = {name: responses(rng, p, m) for name, p in solve_probabilities(rng, q).items()}
        study.add(strategies, clean, m, draws)
    return study


def responses(rng: np.random.Generator, probabilities: Values, num_samples: int) -> SolveCounts:
    """Simulated counts; the first response is one of the samples."""
    n_correct = rng.binomial(num_samples, probabilities)
    first_correct = rng.random(len(n_correct)) * num_samples < n_correct
    return SolveCounts(n_correct, np.full_like(n_correct, num_samples), first_correct)


def headline_table(studies: dict[str, dict[str, Study]]) -> pd.DataFrame:
    """One line per population and quantity, one column per scale."""
    lines = []
    for population, by_scale in studies.items():
        missed = [study.missed(HEADLINE) for study in by_scale.values()]
        for name in EQUAL:
            plain = [study.plain[name].missed(0) for study in by_scale.values()]
            cells = [
                f"{one.equal[name]:.1%} ({other:.1%})"
                for one, other in zip(missed, plain, strict=True)
            ]
            lines.append([population, f"equal: {name}", *cells])
        for name in DIFFERENT:
            cells = [f"{one.different[name]:.1%}" for one in missed]
            lines.append([population, f"different: {name}", *cells])
        for name in SINGLE:
            lines.append(
                [population, f"SA-PPG: {name}", *(f"{one.single[name]:.1%}" for one in missed)]
            )
        cells = [f"{np.mean(study.family):.1%}" for study in by_scale.values()]
        lines.append([population, "any of 21 equal pairs, simultaneous", *cells])
    return pd.DataFrame(lines, columns=["clean model", "quantity", *SCALES])


def secondary_table(studies: dict[str, dict[str, Study]]) -> pd.DataFrame:
    """The smallest and the largest percentage per population, metric and kind."""
    lines = []
    for population, by_scale in studies.items():
        for metric in SECONDARY:
            missed = [study.missed(metric.name) for study in by_scale.values()]
            kinds = DAMAGE_KINDS if metric.name in DAMAGE_METRICS else KINDS
            for kind, label in kinds.items():
                cells = [span(getattr(one, kind).values()) for one in missed]
                lines.append([population, f"{metric.label}, {label}", *cells])
    return pd.DataFrame(lines, columns=["clean model", "quantity", *SCALES])


def span(shares: Iterable[float]) -> str:
    """The smallest and the largest percentage."""
    shares = list(shares)
    return f"{100 * min(shares):.1f}–{max(shares):.1%}"


def main() -> None:
    """Run the study and write its tables."""
    args = options(__doc__)
    studies = {
        population: {
            name: run(draw, scale, round(scale.repeats * args.scale))
            for name, scale in SCALES.items()
        }
        for population, draw in POPULATIONS.items()
    }
    publish(args.output, "intervals", headline_table(studies))
    publish(args.output, "secondary-intervals", secondary_table(studies))


if __name__ == "__main__":
    main()
