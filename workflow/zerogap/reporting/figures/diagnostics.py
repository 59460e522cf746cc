"""The diagnostics of every setting, one row of panels per setting (not in the paper)."""

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from zerogap.analysis.diagnostics import ALL, CLEAN
from zerogap.data.token_kinds import KINDS
from zerogap.reporting.figures.style import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    MARKERS,
    SKY,
    SUBSET_STYLE,
    panels,
)
from zerogap.reporting.labels import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KIND_COLOURS = dict(zip(KINDS, (BLUE, AMBER, GREY, SKY, GREEN), strict=True))


def plot_diagnostics(values: pd.DataFrame, labels: Labels) -> "Figure":
    """Steps on the rail, how often the rail token is drawn, and the recovery rate.

    Args:
        values: Columns model and benchmark, and those of
            :func:`zerogap.analysis.diagnostics.diagnostics`.
        labels: Names to show.
    """
    settings = list(values.groupby(["model", "benchmark"], sort=False))
    with panels(len(settings), 3, (7.2, 0.7 + 1.75 * len(settings))) as (figure, axes):
        for row, (key, setting) in zip(axes, settings, strict=True):
            _plot_rail_steps(row[0], setting, labels)
            _plot_drawn(row[1], setting, labels)
            _plot_recovery(row[2], setting)
            row[0].set_title(labels.setting(*map(str, key)), loc="left")
        axes[-1, 0].set_xlabel("rail steps per response (share of all steps)")
        axes[-1, 1].set_xlabel("kind of the rail token")
        axes[-1, 2].set_xlabel("kind of the token replaced")
        kinds, subsets = (axes[0, column].get_legend_handles_labels() for column in (0, 1))
        figure.legend(*kinds, loc="outside lower left", ncols=3)
        figure.legend(*subsets, loc="outside lower right", ncols=2)
    return figure


def _plot_rail_steps(axis: "Axes", setting: pd.DataFrame, labels: Labels) -> None:
    """One bar per set of responses, divided by kind; the share of all steps behind it."""
    groups = setting[setting["measure"] == "rail_share"]
    steps = setting[setting["measure"] == "rail_steps"]
    widths = steps.set_index(["responses", "subset", "kind"])["value"].to_dict()
    names = []
    for position, group in enumerate(groups.itertuples()):
        left = 0.0
        for kind, colour in KIND_COLOURS.items():
            width = widths[group.responses, group.subset, kind]
            label = kind if position == 0 else None
            axis.barh(position, width, left=left, color=colour, linewidth=0, label=label)
            left += width
        axis.annotate(f" {group.value:.0%}", (left, position), va="center", fontsize=6.5)
        name = labels.strategy(str(group.responses))
        names.append(name if group.responses == CLEAN else f"{name}, {group.subset}")
    axis.set_yticks(range(len(names)), names, fontsize=6.5)
    axis.margins(x=0.2)
    axis.invert_yaxis()


def _plot_drawn(axis: "Axes", setting: pd.DataFrame, labels: Labels) -> None:
    """How often the rail token is drawn, by kind: one marker per strategy and subset."""
    rows = setting[(setting["measure"] == "drawn") & (setting["responses"] != CLEAN)]
    groups = list(rows.groupby(["responses", "subset"], sort=False))
    offsets = np.linspace(-0.3, 0.3, len(groups))
    markers = dict(zip(dict.fromkeys(rows["responses"]), itertools.cycle(MARKERS), strict=False))
    for offset, (key, group) in zip(offsets, groups, strict=True):
        responses, subset = map(str, key)
        name = f"{labels.strategy(responses)}, {subset}"
        look = {"marker": markers[responses], "color": SUBSET_STYLE[subset][0]}
        _points(axis, group, KINDS, offset=float(offset), label=name, **look)
    axis.set(ylabel="rail token drawn", ylim=(-0.03, 1.03))


def _plot_recovery(axis: "Axes", setting: pd.DataFrame) -> None:
    """The recovery rate, overall and by kind; 1 is the clean model without a forced runner-up."""
    rows = setting[setting["measure"] == "recovery"]
    axis.axhline(1, color=GREY, linewidth=0.8, linestyle="--")
    _points(axis, rows, (ALL, *KINDS), marker="o", color=BLUE)
    axis.set(ylabel="recovery rate")
    axis.set_ylim(bottom=-0.03)


def _points(
    axis: "Axes",
    rows: pd.DataFrame,
    kinds: tuple[str, ...],
    *,
    marker: str,
    color: str,
    offset: float = 0,
    label: str | None = None,
) -> None:
    """Values by kind with their intervals."""
    rows = rows.set_index("kind").loc[list(kinds)]
    axis.errorbar(
        np.arange(len(kinds)) + offset,
        rows["value"],
        yerr=[rows["value"] - rows["ci_low"], rows["ci_high"] - rows["value"]],
        fmt=marker,
        color=color,
        markersize=3.2,
        elinewidth=0.9,
        label=label,
    )
    axis.set_xticks(range(len(kinds)), kinds, fontsize=6.5, rotation=20)
