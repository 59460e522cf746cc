"""Every question's solve probability under every strategy (not in the paper)."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from zerogap.metrics import gaps
from zerogap.reporting.figures.style import BLUE, GREY, ORANGE, STYLE, add_title, point_size

_PANELS_PER_ROW = 3


def plot_scatter(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame], title: str = ""
) -> Figure:
    """Each question's solve probability under each strategy against the clean model's.

    One panel per strategy, one point per question. Many questions share a point of the grid of
    counts out of m, most of them in the corners. So each point is moved by up to half a step of
    that grid, 1/(2m) for the clean model's m, and is translucent.

    Args:
        clean: `solve` table of the reference.
        strategies: Name to show, to `solve` table.
        title: The setting, over the panels.
    """
    clean = clean.set_index("question_id")
    leaked = clean["leaked"].to_numpy(dtype=bool)
    x = gaps.solve_probability(clean["n_correct"], clean["n_samples"])
    half_step = 0.5 / clean["n_samples"].max()
    shift = np.random.default_rng(0).uniform(-half_step, half_step, (2, len(clean)))
    # The last panel of the grid, or one more, holds the legend.
    n_rows = len(strategies) // _PANELS_PER_ROW + 1
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            n_rows,
            _PANELS_PER_ROW,
            figsize=(6.6, 0.5 + 2.15 * n_rows),
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        for axis, (name, solve) in zip(axes.flat, strategies.items(), strict=False):
            solve = solve.set_index("question_id").loc[clean.index]
            y = gaps.solve_probability(solve["n_correct"], solve["n_samples"])
            _plot_questions(axis, x + shift[0], y + shift[1], leaked)
            axis.set_title(name)
        for axis in axes.flat[max(0, len(strategies) - _PANELS_PER_ROW) : len(strategies)]:
            axis.tick_params(labelbottom=True)
        for axis in axes.flat[len(strategies) :]:
            axis.axis("off")
        _add_legend(axes[-1, -1], axes[0, 0])
        figure.supxlabel("solve probability of the clean model", fontsize=8)
        figure.supylabel("solve probability under the strategy", fontsize=8)
        add_title(figure, title)
        return figure


def _plot_questions(
    axis: Axes, x: NDArray[np.float64], y: NDArray[np.float64], leaked: NDArray[np.bool_]
) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    for subset, label, colour, marker in (
        (~leaked, "unleaked question", ORANGE, "^"),
        (leaked, "leaked question", BLUE, "o"),
    ):
        axis.scatter(
            x[subset],
            y[subset],
            s=1.6 * point_size(len(x)),
            color=colour,
            marker=marker,
            alpha=0.55,
            linewidths=0,
            label=label,
            rasterized=True,
        )
    axis.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
    axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axis.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])


def _add_legend(axis: Axes, panel: Axes) -> None:
    handles, names = panel.get_legend_handles_labels()
    legend = axis.legend(handles[::-1], names[::-1], loc="center", markerscale=1.6, borderaxespad=0)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
