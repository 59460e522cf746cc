"""All figures: Figures 1 and 2 of the paper, every question, where gaps come from, and signals.

The colours are Okabe and Ito's palette, which colour-blind readers can tell apart. The same figure
always gives the same bytes as PDF, PNG and SVG. Clouds of points are rasterised inside PDF and SVG,
which would otherwise hold one object per sampled response. Matplotlib is imported when a figure is
drawn: Snakemake's own process, which reads the catalogue, does not need it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.analysis.inline_numbers import MAX_RANK_STEP
from zerogap.analysis.strata import Ranges
from zerogap.io import atomic
from zerogap.metrics.gaps import Values
from zerogap.metrics.same_questions import probabilities
from zerogap.reporting.render import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, AMBER, GREY = "#56B4E9", "#E69F00", "#7f7f7f"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, "#000000", GREY]
MARKERS = "osD^vPX*"
TITLE_SIZE = 9.5
SUBSET_STYLE = {"leaked": (BLUE, "o"), "unleaked": (ORANGE, "^")}  # colour and marker
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "text.parse_math": False,  # a name may have a $
    "svg.hashsalt": "zerogap",
    "pdf.fonttype": 42,
}
# Without dates and versions, which would make two equal figures differ.
_METADATA: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
# Classes of ranks: label, first and last rank, colour.
RANKS = (
    ("rank 2", 2, 2, BLUE),
    ("rank 3", 3, 3, SKY),
    ("ranks 4–10", 4, 10, AMBER),
    ("beyond 10", 11, np.inf, "#b8b8b8"),
)
_JITTER = 0.045  # of the 0/1 readouts, in both directions
_SCATTERS_PER_ROW = 3
_MARGIN = 0.04  # of their axes
_SIGNAL_BINS = 30


def plot_mechanism(overlap: pd.DataFrame, ranks: pd.DataFrame, title: str = "") -> "Figure":
    """Figure 1: overlap with the greedy trajectory, and the rank of the clean model's token.

    Both tables are the contaminated model's; the title is over the panels.
    """
    with panels(2, 2, (7.2, 4.9), title) as (figure, axes):
        subsets = ((True, "leaked", "ab"), (False, "unleaked", "cd"))
        for (left, right), (leaked, subset, letters) in zip(axes, subsets, strict=True):
            _plot_overlap(left, overlap[overlap["leaked"] == leaked])
            left.set_title(f"({letters[0]}) {subset}: overlap with the greedy trajectory")
            _plot_ranks(
                right, ranks[(ranks["leaked"] == leaked) & (ranks["step"] <= MAX_RANK_STEP)]
            )
            right.set_title(f"({letters[1]}) {subset}: rank of the clean model's token")
        handles, names = axes[0, 1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower right", ncols=len(names))
    return figure


def _plot_overlap(axis: "Axes", overlap: pd.DataFrame) -> None:
    """One faint point per response, one solid point per question's mean."""
    means = overlap.groupby("question_id")["rouge_l"].mean().sort_values(kind="stable")
    position = pd.Series(np.arange(len(means)), index=means.index)
    size = point_size(len(means))
    alpha = 0.09 if len(means) > 300 else 0.16
    x = position.loc[overlap["question_id"]]
    add_points(axis, x, overlap["rouge_l"], size * 0.7, SKY, alpha=alpha)
    add_points(axis, position, means, size, BLUE)
    axis.set(xlabel="question, sorted by its mean", ylabel="ROUGE-L", ylim=(-0.03, 1.03))
    axis.margins(x=0.015)
    if len(means):
        add_note(axis, f"mean {format_number(overlap['rouge_l'].mean(), 2)}", (0.97, 0.06), "right")


def _plot_ranks(axis: "Axes", ranks: pd.DataFrame) -> None:
    """One bar per step: shares of the rank classes among disagreements, their number above."""
    disagreements = ranks[ranks["rank"] > 1]
    steps = range(1, MAX_RANK_STEP + 1)

    def count(rows: pd.DataFrame) -> "pd.Series[int]":
        return rows.groupby("step").size().reindex(steps, fill_value=0)

    total = count(disagreements)
    bottom = np.zeros(MAX_RANK_STEP)
    for label, first, last, colour in RANKS:
        of_class = count(disagreements[disagreements["rank"].between(first, last)])
        shares = (of_class / total.where(total > 0)).fillna(0).to_numpy()
        axis.bar(steps, shares, bottom=bottom, width=0.82, color=colour, label=label, linewidth=0)
        bottom += shares
    for step, n in total.items():
        axis.annotate(
            str(n), (step, 1.0), (0, 1.5), textcoords="offset points", ha="center", fontsize=6
        )
    n = len(disagreements)
    runner_up = f"{(disagreements['rank'] == 2).mean():.0%}" if n else "none"
    axis.set(
        xlabel=f"decoding step\nrunner-up (rank 2): {runner_up} of {n} disagreements",
        ylabel="share of disagreements",
        ylim=(0, 1.1),
        xticks=steps,
        yticks=[0, 0.25, 0.5, 0.75, 1],
    )


def plot_readout_variance(batch1: pd.DataFrame, batch2: pd.DataFrame, title: str = "") -> "Figure":
    """Figure 2: two batches of a clean model, by the 0/1 readout and by the solve probability."""
    batch1 = batch1.set_index("question_id")
    batch2 = batch2.set_index("question_id").loc[batch1.index]
    marks = [batch["first_correct"].to_numpy(dtype=float) for batch in (batch1, batch2)]
    solved = [probabilities(batch) for batch in (batch1, batch2)]
    rng = np.random.default_rng(0)
    with panels(1, 2, (7.2, 2.9), title, sharey=True) as (figure, axes):
        left, right = axes[0]
        # Sorted by the first batch; ties by the other readout, or they would look like noise.
        order = np.lexsort((solved[0], marks[0]))
        shifts = rng.uniform(-_JITTER, _JITTER, (2, len(batch1)))
        _plot_batches(left, marks, order, shifts[::-1])
        left.set(title="0/1 readout, one sample per question", ylabel="readout")
        _plot_batches(right, solved, np.argsort(solved[0], kind="stable"), [0.0, 0.0])
        counts = "–".join(map(str, sorted({batch1["n_samples"].min(), batch1["n_samples"].max()})))
        right.set_title(f"solve probability, {counts} samples per question")
        handles, names = right.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, markerscale=2.5)
    return figure


def _plot_batches(
    axis: "Axes",
    readouts: list[NDArray[np.float64]],
    order: NDArray[np.intp],
    shifts: Iterable[NDArray[np.float64] | float],
) -> None:
    """One point per question and batch, the questions in the given order; the first on top."""
    styles = zip(readouts, shifts, SUBSET_STYLE.values(), ("first", "second"), (2, 1), strict=True)
    for values, shift, (colour, marker), name, layer in styles:
        options = {"marker": marker, "alpha": 0.75, "label": f"{name} batch", "zorder": layer}
        y, size = values[order] + shift, point_size(len(values))
        add_points(axis, np.arange(len(values)), y, size, colour, **options)
    gap = np.abs(readouts[0] - readouts[1]).mean()
    add_note(axis, f"mean per-question gap {format_number(gap, 3)}", (0.03, 0.75), "left")
    axis.set(xlabel="question, sorted by the first batch", ylim=(-0.08, 1.08))
    axis.margins(x=0.015)


def plot_scatter(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame], title: str = ""
) -> "Figure":
    """Each question's solve probability under each strategy against the clean model's.

    One panel per strategy, one point per question; `strategies` has the names to show. Many
    questions share a point of the grid of counts out of m, most of them in the corners. So each
    point is moved by up to half a step of that grid, 1/(2m), within the axes, and is translucent.
    """
    clean = clean.set_index("question_id")
    leaked = clean["leaked"].to_numpy(dtype=bool)
    half_step = min(_MARGIN, 0.5 / clean["n_samples"].max())
    shift = np.random.default_rng(0).uniform(-half_step, half_step, (2, len(clean)))
    # The last panel of the grid, or one more, holds the legend.
    n_rows, n_columns = len(strategies) // _SCATTERS_PER_ROW + 1, _SCATTERS_PER_ROW
    size = (6.6, 0.5 + 2.15 * n_rows)
    with panels(n_rows, n_columns, size, title, sharex=True, sharey=True) as (figure, axes):
        for axis, (name, solve) in zip(axes.flat, strategies.items(), strict=False):
            y = probabilities(solve.set_index("question_id").loc[clean.index])
            _plot_points(axis, probabilities(clean) + shift[0], y + shift[1], leaked)
            axis.set_title(name)
        for axis in axes.flat[max(0, len(strategies) - n_columns) : len(strategies)]:
            axis.tick_params(labelbottom=True)
        for axis in axes.flat[len(strategies) :]:
            axis.axis("off")
        _add_scatter_legend(axes[-1, -1], axes[0, 0])
        figure.supxlabel("solve probability of the clean model", fontsize=8)
        figure.supylabel("solve probability under the strategy", fontsize=8)
    return figure


def _plot_points(
    axis: "Axes", x: NDArray[np.float64], y: NDArray[np.float64], leaked: NDArray[np.bool_]
) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    for name, subset in (("unleaked", ~leaked), ("leaked", leaked)):
        colour, marker = SUBSET_STYLE[name]
        options = {"marker": marker, "alpha": 0.55, "label": f"{name} question"}
        add_points(axis, x[subset], y[subset], 1.6 * point_size(len(x)), colour, **options)
    limits = -_MARGIN, 1 + _MARGIN
    axis.set(xlim=limits, ylim=limits, aspect="equal")
    axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axis.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])


def _add_scatter_legend(axis: "Axes", panel: "Axes") -> None:
    handles, names = panel.get_legend_handles_labels()
    legend = axis.legend(handles[::-1], names[::-1], loc="center", markerscale=1.6, borderaxespad=0)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)


def plot_strata(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame], title: str = "", bins: int = 50
) -> "Figure":
    """The mean |gap| of each strategy by the clean model's solve probability.

    Neighbouring strata of SA-PPG are joined into at most ten ranges (`Ranges.mean_gaps`). The lower
    panel shows how many questions are in each range.
    """
    ranges = Ranges(clean, bins)
    with panels(2, 1, (6.2, 4.3), sharex=True, height_ratios=(3.4, 1)) as (figure, axes):
        upper, lower = axes[:, 0]
        handles: list[Line2D] = []
        names: list[str] = []  # not labels of the lines: matplotlib hides those that start with _
        for k, (name, solve) in enumerate(strategies.items()):
            means, sa_ppg = ranges.mean_gaps(solve)
            handles += upper.plot(ranges.centres, means, **curve_style(k))
            names.append(f"{name}  {format_number(sa_ppg, 3)}")
        upper.set(ylabel="mean |gap| over the strata", ylim=(0, None))
        if title:
            upper.set_title(title, fontsize=TITLE_SIZE)
        upper.legend(
            handles,
            names,
            title="strategy, SA-PPG",
            title_fontsize=7.5,
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
        )
        _plot_counts(lower, ranges.centres, ranges.n_questions)
    return figure


def _plot_counts(axis: "Axes", centres: np.ndarray, counts: np.ndarray) -> None:
    """A bar per range, with the number of its questions above."""
    axis.bar(centres, counts, width=0.8 / len(counts), color="#c4c4c4")
    for x, n in zip(centres, counts, strict=True):
        axis.annotate(str(n), (x, n), (0, 1), textcoords="offset points", ha="center", fontsize=6.5)
    axis.set(xlabel="solve probability of the clean model", ylabel="questions", xlim=(0, 1))
    axis.margins(y=0.3)


def plot_signal(benchmark: Values, controls: Values) -> "Figure":
    """A signal on the benchmark's questions and on controls: points and means, 364 pixels wide.

    The points of similar values are spread in proportion to their number, up to a row's height.
    NaN are left out; each side has at least one number.
    """
    sides = [values[~np.isnan(values)] for values in (benchmark, controls)]
    edges = np.histogram_bin_edges(np.concatenate(sides), _SIGNAL_BINS)
    rng, names, labels = np.random.default_rng(0), ("benchmark", "controls"), []
    with panels(1, 1, (3.79, 1.3)) as (figure, [[axis]]):
        for row, (values, style) in enumerate(zip(sides, SUBSET_STYLE.values(), strict=True)):
            counts, _ = np.histogram(values, edges)
            share = counts[np.searchsorted(edges[1:-1], values, "right")] / counts.max()
            y = row + 0.38 * share * rng.uniform(-1, 1, len(values))
            size = 2 * point_size(len(values))
            add_points(axis, values, y, size, style[0], marker=style[1], alpha=0.5)
            axis.plot([values.mean()] * 2, [row - 0.42, row + 0.42], color="black", linewidth=2.2)
            labels.append(f"{names[row]}\nmean {format_number(values.mean(), 2)}")
        axis.set(yticks=[0, 1], yticklabels=labels, ylim=(1.5, -0.5))
        axis.tick_params(labelsize=11)  # 14.7 pixels
    return figure


@contextmanager
def styled() -> Iterator[None]:
    """The style of all figures, without a window."""
    import matplotlib as mpl
    from matplotlib.rcsetup import cycler

    mpl.use("Agg")
    with mpl.rc_context(_STYLE | {"axes.prop_cycle": cycler(color=CYCLE)}):
        yield


@contextmanager
def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], title: str = "", **options: Any
) -> Iterator[tuple["Figure", Any]]:
    """A figure of a size in inches and its axes, (n_rows, n_columns); options of `plt.subplots`."""
    import matplotlib.pyplot as plt

    with styled():
        figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, **options)
        yield figure, axes
        if title:
            figure.suptitle(title, fontsize=TITLE_SIZE)


def save(figure: "Figure", prefix: str | Path) -> None:
    """Write `prefix`.pdf, .png (200 dpi) and .svg, and close the figure."""
    import matplotlib.pyplot as plt

    for suffix in _METADATA:
        write(figure, f"{prefix}{suffix}")
    plt.close(figure)


def write(figure: "Figure", path: str | Path) -> None:
    """Write one file; its suffix, .pdf, .png (200 dpi) or .svg, is the format."""
    suffix = Path(path).suffix
    with styled(), atomic.replacing(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], metadata=_METADATA[suffix])


def curve_style(k: int) -> dict[str, Any]:
    """How the k-th curve of a figure is drawn; no two of the first sixteen look the same."""
    return {
        "color": CYCLE[k % len(CYCLE)],
        "linestyle": ("-", "--")[k // len(CYCLE) % 2],
        "marker": MARKERS[k % len(MARKERS)],
        "markersize": 4,
        "linewidth": 1.2,
    }


def add_points(axis: "Axes", x: Any, y: Any, size: float, colour: str, **options: Any) -> None:
    """Draw points without edges, rasterised in PDF and SVG."""
    axis.scatter(x, y, s=size, color=colour, linewidths=0, rasterized=True, **options)


def add_note(axis: "Axes", text: str, position: tuple[float, float], align: str) -> None:
    """Write a text into a panel, at a position in axes coordinates, on a white box."""
    box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    axis.text(*position, text, transform=axis.transAxes, ha=align, fontsize=7.5, bbox=box, zorder=5)


def point_size(n_questions: int) -> float:
    """Size of a point, large enough for a hundred questions and small enough for a thousand."""
    return float(np.clip(900 / max(n_questions, 1), 2.0, 12.0))
