"""Which strata SA-PPG comes from (not in the paper)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from zerogap.analysis.strata import Ranges
from zerogap.reporting.figures.style import TITLE_SIZE, curve_style, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_strata(
    clean: pd.DataFrame,
    strategies: Mapping[str, pd.DataFrame],
    title: str = "",
    bins: int = 50,
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
