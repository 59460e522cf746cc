"""Bias, coverage and power of SA-PPG as functions of the number of samples and questions.

python benchmarks/metric_study.py --output metric-study

Responses are simulated for questions with known solve probabilities. The study measures the bias of
the definition and of the corrected value, how often bootstrap intervals contain the truth, and the
smallest difference that paired intervals detect with 80 % power. It writes a figure and tables,
which docs/metric.md discusses. It takes about four minutes on one core.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from zerogap import metrics
from zerogap.metrics.gaps import Array, Values
from zerogap.reporting.figures.style import save, styled

SAMPLES = (5, 10, 20, 50, 100, 200, 500)
QUESTIONS = 1319
STUDIED_QUESTIONS = (100, 300, QUESTIONS)
POPULATION = 400_000  # questions of the population that others are drawn from
BINS = 50
RESAMPLES = 300
METRICS = ("definition", "corrected")

Setting = Callable[[np.random.Generator, int], tuple[Values, Values]]
Counts = tuple[Array, Array, Array, Array]  # as the metrics take them


def clean(rng: np.random.Generator, n: int) -> Values:
    """A quarter of the questions never solved, 8 % always, the rest spread over [0, 1]."""
    kind = rng.random(n)
    return np.where(kind < 0.25, 0.0, np.where(kind < 0.33, 1.0, rng.beta(0.8, 1.1, n)))


def leaked(n: int) -> Array:
    """The first half of the questions."""
    return np.arange(n) < n // 2


def restored(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Every question restored exactly."""
    q = clean(rng, n)
    return q, q


def small_noise(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Every question off by a small random gap."""
    q = clean(rng, n)
    return np.clip(q + rng.normal(0, 0.05, n), 0, 1), q


def partly(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Leaked questions keep a fifth of the inflation on average, the others lose a ninth."""
    q = clean(rng, n)
    kept, lost = q + (1 - q) * rng.beta(1, 4, n), q * (1 - rng.beta(1, 8, n))
    return np.where(leaked(n), kept, lost), q


def half_solved(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Leaked questions always solved, the others restored."""
    q = clean(rng, n)
    return np.where(leaked(n), 1.0, q), q


def all_zero(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Nothing solved."""
    q = clean(rng, n)
    return np.zeros(n), q


def uniform_restored(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Every question restored, and the clean model uniform on [0, 1]."""
    q = rng.random(n)
    return q, q


def bent(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Gaps that are a smooth function of q, positive if leaked; few questions in the middle.

    No constant of the correction was chosen on this setting or on the uniform one.
    """
    q = rng.beta(0.4, 0.4, n)
    return np.where(leaked(n), np.sqrt(q), q**1.3), q


SETTINGS: dict[str, Setting] = {
    "restored exactly (p = q)": restored,
    "restored, clean uniform": uniform_restored,
    "small noise (sd 0.05)": small_noise,
    "partly restored": partly,
    "leaked half always solved": half_solved,
    "All-Zero": all_zero,
    "bent curve": bent,
}


def draw(rng: np.random.Generator, p: Values, q: Values, m: int) -> Counts:
    """Counts of m responses per question of the strategy (p) and of the clean model (q)."""
    samples = np.full(len(p), m)
    return rng.binomial(m, p), samples, rng.binomial(m, q), samples


def true_sa_ppg(p: Values, q: Values) -> float:
    """SA-PPG of the probabilities themselves."""
    stratum = np.minimum(BINS - 1, (q * BINS).astype(int))
    return float(metrics.stratum_weights(stratum) @ np.abs(p - q))


def measure_bias(
    repeats: int, samples: Sequence[int] = SAMPLES, questions: int = QUESTIONS
) -> pd.DataFrame:
    """Mean error of the definition and of the corrected value for the drawn questions.

    Returns:
        Columns setting, questions, m, truth, metric (definition or corrected), bias and sd.
    """
    rows = []
    for number, (name, setting) in enumerate(SETTINGS.items()):
        for m in samples:
            errors, truths = [], []
            for repeat in range(repeats):
                rng = np.random.default_rng([1, number, m, repeat])
                p, q = setting(rng, questions)
                data, truth = draw(rng, p, q, m), true_sa_ppg(p, q)
                truths.append(truth)
                values = metrics.sa_ppg(*data, bins=BINS), metrics.sa_ppg_corrected(*data, BINS)
                errors.append(np.array(values) - truth)
            rows += [
                (name, questions, m, np.mean(truths), metric, bias, sd)
                for metric, bias, sd in zip(
                    METRICS, np.mean(errors, axis=0), np.std(errors, axis=0), strict=True
                )
            ]
    columns = ["setting", "questions", "m", "truth", "metric", "bias", "sd"]
    return pd.DataFrame(rows, columns=columns)


def resampled_sa_ppg(
    data: Sequence[Counts], rng: np.random.Generator, n_resamples: int, bins: int = BINS
) -> list[Values]:
    """SA-PPG of strategies with the same clean batch, in bootstrap resamples over questions."""
    weights = metrics.question_weights(leaked(len(data[0][0])), n_resamples, rng)
    gaps = [np.abs(metrics.ppg(*counts)) for counts in data]
    return list(metrics.stratified_means(weights, metrics.strata(*data[0][2:], bins), gaps))


def measure_coverage(repeats: int, n_resamples: int) -> pd.DataFrame:
    """How often a 95 % interval contains a value.

    Returns:
        One row per setting and m: the true SA-PPG of the population, the mean value and mean width,
        and the fractions of intervals that contain the mean value at this m, that contain the
        truth, and that contain the truth after they were shifted by the correction.
    """
    names = ("restored exactly (p = q)", "partly restored", "leaked half always solved")
    rows = []
    for number, name in enumerate(names):
        truth = true_sa_ppg(*SETTINGS[name](np.random.default_rng([2, number]), POPULATION))
        for m in (10, 50, 200):
            values, corrected, intervals = [], [], []
            for repeat in range(repeats):
                rng = np.random.default_rng([3, number, m, repeat])
                data = draw(rng, *SETTINGS[name](rng, QUESTIONS), m)
                values.append(metrics.sa_ppg(*data, bins=BINS))
                corrected.append(metrics.sa_ppg_corrected(*data, bins=BINS))
                resamples = resampled_sa_ppg([data], rng, n_resamples)[0]
                intervals.append(metrics.interval(resamples, values[-1]))
            ends = np.array(intervals)
            shifted = ends + (np.array(corrected) - values)[:, None]
            mean = float(np.mean(values))
            covered = [_coverage(*pair) for pair in ((ends, mean), (ends, truth), (shifted, truth))]
            rows.append((name, m, truth, mean, np.mean(ends[:, 1] - ends[:, 0]), *covered))
    return pd.DataFrame(
        rows,
        columns=["setting", "m", "truth", "mean", "width", "of_mean", "of_truth", "shifted"],
    )


def _coverage(intervals: Values, value: float) -> float:
    return float(((intervals[:, 0] <= value) & (value <= intervals[:, 1])).mean())


def draw_strategies(
    rng: np.random.Generator, n: int, fraction: float, increments: Values
) -> tuple[Values, list[Values]]:
    """Clean probabilities, and a strategy that keeps a fraction of the inflation, then worse ones.

    How much a leaked question keeps varies independently by question and strategy: the strategies
    have nothing in common but the questions.
    """
    q = clean(rng, n)

    def with_inflation(kept: float) -> Values:
        mean = np.where(leaked(n), kept, 0.05)
        return q + (1 - q) * rng.beta(4 * mean, 4 * (1 - mean))

    worse = [with_inflation(fraction + increment) for increment in increments]
    return q, worse


def measure_power(repeats: int, n_resamples: int) -> pd.DataFrame:
    """The smallest true difference whose paired 95 % interval excludes 0 in 80 % of runs."""
    increments = np.array([0, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.19, 0.27, 0.38])
    q, probabilities = draw_strategies(np.random.default_rng(4), POPULATION, 0.4, increments)
    truths = [true_sa_ppg(p, q) for p in probabilities]
    differences = np.array(truths[1:]) - truths[0]
    rows = []
    for n in STUDIED_QUESTIONS:
        for m in (10, 20, 50, 100):
            n_detected = np.zeros(len(differences))
            for repeat in range(repeats):
                rng = np.random.default_rng([5, n, m, repeat])
                q, probabilities = draw_strategies(rng, n, 0.4, increments)
                samples, batch = np.full(n, m), rng.binomial(m, q)
                data = [(rng.binomial(m, p), samples, batch, samples) for p in probabilities]
                first, *others = resampled_sa_ppg(data, rng, n_resamples)
                value, *values = (metrics.sa_ppg(*counts, bins=BINS) for counts in data)
                n_detected += [
                    metrics.interval(other - first, other_value - value)[0] > 0
                    for other, other_value in zip(others, values, strict=True)
                ]
            rows.append((n, m, _smallest_difference(differences, n_detected / repeats)))
    return pd.DataFrame(rows, columns=["n", "m", "difference"])


def _smallest_difference(differences: Values, powers: Values, target: float = 0.8) -> float:
    """The difference at which the power reaches the target, interpolated; NaN if none does."""
    # Simulated power is not quite monotone; its running maximum is.
    increasing = np.maximum.accumulate(np.concatenate([[0.025], powers]))
    if increasing[-1] < target:
        return float("nan")
    after = int(np.argmax(increasing >= target))
    x = np.concatenate([[0.0], differences])
    step = (target - increasing[after - 1]) / (increasing[after] - increasing[after - 1])
    return float(x[after - 1] + step * (x[after] - x[after - 1]))


def draw_figure(rows: pd.DataFrame, prefix: Path) -> None:
    """Plot the bias of both metrics against m, one line per setting."""
    with styled():
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
        titles = {"definition": "definition (paper)", "corrected": "corrected"}
        for axis, (metric, title) in zip(axes, titles.items(), strict=True):
            for marker, name in zip("osD^vPX", SETTINGS, strict=True):
                part = rows[(rows["setting"] == name) & (rows["metric"] == metric)]
                m, bias, sd = part["m"], part["bias"], part["sd"]
                axis.plot(m, bias, marker=marker, markersize=4, linewidth=1.2, label=name)
                axis.fill_between(m, bias - sd, bias + sd, alpha=0.15, linewidth=0)
            axis.axhline(0, color="black", linewidth=0.6)
            axis.set_xscale("log")
            axis.set_xticks(SAMPLES, [str(m) for m in SAMPLES])
            axis.minorticks_off()
            axis.set(title=title, xlabel="samples per question m")
        axes[0].set_ylabel("estimated − true SA-PPG")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)
        save(figure, prefix)
    prefix.with_suffix(".pdf").unlink()  # the docs show the PNG and link to the SVG


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def bias_table(rows: pd.DataFrame) -> str:
    """One line per setting and metric: mean error (standard deviation) for each N and m."""
    columns = rows[["questions", "m"]].drop_duplicates().itertuples(index=False)
    several = rows["questions"].nunique() > 1
    titles = [f"N = {n}, m = {m}" if several else f"m = {m}" for n, m in columns]
    lines = []
    for (setting, metric), part in rows.groupby(["setting", "metric"], sort=False):
        cells = [f"{row.bias:+.3f} ({row.sd:.3f})" for row in part.itertuples()]
        lines.append([setting, f"{part['truth'].iloc[-1]:.3f}", metric, *cells])
    return markdown(["setting", "true SA-PPG", "estimate", *titles], lines)


def coverage_table(rows: pd.DataFrame) -> str:
    """Coverage of the intervals."""
    header = [
        *("setting", "m", "true SA-PPG", "mean value", "mean width of the interval"),
        *("contains the mean value", "contains the truth", "shifted by the correction"),
    ]
    lines = [
        [
            *(row.setting, str(row.m), f"{row.truth:.3f}", f"{row.mean:.3f}", f"{row.width:.3f}"),
            *(f"{row.of_mean:.0%}", f"{row.of_truth:.0%}", f"{row.shifted:.0%}"),
        ]
        for row in rows.itertuples()
    ]
    return markdown(header, lines)


def power_table(rows: pd.DataFrame) -> str:
    """Smallest detectable differences, one line per N, one column per m."""
    table = rows.pivot(index="n", columns="m", values="difference")
    lines = [[str(n), *(f"{value:.3f}" for value in row)] for n, row in table.iterrows()]
    return markdown(["questions N", *(f"m = {m}" for m in table)], lines)


def main() -> None:
    """Run the study and write its tables and figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("metric-study"))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="number of repeats, as a fraction of the study's"
    )
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)

    def scaled(repeats: int) -> int:
        return max(2, round(repeats * args.scale))

    bias = measure_bias(scaled(12))
    draw_figure(bias, args.output / "bias")
    few = [measure_bias(scaled(40), (10, 50), n) for n in STUDIED_QUESTIONS[:-1]]
    few.append(bias[bias["m"].isin((10, 50))])
    texts: Mapping[str, str] = {
        "bias": bias_table(bias),
        "few-questions": bias_table(pd.concat(few)),
        "coverage": coverage_table(measure_coverage(scaled(100), RESAMPLES)),
        "power": power_table(measure_power(scaled(200), RESAMPLES)),
    }
    for name, text in texts.items():
        (args.output / f"{name}.md").write_text(text)
        print(f"{name}\n\n{text}")


if __name__ == "__main__":
    main()
