"""Figures that the paper does not have: every question, and where gaps come from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.analysis.strata import Ranges
from zerogap.metrics.same_questions import probabilities
from zerogap.reporting.figures.style import (
    GREY,
    SUBSET_STYLE,
    TITLE_SIZE,
    add_points,
    curve_style,
    panels,
    point_size,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCATTERS_PER_ROW = 3


def plot_scatter(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame], title: str = ""
) -> "Figure":
    """Each question's solve probability under each strategy against the clean model's.

    Args:
        clean: `solve` table of the reference.
        strategies: Name to show, to `solve` table.
        title: The setting, over the panels.
    """
    clean = clean.set_index("question_id")
    return plot_questions(
        probabilities(clean),
        {
            name: probabilities(solve.set_index("question_id").loc[clean.index])
            for name, solve in strategies.items()
        },
        clean["n_samples"].max(),
        "the clean model",
        title,
        leaked=clean["leaked"].to_numpy(dtype=bool),
    )


def plot_questions(
    reference: NDArray[np.float64],
    strategies: Mapping[str, NDArray[np.float64]],
    num_samples: int,
    reference_name: str,
    title: str = "",
    leaked: NDArray[np.bool_] | None = None,
) -> "Figure":
    """One panel per strategy, one point per question.

    Many questions share a point of the grid of counts out of m, most of them in the corners. So
    each point is moved by up to half a step of that grid, 1/(2m), and is translucent.

    Args:
        reference: Solve probabilities of the questions, on the x axis.
        strategies: Name to show, to solve probabilities of the same questions.
        num_samples: m of the reference.
        reference_name: Whose solve probability the reference is.
        title: The setting, over the panels.
        leaked: Whether each question is leaked; None if nobody knows.
    """
    half_step = 0.5 / num_samples
    shift = np.random.default_rng(0).uniform(-half_step, half_step, (2, len(reference)))
    # The last panel of the grid, or one more, holds the legend.
    n_rows, n_columns = len(strategies) // _SCATTERS_PER_ROW + 1, _SCATTERS_PER_ROW
    size = (6.6, 0.5 + 2.15 * n_rows)
    with panels(n_rows, n_columns, size, title, sharex=True, sharey=True) as (figure, axes):
        for axis, (name, solve) in zip(axes.flat, strategies.items(), strict=False):
            _plot_points(axis, reference + shift[0], solve + shift[1], leaked)
            axis.set_title(name)
        for axis in axes.flat[max(0, len(strategies) - n_columns) : len(strategies)]:
            axis.tick_params(labelbottom=True)
        for axis in axes.flat[len(strategies) :]:
            axis.axis("off")
        _add_scatter_legend(axes[-1, -1], axes[0, 0])
        figure.supxlabel(f"solve probability of {reference_name}", fontsize=8)
        figure.supylabel("solve probability under the strategy", fontsize=8)
    return figure


def _plot_points(
    axis: "Axes", x: NDArray[np.float64], y: NDArray[np.float64], leaked: NDArray[np.bool_] | None
) -> None:
    if leaked is None:
        subsets = {"question": (np.ones(len(x), dtype=bool), SUBSET_STYLE["leaked"])}
    else:
        subsets = {
            f"{name} question": (subset, SUBSET_STYLE[name])
            for name, subset in (("unleaked", ~leaked), ("leaked", leaked))
        }
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    for name, (subset, (colour, marker)) in subsets.items():
        options = {"marker": marker, "alpha": 0.55, "label": name}
        add_points(axis, x[subset], y[subset], 1.6 * point_size(len(x)), colour, **options)
    axis.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
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

    Neighbouring strata of SA-PPG are joined into at most ten ranges. Each is a plain mean over its
    strata, so that the mean of a curve, weighted by the strata in each range, is SA-PPG. The
    lower panel shows how many questions are in each range.

    Args:
        clean: `solve` table of the reference.
        strategies: Name to show, to `solve` table.
        title: The setting.
        bins: Number of strata B.
    """
    ranges = Ranges.of(clean, bins)
    with panels(2, 1, (6.2, 4.3), sharex=True, height_ratios=(3.4, 1)) as (figure, axes):
        upper, lower = axes[:, 0]
        for k, (name, solve) in enumerate(strategies.items()):
            means, sa_ppg = ranges.mean_gaps(solve)
            label = f"{name}  {sa_ppg:.3f}"
            upper.plot(ranges.centres, means, label=label, **curve_style(k))
        upper.set(ylabel="mean |gap| over the strata", ylim=(0, None))
        if title:
            upper.set_title(title, fontsize=TITLE_SIZE)
        upper.legend(
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
