"""Every metric on leaked and on unleaked questions (not in the paper)."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerogap.reporting.figures.style import BLUE, ORANGE, STYLE, add_title
from zerogap.reporting.labels import METRICS


def plot_subsets(
    metrics: pd.DataFrame, title: str = "", names: Mapping[str, str] | None = None
) -> Figure:
    """Leaked and unleaked questions separately: one panel per metric, one row per strategy.

    Args:
        metrics: `metrics` table of one setting; its strategies are drawn in their order.
        title: The setting, over the panels.
        names: Strategy to name to show.
    """
    names = names or {}
    strategies = list(dict.fromkeys(metrics["strategy"]))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            3, 3, figsize=(7.2, 1.1 + 0.54 * len(strategies)), sharex="row", sharey=True
        )
        for axis, (metric, name) in zip(axes.flat, METRICS.items(), strict=True):
            _plot_metric(axis, metrics[metrics["metric"] == metric], strategies)
            axis.set_title(name)
            axis.set_yticks(range(len(strategies)), [names.get(s, s) for s in strategies])
            axis.set_xlim(left=-0.02)  # room for a marker at 0
            axis.grid(axis="x", linewidth=0.4, color="#dddddd")
            axis.set_axisbelow(True)
        axes[0, 0].invert_yaxis()
        handles, labels = axes[0, 1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        add_title(figure, title)
        return figure


def _plot_metric(axis: Axes, values: pd.DataFrame, strategies: list[str]) -> None:
    row_index = {strategy: k for k, strategy in enumerate(strategies)}
    for subset, colour, marker, offset in (
        ("leaked", BLUE, "o", -0.17),
        ("unleaked", ORANGE, "^", 0.17),
    ):
        rows = values[values["subset"] == subset]
        axis.errorbar(
            rows["value"],
            rows["strategy"].map(row_index) + offset,
            xerr=[
                rows["value"] - rows["ci_low"],
                rows["ci_high"] - rows["value"],
            ],
            fmt=marker,
            color=colour,
            markersize=3.2,
            elinewidth=1.0,
            label=f"{subset} questions",
        )
