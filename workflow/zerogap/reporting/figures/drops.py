"""Every question of one model under every strategy, without a clean model (not in the paper)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from zerogap.reporting.figures.style import CYCLE, GREY, panels, point_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_NAMED = 40  # questions whose ids fit under the axis


def plot_drops(questions: pd.DataFrame, strategies: Mapping[str, str], title: str = "") -> "Figure":
    """The drop from Identity of each question, one panel per strategy, then the overlap.

    Questions are ordered by Identity's solve probability, then by their peakedness; the order is
    that of all panels. A line joins Identity's solve probability and the strategy's.

    Args:
        questions: one row per question, with question_id, identity, rouge_l and peakedness (of
            Identity's responses), and the solve probability under each strategy.
        strategies: column → name to show; without Identity.
        title: The setting.
    """
    order = ["identity", "peakedness", "question_id"]
    questions = questions.sort_values(order, ascending=[False, False, True], kind="stable")
    x = np.arange(len(questions))
    n_rows = len(strategies) + 1
    figure_size = (7.0, 1.0 + 1.35 * n_rows)
    with panels(n_rows, 1, figure_size, title, sharex=True, sharey=True) as (figure, axes):
        size = 2.2 * point_size(len(questions))
        for k, (column, name) in enumerate(strategies.items()):
            _plot_drop(axes[k, 0], x, questions["identity"], questions[column], name, k, size)
        _plot_overlap(axes[-1, 0], x, questions, size)
        axes[0, 0].set(ylim=(-0.05, 1.05), yticks=[0, 0.5, 1])
        axes[-1, 0].set_xlabel("questions, by Identity's solve probability")
        if len(questions) <= _MAX_NAMED:
            axes[-1, 0].set_xticks(x, questions["question_id"], rotation=90, fontsize=6)
        else:
            axes[-1, 0].set_xticks([])
    return figure


def _plot_drop(
    axis: "Axes",
    x: np.ndarray,
    identity: "pd.Series[float]",
    strategy: "pd.Series[float]",
    name: str,
    number: int,
    size: float,
) -> None:
    colour = CYCLE[number % len(CYCLE)]
    width = min(0.8, 150 / len(x))  # lines of many questions must not merge
    axis.vlines(x, strategy, identity, color=colour, linewidth=width, alpha=0.35)
    axis.scatter(x, identity, s=size, color=GREY, linewidths=0, label="Identity")
    axis.scatter(x, strategy, s=size, color=colour, linewidths=0, label=name)
    axis.set_ylabel("solve probability")
    _add_legend(axis)


def _plot_overlap(axis: "Axes", x: np.ndarray, questions: pd.DataFrame, size: float) -> None:
    axis.scatter(
        x, questions["rouge_l"], s=size, color="black", marker="^", linewidths=0, label="ROUGE-L"
    )
    axis.bar(x, questions["peakedness"], width=0.8, color="#c4c4c4", label="Peakedness")
    axis.set_ylabel("overlap with\ngreedy")
    _add_legend(axis)


def _add_legend(axis: "Axes") -> None:
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=1.4, borderaxespad=0.2)
