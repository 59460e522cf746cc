"""The paper's figures and some more, with matplotlib: PDF, PNG and SVG of the same bytes each time.

Colours are Okabe and Ito's, told apart by the colour-blind. Clouds of dots are rasterised inside
the PDF and the SVG, which otherwise hold one object a sampled response.
"""

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402 (after the backend is chosen)
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from zerogap.errors import InputError  # noqa: E402
from zerogap.io import parquet  # noqa: E402
from zerogap.metrics import gaps  # noqa: E402
from zerogap.reporting.tables import METRICS  # noqa: E402

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, YELLOW, AMBER, GREY = "#56B4E9", "#F0E442", "#E69F00", "#7f7f7f"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, "#000000", GREY]

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.prop_cycle": matplotlib.cycler(color=CYCLE),
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "svg.hashsalt": "zerogap",
    "pdf.fonttype": 42,
}
# Dates and versions would make two equal figures differ.
_METADATA = {
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}

# The classes of ranks in Figure 1: label, first and last rank, colour.
RANKS = (
    ("rank 2", 2, 2, BLUE),
    ("rank 3", 3, 3, SKY),
    ("ranks 4–10", 4, 10, AMBER),
    ("beyond 10", 11, np.inf, "#b8b8b8"),
)


def mechanism(
    overlap: pd.DataFrame, ranks: pd.DataFrame, title: str = "", steps: int = 10
) -> Figure:
    """Figure 1: overlap with the greedy trajectory, and the rank of the clean model's token.

    Args:
        overlap: `overlap` table of the contaminated model.
        ranks: `ranks` table of the same model on the clean model's greedy prefix.
        title: the setting, over the panels.
        steps: decoding steps shown in (b) and (d).
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(7.2, 4.9), width_ratios=(1, 1))
        for row, (leaked, name) in enumerate(((True, "leaked"), (False, "unleaked"))):
            letters = "ac"[row], "bd"[row]
            _overlap_panel(axes[row, 0], overlap[overlap["leaked"] == leaked])
            axes[row, 0].set_title(f"({letters[0]}) {name}: overlap with the greedy trajectory")
            chosen = ranks[(ranks["leaked"] == leaked) & (ranks["step"] <= steps)]
            _rank_panel(axes[row, 1], chosen, steps)
            axes[row, 1].set_title(f"({letters[1]}) {name}: rank of the clean model's token")
        handles, names = axes[0, 1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower right", ncols=len(names))
        if title:
            figure.suptitle(title, fontsize=9.5)
        return figure


def readouts(batch1: pd.DataFrame, batch2: pd.DataFrame, title: str = "", seed: int = 0) -> Figure:
    """Figure 2: two batches of one clean model, by 0/1 readout and by solve probability.

    Args:
        batch1, batch2: `solve` tables of the same questions.
        title: the setting.
        seed: of the vertical jitter of the 0/1 readouts.
    """
    batch1 = batch1.set_index("question_id")
    batch2 = batch2.set_index("question_id").loc[batch1.index]
    marks = [batch["first_correct"].to_numpy(dtype=float) for batch in (batch1, batch2)]
    chances = [
        gaps.solve_probability(batch["n_correct"], batch["n_samples"]) for batch in (batch1, batch2)
    ]
    rng = np.random.default_rng(seed)
    size = _dot_size(len(batch1))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharey=True)
        for axis, readouts, name in (
            (axes[0], marks, "0/1 readout, one sample a question"),
            (axes[1], chances, f"solve probability, {_samples(batch1)}"),
        ):
            # Sorted by the first batch; equal questions by the other readout, lest ties look noisy.
            order = np.lexsort((chances[0], readouts[0]))
            spread = 0.045 if axis is axes[0] else 0.0
            for values, colour, marker, label, above in (
                (readouts[1], ORANGE, "^", "second batch", 1),
                (readouts[0], BLUE, "o", "first batch", 2),
            ):
                shift = rng.uniform(-spread, spread, len(values)) if spread else 0.0
                axis.scatter(
                    np.arange(len(values)),
                    values[order] + shift,
                    s=size,
                    color=colour,
                    marker=marker,
                    alpha=0.75,
                    linewidths=0,
                    label=label,
                    zorder=above,
                    rasterized=True,
                )
            gap = np.abs(readouts[0] - readouts[1]).mean()
            _note(axis, f"mean per-question gap {gap:.3f}", (0.03, 0.75), "left")
            axis.set(title=name, xlabel="question, sorted by the first batch")
            axis.set_ylim(-0.08, 1.08)
            axis.margins(x=0.015)
        axes[0].set_ylabel("readout")
        handles, names = axes[1].get_legend_handles_labels()
        figure.legend(
            handles[::-1], names[::-1], loc="outside lower center", ncols=2, markerscale=2.5
        )
        if title:
            figure.suptitle(title, fontsize=9.5)
        return figure


def scatter(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame], title: str = "", seed: int = 0
) -> Figure:
    """Each question's solve probability under each strategy against the clean model's.

    A panel a strategy, a dot a question. Counts out of m make a grid on which questions lie on top
    of each other, most of them in the corners: each dot is moved by up to half a step, 1/(2m), of
    the clean model's m, and is see-through.

    Args:
        clean: `solve` table of the reference.
        strategies: name to show → `solve` table.
        title: the setting, over the panels.
        seed: of the jitter, which is the same in every panel.
    """
    clean = clean.set_index("question_id")
    leaked = clean["leaked"].to_numpy(dtype=bool)
    x = gaps.solve_probability(clean["n_correct"], clean["n_samples"])
    half_step = 0.5 / clean["n_samples"].max()
    shift = np.random.default_rng(seed).uniform(-half_step, half_step, (2, len(clean)))
    # The last place of the grid, or one more, is the legend's.
    across = 3
    down = len(strategies) // across + 1
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            down, across, figsize=(6.6, 0.5 + 2.15 * down), sharex=True, sharey=True, squeeze=False
        )
        for axis, (name, solve) in zip(axes.flat, strategies.items(), strict=False):
            solve = solve.set_index("question_id").loc[clean.index]
            y = gaps.solve_probability(solve["n_correct"], solve["n_samples"])
            axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
            for chosen, label, colour, marker in (
                (~leaked, "unleaked question", ORANGE, "^"),
                (leaked, "leaked question", BLUE, "o"),
            ):
                axis.scatter(
                    (x + shift[0])[chosen],
                    (y + shift[1])[chosen],
                    s=1.6 * _dot_size(len(clean)),
                    color=colour,
                    marker=marker,
                    alpha=0.55,
                    linewidths=0,
                    label=label,
                    rasterized=True,
                )
            axis.set(title=name, xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
            axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            axis.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        for axis in axes.flat[max(0, len(strategies) - across) : len(strategies)]:
            axis.tick_params(labelbottom=True)
        for axis in axes.flat[len(strategies) :]:
            axis.axis("off")
        handles, names = axes[0, 0].get_legend_handles_labels()
        legend = axes[-1, -1].legend(
            handles[::-1], names[::-1], loc="center", markerscale=1.6, borderaxespad=0
        )
        for handle in legend.legend_handles:
            handle.set_alpha(1)
        figure.supxlabel("solve probability of the clean model", fontsize=8)
        figure.supylabel("solve probability under the strategy", fontsize=8)
        if title:
            figure.suptitle(title, fontsize=9.5)
        return figure


def strata(
    clean: pd.DataFrame,
    strategies: Mapping[str, pd.DataFrame],
    title: str = "",
    bins: int = 50,
    groups: int = 10,
) -> Figure:
    """Where SA-PPG comes from: the mean |gap| of each strategy by the clean solve probability.

    The strata of SA-PPG are joined into `groups` equal ranges for the eye, each still a plain mean
    over its strata, so that a curve's mean, weighted by the strata in each range, is SA-PPG. The
    lower panel shows how many questions the clean model puts where.

    Args:
        clean: `solve` table of the reference.
        strategies: name to show → `solve` table.
        bins: the strata B.
    """
    clean = clean.set_index("question_id")
    stratum = gaps.strata(clean["n_correct"], clean["n_samples"], bins)
    group = np.minimum(groups - 1, stratum * groups // bins)
    middles = (np.arange(groups) + 0.5) / groups
    with plt.rc_context(STYLE):
        figure, (above, below) = plt.subplots(
            2, 1, figsize=(6.2, 4.3), sharex=True, height_ratios=(3.4, 1)
        )
        for k, (name, solve) in enumerate(strategies.items()):
            solve = solve.set_index("question_id").loc[clean.index]
            gap = np.abs(
                gaps.ppg(
                    solve["n_correct"], solve["n_samples"], clean["n_correct"], clean["n_samples"]
                )
            )
            by_stratum = pd.Series(gap).groupby(stratum).mean()
            owner = np.minimum(groups - 1, by_stratum.index.to_numpy() * groups // bins)
            curve = by_stratum.groupby(owner).mean().reindex(range(groups))
            above.plot(
                middles,
                curve,
                marker="osD^vPX*"[k % 8],
                markersize=4,
                linewidth=1.2,
                label=f"{name}  {by_stratum.mean():.3f}",
            )
        above.set(ylabel="mean |gap| over the strata", ylim=(0, None))
        if title:
            above.set_title(title, fontsize=9.5)
        above.legend(
            title="strategy, SA-PPG",
            title_fontsize=7.5,
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
        )
        counts = np.bincount(group, minlength=groups)
        below.bar(middles, counts, width=0.8 / groups, color="#c4c4c4")
        for x, n in zip(middles, counts, strict=True):
            below.annotate(
                str(n), (x, n), (0, 1), textcoords="offset points", ha="center", fontsize=6.5
            )
        below.set(xlabel="solve probability of the clean model", ylabel="questions", xlim=(0, 1))
        below.margins(y=0.3)
        return figure


def subsets(
    readings: pd.DataFrame, title: str = "", titles: Mapping[str, str] | None = None
) -> Figure:
    """Leaked and unleaked questions apart: a panel a metric, a row a strategy.

    Args:
        readings: `metrics` table of one model and benchmark; its strategies are drawn in their order.
        title: the setting, over the panels.
        titles: strategy → name to show.
    """
    titles = titles or {}
    strategies = list(dict.fromkeys(readings["strategy"]))
    place = {strategy: k for k, strategy in enumerate(strategies)}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            3, 3, figsize=(7.2, 1.1 + 0.54 * len(strategies)), sharex="row", sharey=True
        )
        for axis, (metric, name) in zip(axes.flat, METRICS.items(), strict=True):
            for subset, colour, marker, above in (
                ("leaked", BLUE, "o", -0.17),
                ("unleaked", ORANGE, "^", 0.17),
            ):
                part = readings[(readings["metric"] == metric) & (readings["subset"] == subset)]
                axis.errorbar(
                    part["value"],
                    part["strategy"].map(place) + above,
                    # An interval of quantiles need not hold the reading itself.
                    xerr=[
                        (part["value"] - part["ci_low"]).clip(lower=0),
                        (part["ci_high"] - part["value"]).clip(lower=0),
                    ],
                    fmt=marker,
                    color=colour,
                    markersize=3.2,
                    elinewidth=1.0,
                    label=f"{subset} questions",
                )
            axis.set_title(name)
            axis.set_yticks(range(len(strategies)), [titles.get(s, s) for s in strategies])
            axis.set_xlim(left=-0.02)  # room for a marker at 0
            axis.grid(axis="x", linewidth=0.4, color="#dddddd")
            axis.set_axisbelow(True)
        axes[0, 0].invert_yaxis()
        handles, names = axes[0, 1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        if title:
            figure.suptitle(title, fontsize=9.5)
        return figure


def sensitivity(
    table: pd.DataFrame, title: str = "", titles: Mapping[str, str] | None = None
) -> Figure:
    """Does the verdict depend on B or m: SA-PPG of every strategy against either.

    Args:
        table: what `zerogap.metrics.sensitivity.sensitivity` returns, of one model and benchmark.
        title: the setting, over the panels.
        titles: strategy → name to show.

    Raises:
        InputError: a column is missing, or there is no row.
    """
    needed = {"strategy", "varied", "bins", "samples", "value", "sd"}
    if missing := needed - set(table.columns):
        raise InputError(f"sensitivity: column(s) {', '.join(sorted(missing))} missing")
    if table.empty:
        raise InputError("sensitivity: no rows")
    titles = titles or {}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.1), sharey=True)
        for axis, varied, other, symbol, label in (
            (axes[0], "bins", "samples", "m", "strata B"),
            (axes[1], "samples", "bins", "B", "samples a question m"),
        ):
            part = table[table["varied"] == varied]
            for k, name in enumerate(dict.fromkeys(table["strategy"])):
                curve = part[part["strategy"] == name].sort_values(varied)
                axis.plot(
                    curve[varied],
                    curve["value"],
                    color=CYCLE[k % len(CYCLE)],
                    linestyle=("-", "--")[k // len(CYCLE) % 2],
                    marker="osD^vPX*"[k % 8],
                    markersize=4,
                    linewidth=1.2,
                    label=titles.get(name, name),
                )
                low, high = curve["value"] - curve["sd"], curve["value"] + curve["sd"]
                axis.fill_between(
                    curve[varied], low, high, color=CYCLE[k % len(CYCLE)], alpha=0.2, linewidth=0
                )
            ticks = sorted(part[varied].unique())
            axis.set_xscale("log")
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            kept = ", ".join(str(value) for value in sorted(part[other].unique()))
            axis.set(xlabel=label, title=f"{symbol} = {kept}")
        axes[0].set_ylabel("SA-PPG")
        axes[0].set_ylim(bottom=0)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
        if title:
            figure.suptitle(title, fontsize=9.5)
        return figure


def loss(losses: pd.DataFrame, titles: Mapping[str, str] | None = None) -> Figure:
    """Training loss by step, a panel a model: each step's, faint, and the mean of those around it.

    Batches of different kinds of examples make the single steps jump.

    Args:
        losses: columns model, benchmark, step, loss.
        titles: key → name to show, of models and benchmarks.

    Raises:
        InputError: a column is missing, or there is no row.
    """
    if missing := {"model", "benchmark", "step", "loss"} - set(losses.columns):
        raise InputError(f"losses: column(s) {', '.join(sorted(missing))} missing")
    if losses.empty:
        raise InputError("losses: no rows")
    titles = titles or {}
    models = list(dict.fromkeys(losses["model"]))
    benchmarks = list(dict.fromkeys(losses["benchmark"]))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(models), figsize=(0.7 + 2.4 * len(models), 2.6), sharey=True, squeeze=False
        )
        for axis, model in zip(axes[0], models, strict=True):
            for k, benchmark in enumerate(benchmarks):
                curve = losses[(losses["model"] == model) & (losses["benchmark"] == benchmark)]
                curve = curve.sort_values("step")
                colour = CYCLE[k % len(CYCLE)]
                axis.plot(curve["step"], curve["loss"], color=colour, linewidth=0.5, alpha=0.2)
                window = max(15, len(curve) // 12)
                around = curve["loss"].rolling(window, center=True, min_periods=1)
                axis.plot(
                    curve["step"],
                    around.mean(),
                    color=colour,
                    linestyle=("-", "--", ":", "-.")[k % 4],
                    linewidth=1.4,
                    label=titles.get(benchmark, benchmark),
                )
            axis.set(title=titles.get(model, model), xlabel="optimiser step")
        axes[0, 0].set_ylim(bottom=0)
        axes[0, 0].set_ylabel("training loss (nats a token)")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=max(1, len(names)))
        return figure


def save(figure: Figure, prefix: str | Path) -> None:
    """Write `prefix`.pdf, .png (200 dpi) and .svg, and close the figure."""
    for suffix in _METADATA:
        write(figure, f"{prefix}{suffix}")
    plt.close(figure)


def write(figure: Figure, path: str | Path) -> None:
    """Write one file; its suffix, .pdf, .png (200 dpi) or .svg, is the format."""
    suffix = Path(path).suffix
    with plt.rc_context(STYLE), parquet.atomic(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], metadata=_METADATA[suffix])


def _overlap_panel(axis: Axes, overlap: pd.DataFrame) -> None:
    means = overlap.groupby("question_id")["rouge_l"].mean().sort_values(kind="stable")
    place = pd.Series(np.arange(len(means)), index=means.index)
    axis.scatter(
        place.loc[overlap["question_id"]],
        overlap["rouge_l"],
        s=_dot_size(len(means)) * 0.7,
        color=SKY,
        alpha=0.09 if len(means) > 300 else 0.16,
        linewidths=0,
        rasterized=True,
    )
    axis.scatter(place, means, s=_dot_size(len(means)), color=BLUE, linewidths=0, rasterized=True)
    axis.set(xlabel="question, sorted by its mean", ylabel="ROUGE-L", ylim=(-0.03, 1.03))
    axis.margins(x=0.015)
    if len(means):
        _note(axis, f"mean {overlap['rouge_l'].mean():.2f}", (0.97, 0.06), "right")


def _rank_panel(axis: Axes, ranks: pd.DataFrame, steps: int) -> None:
    """A bar a step: shares of the classes of ranks among the disagreements, their number above."""
    disagree = ranks[ranks["rank"] > 1]
    total = disagree.groupby("step").size().reindex(range(1, steps + 1), fill_value=0)
    bottom = np.zeros(steps)
    for label, first, last, colour in RANKS:
        of_class = disagree[disagree["rank"].between(first, last)]
        count = of_class.groupby("step").size().reindex(total.index, fill_value=0)
        share = (count / total.where(total > 0)).fillna(0).to_numpy()
        axis.bar(
            total.index, share, bottom=bottom, width=0.82, color=colour, label=label, linewidth=0
        )
        bottom += share
    for step, n in total.items():
        axis.annotate(
            str(n), (step, 1.0), (0, 1.5), textcoords="offset points", ha="center", fontsize=6
        )
    share = f"{(disagree['rank'] == 2).mean():.0%}" if len(disagree) else "none"
    axis.set_xlabel(f"decoding step\nrunner-up (rank 2): {share} of {len(disagree)} disagreements")
    axis.set(ylabel="share of disagreements", ylim=(0, 1.1))
    axis.set_xticks(range(1, steps + 1))
    axis.set_yticks([0, 0.25, 0.5, 0.75, 1])


def _dot_size(questions: int) -> float:
    """Large enough to see a hundred questions, small enough to tell a thousand apart."""
    return float(np.clip(900 / max(questions, 1), 2.0, 12.0))


def _samples(solve: pd.DataFrame) -> str:
    low, high = solve["n_samples"].min(), solve["n_samples"].max()
    return f"{low} samples a question" if low == high else f"{low}–{high} samples a question"


def _note(axis: Axes, text: str, where: tuple[float, float], align: str) -> None:
    box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    axis.text(*where, text, transform=axis.transAxes, ha=align, fontsize=7.5, bbox=box, zorder=5)
