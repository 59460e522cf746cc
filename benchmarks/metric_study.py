"""How far SA-PPG from m samples is from the truth, and what it takes to tell strategies apart.

python benchmarks/metric_study.py --output docs/metric-study

Questions with known solve probabilities, responses drawn from them: the bias of the definition and
of the corrected reading, the coverage of the bootstrap intervals, the smallest difference that
paired intervals find with 80 % power, and how often intervals tell equal strategies apart. Writes
figure and tables; what they say is discussed in docs/metric-study.md. Needs numpy and matplotlib;
some four minutes on one core.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))

from zerogap import metrics  # noqa: E402
from zerogap.metrics.gaps import Values  # noqa: E402

SAMPLES = (5, 10, 20, 50, 100, 200, 500)
QUESTIONS = 1319
BINS = 50

Setting = Callable[[np.random.Generator, int], tuple[Values, Values]]
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def clean(rng: np.random.Generator, n: int) -> Values:
    """A quarter of the questions never solved, 8 % always, the rest spread over [0, 1]."""
    kind = rng.random(n)
    return np.where(kind < 0.25, 0.0, np.where(kind < 0.33, 1.0, rng.beta(0.8, 1.1, n)))


def leaked(n: int) -> np.ndarray:
    return np.arange(n) < n // 2


def restored(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    q = clean(rng, n)
    return q, q


def small_noise(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    q = clean(rng, n)
    return np.clip(q + rng.normal(0, 0.05, n), 0, 1), q


def partly(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Leaked questions keep a fifth of the inflation on average, the others lose a ninth."""
    q = clean(rng, n)
    kept, lost = q + (1 - q) * rng.beta(1, 4, n), q * (1 - rng.beta(1, 8, n))
    return np.where(leaked(n), kept, lost), q


def half_solved(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    q = clean(rng, n)
    return np.where(leaked(n), 1.0, q), q


def all_zero(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    q = clean(rng, n)
    return np.zeros(n), q


def uniform_restored(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    q = rng.random(n)
    return q, q


def bent(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Every gap a smooth function of q, up where leaked and down elsewhere; few questions between.

    With the uniform one, a setting that no constant of the correction was chosen on.
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


def draw(rng: np.random.Generator, p: Values, q: Values, m: int) -> Data:
    samples = np.full(len(p), m)
    return rng.binomial(m, p), samples, rng.binomial(m, q), samples


def truth(p: Values, q: Values) -> float:
    """SA-PPG of the probabilities themselves."""
    stratum = np.minimum(BINS - 1, (q * BINS).astype(int))
    return float(metrics.stratum_weights(stratum) @ np.abs(p - q))


def biases(
    repeats: int, tried: tuple[int, ...] = SAMPLES, questions: int = QUESTIONS
) -> list[dict]:
    """Mean error of both readings against the truth of the drawn questions."""
    rows = []
    for number, (name, setting) in enumerate(SETTINGS.items()):
        for m in tried:
            errors, truths = [], []
            for repeat in range(repeats):
                rng = np.random.default_rng([1, number, m, repeat])
                p, q = setting(rng, questions)
                data, true = draw(rng, p, q, m), truth(p, q)
                truths.append(true)
                errors.append(
                    (
                        metrics.sa_ppg(*data, bins=BINS) - true,
                        metrics.sa_ppg_corrected(*data, bins=BINS) - true,
                    )
                )
            rows.append(
                {
                    "setting": name,
                    "m": m,
                    "truth": np.mean(truths),
                    "bias": np.mean(errors, axis=0),
                    "sd": np.std(errors, axis=0),
                }
            )
    return rows


def replicates(
    data: list[Data], rng: np.random.Generator, number: int, bins: int = BINS
) -> list[Values]:
    """Bootstrap replicates of SA-PPG of strategies with one clean batch, over questions."""
    weights = metrics.question_weights(leaked(len(data[0][0])), number, rng)
    weights = metrics.stratified_weights(weights, metrics.strata(*data[0][2:], bins))
    return [metrics.weighted_means(weights, np.abs(metrics.ppg(*one))) for one in data]


def coverage(repeats: int, number: int) -> list[dict]:
    """How often a 95 % interval holds what it is asked for.

    ``expected``: the mean reading at this m over other questions and responses; ``truth``: SA-PPG
    of the population's probabilities; ``moved``: the truth again, by the interval moved by the
    correction.
    """
    rows = []
    for which, name in enumerate(
        ("restored exactly (p = q)", "partly restored", "leaked half always solved")
    ):
        population = truth(*SETTINGS[name](np.random.default_rng([2, which]), 400_000))
        for m in (10, 50, 200):
            readings, corrected, intervals = [], [], []
            for repeat in range(repeats):
                rng = np.random.default_rng([3, which, m, repeat])
                data = draw(rng, *SETTINGS[name](rng, QUESTIONS), m)
                readings.append(metrics.sa_ppg(*data, bins=BINS))
                corrected.append(metrics.sa_ppg_corrected(*data, bins=BINS))
                intervals.append(metrics.interval(replicates([data], rng, number)[0]))
            ends = np.array(intervals)
            moved = ends + (np.array(corrected) - readings)[:, None]
            rows.append(
                {
                    "setting": name,
                    "m": m,
                    "truth": population,
                    "reading": np.mean(readings),
                    "width": np.mean(ends[:, 1] - ends[:, 0]),
                    "expected": _holds(ends, float(np.mean(readings))),
                    "covers truth": _holds(ends, population),
                    "moved": _holds(moved, population),
                }
            )
    return rows


def _holds(intervals: np.ndarray, value: float) -> float:
    return float(((intervals[:, 0] <= value) & (value <= intervals[:, 1])).mean())


def two_strategies(
    rng: np.random.Generator, n: int, share: float, more: Values
) -> tuple[Values, list[Values]]:
    """Clean probabilities, and a strategy that keeps `share` of the inflation, then worse ones.

    What is kept of a leaked question's inflation varies by question and strategy, independently:
    the strategies agree on what a question is and on nothing else.
    """
    q = clean(rng, n)

    def kept(of: float) -> Values:
        mean = np.where(leaked(n), of, 0.05)
        return q + (1 - q) * rng.beta(4 * mean, 4 * (1 - mean))

    return q, [kept(share), *(kept(share + one) for one in more)]


def power(repeats: int, number: int) -> list[dict]:
    """The smallest true difference whose paired 95 % interval leaves out 0 in 80 % of runs."""
    more = np.array([0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.19, 0.27, 0.38])
    q, probabilities = two_strategies(np.random.default_rng(4), 400_000, 0.4, more)
    true = [truth(p, q) for p in probabilities]
    differences = np.array(true[1:]) - true[0]
    rows = []
    for n in (100, 300, 1319):
        for m in (10, 20, 50, 100):
            found = np.zeros(len(more))
            for repeat in range(repeats):
                rng = np.random.default_rng([5, n, m, repeat])
                q, probabilities = two_strategies(rng, n, 0.4, more)
                samples, batch = np.full(n, m), rng.binomial(m, q)
                data = [(rng.binomial(m, p), samples, batch, samples) for p in probabilities]
                first, *others = replicates(data, rng, number)
                found += [metrics.interval(other - first)[0] > 0 for other in others]
            rows.append({"n": n, "m": m, "difference": _reaches(differences, found / repeats)})
    return rows


def equals(repeats: int, number: int, strategies: int = 7) -> list[dict]:
    """How often 95 % intervals tell strategies apart that are equally good, m = 50.

    ``pair``: a single pair's interval leaves out 0; ``alone``: that of at least one of all pairs;
    ``together``: the same, by the intervals that hold together (max-T).
    """
    a, b = np.triu_indices(strategies, k=1)
    rows = []
    for n in (100, 300, 1319):
        for bins in (50, 10):
            found = []
            for repeat in range(repeats):
                rng = np.random.default_rng([6, n, bins, repeat])
                q, probabilities = two_strategies(rng, n, 0.4, np.zeros(strategies - 1))
                samples, batch = np.full(n, 50), rng.binomial(50, q)
                data = [(rng.binomial(50, p), samples, batch, samples) for p in probabilities]
                read = np.array([metrics.sa_ppg(*one, bins=bins) for one in data])
                spread = np.array(replicates(data, rng, number, bins))
                pairs, differences = spread[a] - spread[b], read[a] - read[b]
                low, high = np.quantile(pairs, [0.025, 0.975], axis=1)
                apart = (low > 0) | (high < 0)
                low, high = metrics.simultaneous(pairs, differences)
                found.append((apart.mean(), apart.any(), ((low > 0) | (high < 0)).any()))
            shares = np.mean(found, axis=0)
            named = dict(zip(("pair", "alone", "together"), shares, strict=True))
            rows.append({"n": n, "bins": bins, **named})
    return rows


def _reaches(differences: Values, shares: Values, wanted: float = 0.8) -> float:
    """The difference at which the power passes `wanted`, interpolated; NaN beyond the largest."""
    # Simulated power is not monotone by a hair; its running maximum is.
    rising = np.maximum.accumulate(np.concatenate([[0.025], shares]))
    if rising[-1] < wanted:
        return float("nan")
    last = int(np.argmax(rising >= wanted))
    x = np.concatenate([[0.0], differences])
    step = (wanted - rising[last - 1]) / (rising[last] - rising[last - 1])
    return float(x[last - 1] + step * (x[last] - x[last - 1]))


def draw_figure(rows: list[dict], prefix: Path) -> None:
    import matplotlib.pyplot as plt

    from zerogap.reporting.figures import style

    with plt.rc_context(style.STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
        for which, (axis, title) in enumerate(
            zip(axes, ("definition (paper)", "corrected"), strict=True)
        ):
            for k, name in enumerate(SETTINGS):
                part = [row for row in rows if row["setting"] == name]
                m = [row["m"] for row in part]
                bias = np.array([row["bias"][which] for row in part])
                sd = np.array([row["sd"][which] for row in part])
                axis.plot(m, bias, marker="osD^vPX"[k], markersize=4, linewidth=1.2, label=name)
                axis.fill_between(m, bias - sd, bias + sd, alpha=0.15, linewidth=0)
            axis.axhline(0, color="black", linewidth=0.6)
            axis.set_xscale("log")
            axis.set_xticks(SAMPLES, [str(m) for m in SAMPLES])
            axis.minorticks_off()
            axis.set(title=title, xlabel="samples a question m")
        axes[0].set_ylabel("SA-PPG read − true SA-PPG")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)
        style.save(figure, prefix)
    prefix.with_suffix(".pdf").unlink()  # the docs show the PNG and link the SVG


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _errors(rows: dict[int, list[dict]]) -> list[list[str]]:
    """A line a setting and reading: mean error and its standard deviation at each N and m."""
    lines = []
    for name in SETTINGS:
        part = [row for of_size in rows.values() for row in of_size if row["setting"] == name]
        for which, reading in enumerate(("definition", "corrected")):
            cells = [f"{row['bias'][which]:+.3f} ({row['sd'][which]:.3f})" for row in part]
            lines.append([name, f"{part[-1]['truth']:.3f}", reading, *cells])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/metric-study"))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="repeats, as a share of the study's"
    )
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)

    def times(repeats: int) -> int:
        return max(2, round(repeats * args.scale))

    rows = biases(times(12))
    draw_figure(rows, args.output / "bias")
    few = {n: biases(times(40), (10, 50), n) for n in (100, 300)}
    few[QUESTIONS] = [row for row in rows if row["m"] in (10, 50)]
    texts = {
        "bias": table(
            ["setting", "true SA-PPG", "reading", *(f"m = {m}" for m in SAMPLES)],
            _errors({QUESTIONS: rows}),
        ),
        "few-questions": table(
            ["setting", "true SA-PPG", "reading",
             *(f"N = {n}, m = {m}" for n in few for m in (10, 50))],
            _errors(few),
        ),
        "coverage": table(
            ["setting", "m", "true SA-PPG", "mean reading", "mean width of the interval",
             "holds the mean reading", "holds the truth", "moved by the correction, holds it"],
            [
                [row["setting"], str(row["m"]), f"{row['truth']:.3f}", f"{row['reading']:.3f}",
                 f"{row['width']:.3f}", f"{row['expected']:.0%}", f"{row['covers truth']:.0%}",
                 f"{row['moved']:.0%}"]
                for row in coverage(times(100), 300)
            ],
        ),
    }  # fmt: skip
    found = power(times(200), 300)
    samples = sorted({row["m"] for row in found})
    texts["power"] = table(
        ["questions N", *(f"m = {m}" for m in samples)],
        [
            [str(n), *(f"{row['difference']:.3f}" for row in found if row["n"] == n)]
            for n in sorted({row["n"] for row in found})
        ],
    )
    texts["equals"] = table(
        ["questions N", "strata B", "a pair's interval", "any of 21 pairs'", "any of 21, together"],
        [
            [str(row["n"]), str(row["bins"]), f"{row['pair']:.0%}", f"{row['alone']:.0%}",
             f"{row['together']:.0%}"]
            for row in equals(times(200), 300)
        ],
    )  # fmt: skip
    for name, text in texts.items():
        (args.output / f"{name}.md").write_text(text)
        print(f"{name}\n\n{text}")


if __name__ == "__main__":
    main()
