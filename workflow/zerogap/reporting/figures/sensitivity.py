"""SA-PPG against the number of strata and of samples (not in the paper)."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zerogap.reporting.figures.style import STYLE, add_title, curve_style


def plot_sensitivity(table: pd.DataFrame, title: str = "") -> Figure:
    """Does the comparison depend on B or m: SA-PPG of every strategy against each of them.

    Args:
        table: As `zerogap.metrics.sensitivity.sensitivity` returns it, for one setting.
        title: The setting, over the panels.
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.1), sharey=True)
        for axis, varied, fixed, symbol, label in (
            (axes[0], "bins", "samples", "m", "strata B"),
            (axes[1], "samples", "bins", "B", "samples per question m"),
        ):
            rows = table[table["varied"] == varied]
            for k, strategy in enumerate(dict.fromkeys(table["strategy"])):
                curve = rows[rows["strategy"] == strategy].sort_values(varied)
                _plot_curve(axis, curve, varied, k, strategy)
            ticks = sorted(rows[varied].unique())
            axis.set_xscale("log")
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            fixed_values = ", ".join(str(value) for value in sorted(rows[fixed].unique()))
            axis.set(xlabel=label, title=f"{symbol} = {fixed_values}")
        axes[0].set_ylabel("SA-PPG")
        axes[0].set_ylim(bottom=0)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
        add_title(figure, title)
        return figure


def _plot_curve(axis: Axes, curve: pd.DataFrame, varied: str, k: int, name: str) -> None:
    """The k-th strategy's line, with a band of one standard deviation."""
    style = curve_style(k)
    axis.plot(curve[varied], curve["value"], label=name, **style)
    low, high = curve["value"] - curve["sd"], curve["value"] + curve["sd"]
    axis.fill_between(curve[varied], low, high, color=style["color"], alpha=0.2, linewidth=0)
