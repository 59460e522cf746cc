"""Training loss (not in the paper)."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerogap.reporting.figures.style import CYCLE, STYLE

_MIN_WINDOW = 15  # steps


def plot_loss(losses: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Training loss by step, one panel per model: every step, faint, and a moving average.

    Batches of different kinds of examples make the loss of single steps jump.

    Args:
        losses: Columns model, benchmark, step, loss.
        names: Key to name to show, of models and benchmarks.
    """
    models = list(dict.fromkeys(losses["model"]))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(models), figsize=(0.7 + 2.4 * len(models), 2.6), sharey=True, squeeze=False
        )
        for axis, model in zip(axes[0], models, strict=True):
            for k, benchmark in enumerate(dict.fromkeys(losses["benchmark"])):
                curve = losses[(losses["model"] == model) & (losses["benchmark"] == benchmark)]
                _plot_curve(axis, curve.sort_values("step"), k, names.get(benchmark, benchmark))
            axis.set(title=names.get(model, model), xlabel="optimiser step")
        axes[0, 0].set_ylim(bottom=0)
        axes[0, 0].set_ylabel("training loss (nats per token)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=max(1, len(labels)))
        return figure


def _plot_curve(axis: Axes, curve: pd.DataFrame, k: int, name: str) -> None:
    colour = CYCLE[k % len(CYCLE)]
    axis.plot(curve["step"], curve["loss"], color=colour, linewidth=0.5, alpha=0.2)
    window = max(_MIN_WINDOW, len(curve) // 12)
    average = curve["loss"].rolling(window, center=True, min_periods=1).mean()
    axis.plot(
        curve["step"],
        average,
        color=colour,
        linestyle=("-", "--", ":", "-.")[k % 4],
        linewidth=1.4,
        label=name,
    )
