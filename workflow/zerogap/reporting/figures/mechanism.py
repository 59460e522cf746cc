"""Figure 1: how the contaminated model generates."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerogap.analysis.inline_numbers import MAX_RANK_STEP
from zerogap.reporting.figures.style import (
    AMBER,
    BLUE,
    SKY,
    STYLE,
    add_note,
    add_title,
    point_size,
)

# Classes of ranks: label, first and last rank, colour.
RANKS = (
    ("rank 2", 2, 2, BLUE),
    ("rank 3", 3, 3, SKY),
    ("ranks 4–10", 4, 10, AMBER),
    ("beyond 10", 11, np.inf, "#b8b8b8"),
)


def plot_mechanism(overlap: pd.DataFrame, ranks: pd.DataFrame, title: str = "") -> Figure:
    """Overlap with the greedy trajectory, and the rank of the clean model's token.

    Args:
        overlap: `overlap` table of the contaminated model.
        ranks: `ranks` table of the same model, conditioned on the clean model's greedy response.
        title: The setting, over the panels.
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(7.2, 4.9), width_ratios=(1, 1))
        for row, (leaked, subset) in enumerate(((True, "leaked"), (False, "unleaked"))):
            letters = "ac"[row], "bd"[row]
            _plot_overlap(axes[row, 0], overlap[overlap["leaked"] == leaked])
            axes[row, 0].set_title(f"({letters[0]}) {subset}: overlap with the greedy trajectory")
            subset_ranks = ranks[(ranks["leaked"] == leaked) & (ranks["step"] <= MAX_RANK_STEP)]
            _plot_ranks(axes[row, 1], subset_ranks)
            axes[row, 1].set_title(f"({letters[1]}) {subset}: rank of the clean model's token")
        handles, names = axes[0, 1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower right", ncols=len(names))
        add_title(figure, title)
        return figure


def _plot_overlap(axis: Axes, overlap: pd.DataFrame) -> None:
    """One faint point per response, one solid point per question's mean."""
    means = overlap.groupby("question_id")["rouge_l"].mean().sort_values(kind="stable")
    position = pd.Series(np.arange(len(means)), index=means.index)
    size = point_size(len(means))
    axis.scatter(
        position.loc[overlap["question_id"]],
        overlap["rouge_l"],
        s=size * 0.7,
        color=SKY,
        alpha=0.09 if len(means) > 300 else 0.16,
        linewidths=0,
        rasterized=True,
    )
    axis.scatter(position, means, s=size, color=BLUE, linewidths=0, rasterized=True)
    axis.set(xlabel="question, sorted by its mean", ylabel="ROUGE-L", ylim=(-0.03, 1.03))
    axis.margins(x=0.015)
    if len(means):
        add_note(axis, f"mean {overlap['rouge_l'].mean():.2f}", (0.97, 0.06), "right")


def _plot_ranks(axis: Axes, ranks: pd.DataFrame) -> None:
    """One bar per step: shares of the rank classes among disagreements, their number above."""
    disagreements = ranks[ranks["rank"] > 1]
    total = disagreements.groupby("step").size().reindex(range(1, MAX_RANK_STEP + 1), fill_value=0)
    bottom = np.zeros(MAX_RANK_STEP)
    for label, first, last, colour in RANKS:
        of_class = disagreements[disagreements["rank"].between(first, last)]
        count = of_class.groupby("step").size().reindex(total.index, fill_value=0)
        shares = (count / total.where(total > 0)).fillna(0).to_numpy()
        axis.bar(
            total.index, shares, bottom=bottom, width=0.82, color=colour, label=label, linewidth=0
        )
        bottom += shares
    for step, n in total.items():
        axis.annotate(
            str(n), (step, 1.0), (0, 1.5), textcoords="offset points", ha="center", fontsize=6
        )
    n = len(disagreements)
    runner_up = f"{(disagreements['rank'] == 2).mean():.0%}" if n else "none"
    axis.set_xlabel(f"decoding step\nrunner-up (rank 2): {runner_up} of {n} disagreements")
    axis.set(ylabel="share of disagreements", ylim=(0, 1.1))
    axis.set_xticks(range(1, MAX_RANK_STEP + 1))
    axis.set_yticks([0, 0.25, 0.5, 0.75, 1])
