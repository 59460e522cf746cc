"""Figures 1 and 2 of the paper."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.analysis.inline_numbers import MAX_RANK_STEP
from zerogap.metrics.same_questions import probabilities
from zerogap.reporting.figures.style import (
    AMBER,
    BLUE,
    SKY,
    SUBSET_STYLE,
    add_note,
    add_points,
    panels,
    point_size,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Classes of ranks: label, first and last rank, colour.
RANKS = (
    ("rank 2", 2, 2, BLUE),
    ("rank 3", 3, 3, SKY),
    ("ranks 4–10", 4, 10, AMBER),
    ("beyond 10", 11, np.inf, "#b8b8b8"),
)
_JITTER = 0.045  # of the 0/1 readouts, in both directions


def plot_mechanism(overlap: pd.DataFrame, ranks: pd.DataFrame, title: str = "") -> "Figure":
    """Figure 1: overlap with the greedy trajectory, and the rank of the clean model's token.

    Args:
        overlap: `overlap` table of the contaminated model.
        ranks: `ranks` table of the same model, conditioned on the clean model's greedy response.
        title: The setting, over the panels.
    """
    with panels(2, 2, (7.2, 4.9), title, width_ratios=(1, 1)) as (figure, axes):
        for row, (leaked, subset) in enumerate(((True, "leaked"), (False, "unleaked"))):
            letters = "ac"[row], "bd"[row]
            _plot_overlap(axes[row, 0], overlap[overlap["leaked"] == leaked])
            axes[row, 0].set_title(f"({letters[0]}) {subset}: overlap with the greedy trajectory")
            subset_ranks = ranks[(ranks["leaked"] == leaked) & (ranks["step"] <= MAX_RANK_STEP)]
            _plot_ranks(axes[row, 1], subset_ranks)
            axes[row, 1].set_title(f"({letters[1]}) {subset}: rank of the clean model's token")
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
        add_note(axis, f"mean {overlap['rouge_l'].mean():.2f}", (0.97, 0.06), "right")


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
    """Figure 2: two batches of a clean model, by the 0/1 readout and by the solve probability.

    Args:
        batch1: `solve` table of the first batch.
        batch2: `solve` table of the second batch, with the same questions.
        title: The setting.
    """
    batch1 = batch1.set_index("question_id")
    batch2 = batch2.set_index("question_id").loc[batch1.index]
    batches = (batch1, batch2)
    marks = [batch["first_correct"].to_numpy(dtype=float) for batch in batches]
    solved = [probabilities(batch) for batch in batches]
    rng = np.random.default_rng(0)
    with panels(1, 2, (7.2, 2.9), title, sharey=True) as (figure, axes):
        left, right = axes[0]
        # Sorted by the first batch; ties by the other readout, or they would look like noise.
        order = np.lexsort((solved[0], marks[0]))
        jitter = [rng.uniform(-_JITTER, _JITTER, len(batch1)) for _ in batches]
        _plot_batches(left, marks, order, jitter[::-1])
        left.set(title="0/1 readout, one sample per question", ylabel="readout")
        _plot_batches(right, solved, np.argsort(solved[0], kind="stable"), [0.0, 0.0])
        low, high = batch1["n_samples"].min(), batch1["n_samples"].max()
        counts = f"{low}" if low == high else f"{low}–{high}"
        right.set_title(f"solve probability, {counts} samples per question")
        handles, names = right.get_legend_handles_labels()
        figure.legend(
            handles[::-1], names[::-1], loc="outside lower center", ncols=2, markerscale=2.5
        )
    return figure


def _plot_batches(
    axis: "Axes",
    readouts: list[NDArray[np.float64]],
    order: NDArray[np.intp],
    jitter: Sequence[NDArray[np.float64] | float],
) -> None:
    """One point per question and batch, the questions in the given order; the first on top."""
    styles = zip(readouts, jitter, SUBSET_STYLE.values(), ("first", "second"), (2, 1), strict=True)
    for values, shift, (colour, marker), name, layer in reversed(list(styles)):
        options = {"marker": marker, "alpha": 0.75, "label": f"{name} batch", "zorder": layer}
        y, size = values[order] + shift, point_size(len(values))
        add_points(axis, np.arange(len(values)), y, size, colour, **options)
    gap = np.abs(readouts[0] - readouts[1]).mean()
    add_note(axis, f"mean per-question gap {gap:.3f}", (0.03, 0.75), "left")
    axis.set(xlabel="question, sorted by the first batch", ylim=(-0.08, 1.08))
    axis.margins(x=0.015)
