"""Figures that the paper does not have: every question, sensitivity, training loss."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from zerogap.metrics import gaps
from zerogap.reporting.figures.style import (
    CYCLE,
    GREY,
    SUBSET_STYLE,
    curve_style,
    panels,
    point_size,
)
from zerogap.reporting.labels import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCATTERS_PER_ROW = 3
_MIN_WINDOW = 15  # steps of the moving average of a loss


def plot_scatter(
    clean: pd.DataFrame, strategies: Mapping[str, pd.DataFrame], title: str = ""
) -> "Figure":
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
    n_rows, n_columns = len(strategies) // _SCATTERS_PER_ROW + 1, _SCATTERS_PER_ROW
    size = (6.6, 0.5 + 2.15 * n_rows)
    with panels(n_rows, n_columns, size, title, sharex=True, sharey=True) as (figure, axes):
        for axis, (name, solve) in zip(axes.flat, strategies.items(), strict=False):
            solve = solve.set_index("question_id").loc[clean.index]
            y = gaps.solve_probability(solve["n_correct"], solve["n_samples"])
            _plot_questions(axis, x + shift[0], y + shift[1], leaked)
            axis.set_title(name)
        for axis in axes.flat[max(0, len(strategies) - n_columns) : len(strategies)]:
            axis.tick_params(labelbottom=True)
        for axis in axes.flat[len(strategies) :]:
            axis.axis("off")
        _add_scatter_legend(axes[-1, -1], axes[0, 0])
        figure.supxlabel("solve probability of the clean model", fontsize=8)
        figure.supylabel("solve probability under the strategy", fontsize=8)
    return figure


def _plot_questions(
    axis: "Axes", x: NDArray[np.float64], y: NDArray[np.float64], leaked: NDArray[np.bool_]
) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, zorder=1)
    for name, subset in (("unleaked", ~leaked), ("leaked", leaked)):
        colour, marker = SUBSET_STYLE[name]
        axis.scatter(
            x[subset],
            y[subset],
            s=1.6 * point_size(len(x)),
            color=colour,
            marker=marker,
            alpha=0.55,
            linewidths=0,
            label=f"{name} question",
            rasterized=True,
        )
    axis.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
    axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axis.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])


def _add_scatter_legend(axis: "Axes", panel: "Axes") -> None:
    handles, names = panel.get_legend_handles_labels()
    legend = axis.legend(handles[::-1], names[::-1], loc="center", markerscale=1.6, borderaxespad=0)
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)


def plot_sensitivity(table: pd.DataFrame, title: str = "") -> "Figure":
    """Does the comparison depend on B or m: SA-PPG of every strategy against each of them.

    Args:
        table: As `zerogap.metrics.sensitivity.sensitivity` returns it, for one setting.
        title: The setting, over the panels.
    """
    with panels(1, 2, (7.2, 3.1), title, sharey=True) as (figure, axes):
        for axis, varied, fixed, symbol, label in (
            (axes[0, 0], "bins", "samples", "m", "strata B"),
            (axes[0, 1], "samples", "bins", "B", "samples per question m"),
        ):
            rows = table[table["varied"] == varied]
            for k, strategy in enumerate(dict.fromkeys(table["strategy"])):
                curve = rows[rows["strategy"] == strategy].sort_values(varied)
                look = curve_style(k)
                axis.plot(curve[varied], curve["value"], label=strategy, **look)
                # A band of one standard deviation.
                low, high = curve["value"] - curve["sd"], curve["value"] + curve["sd"]
                axis.fill_between(
                    curve[varied], low, high, color=look["color"], alpha=0.2, linewidth=0
                )
            ticks = sorted(rows[varied].unique())
            axis.set_xscale("log")
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            fixed_values = ", ".join(str(value) for value in sorted(rows[fixed].unique()))
            axis.set(xlabel=label, title=f"{symbol} = {fixed_values}")
        axes[0, 0].set_ylabel("SA-PPG")
        axes[0, 0].set_ylim(bottom=0)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper")
    return figure


def plot_loss(losses: pd.DataFrame, labels: Labels) -> "Figure":
    """Training loss by step, one panel per model: every step, faint, and a moving average.

    Batches of different kinds of examples make the loss of single steps jump.

    Args:
        losses: Columns model, benchmark, step, loss.
        labels: Names to show.
    """
    models = list(dict.fromkeys(losses["model"]))
    with panels(1, len(models), (0.7 + 2.4 * len(models), 2.6), sharey=True) as (figure, axes):
        for axis, model in zip(axes[0], models, strict=True):
            for k, benchmark in enumerate(dict.fromkeys(losses["benchmark"])):
                curve = losses[(losses["model"] == model) & (losses["benchmark"] == benchmark)]
                name = labels.benchmarks.get(benchmark, benchmark)
                _plot_curve(axis, curve.sort_values("step"), k, name)
            axis.set(title=labels.models.get(model, model), xlabel="optimiser step")
        axes[0, 0].set_ylim(bottom=0)
        axes[0, 0].set_ylabel("training loss (nats per token)")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=max(1, len(names)))
    return figure


def _plot_curve(axis: "Axes", curve: pd.DataFrame, k: int, name: str) -> None:
    colour = CYCLE[k % len(CYCLE)]
    axis.plot(curve["step"], curve["loss"], color=colour, linewidth=0.5, alpha=0.2)
    window = max(_MIN_WINDOW, len(curve) // 12)
    average = curve["loss"].rolling(window, center=True, min_periods=1).mean()
    linestyle = ("-", "--", ":", "-.")[k % 4]
    axis.plot(curve["step"], average, color=colour, linestyle=linestyle, linewidth=1.4, label=name)
