"""Figure 2: how well the 0/1 readout and the solve probability reproduce."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from zerogap.metrics import gaps
from zerogap.reporting.figures.style import (
    BLUE,
    ORANGE,
    STYLE,
    add_note,
    add_title,
    point_size,
)

_JITTER = 0.045  # of the 0/1 readouts, in both directions


def plot_readout_variance(batch1: pd.DataFrame, batch2: pd.DataFrame, title: str = "") -> Figure:
    """Two batches of one clean model, by the 0/1 readout and by the solve probability.

    Args:
        batch1: `solve` table of the first batch.
        batch2: `solve` table of the second batch, with the same questions.
        title: The setting.
    """
    batch1 = batch1.set_index("question_id")
    batch2 = batch2.set_index("question_id").loc[batch1.index]
    batches = (batch1, batch2)
    marks = [batch["first_correct"].to_numpy(dtype=float) for batch in batches]
    probabilities = [gaps.solve_probability(b["n_correct"], b["n_samples"]) for b in batches]
    rng = np.random.default_rng(0)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharey=True)
        # Sorted by the first batch; ties by the other readout, or they would look like noise.
        order = np.lexsort((probabilities[0], marks[0]))
        shift = [rng.uniform(-_JITTER, _JITTER, len(batch1)) for _ in batches]
        _plot_batches(axes[0], marks, order, (shift[1], shift[0]))
        axes[0].set_title("0/1 readout, one sample per question")
        order = np.argsort(probabilities[0], kind="stable")
        _plot_batches(axes[1], probabilities, order, (0.0, 0.0))
        axes[1].set_title(f"solve probability, {_sample_counts(batch1)}")
        axes[0].set_ylabel("readout")
        handles, names = axes[1].get_legend_handles_labels()
        figure.legend(
            handles[::-1], names[::-1], loc="outside lower center", ncols=2, markerscale=2.5
        )
        add_title(figure, title)
        return figure


def _plot_batches(
    axis: Axes,
    readouts: list[NDArray[np.float64]],
    order: NDArray[np.intp],
    shift: tuple[NDArray[np.float64] | float, NDArray[np.float64] | float],
) -> None:
    """One point per question and batch, the questions in the given order."""
    for values, offset, colour, marker, label, layer in (
        (readouts[1], shift[1], ORANGE, "^", "second batch", 1),
        (readouts[0], shift[0], BLUE, "o", "first batch", 2),
    ):
        axis.scatter(
            np.arange(len(values)),
            values[order] + offset,
            s=point_size(len(values)),
            color=colour,
            marker=marker,
            alpha=0.75,
            linewidths=0,
            label=label,
            zorder=layer,
            rasterized=True,
        )
    gap = np.abs(readouts[0] - readouts[1]).mean()
    add_note(axis, f"mean per-question gap {gap:.3f}", (0.03, 0.75), "left")
    axis.set(xlabel="question, sorted by the first batch")
    axis.set_ylim(-0.08, 1.08)
    axis.margins(x=0.015)


def _sample_counts(solve: pd.DataFrame) -> str:
    low, high = solve["n_samples"].min(), solve["n_samples"].max()
    count = f"{low}" if low == high else f"{low}–{high}"
    return f"{count} samples per question"
