"""Colours, fonts and file formats that all figures share.

The colours are Okabe and Ito's palette, which colour-blind readers can tell apart. The same figure
always gives the same bytes as PDF, PNG and SVG. Clouds of points are rasterised inside PDF and SVG,
which would otherwise hold one object per sampled response. Matplotlib is imported when a figure is
drawn: Snakemake's own process, which reads the catalogue, does not need it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap.io import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, AMBER, GREY = "#56B4E9", "#E69F00", "#7f7f7f"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, "#000000", GREY]
MARKERS = "osD^vPX*"
TITLE_SIZE = 9.5
SUBSET_STYLE = {"leaked": (BLUE, "o"), "unleaked": (ORANGE, "^")}  # colour and marker
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "svg.hashsalt": "zerogap",
    "pdf.fonttype": 42,
}
# Without dates and versions, which would make two equal figures differ.
_METADATA: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}


@contextmanager
def styled() -> Iterator[None]:
    """The style of all figures, without a window."""
    import matplotlib as mpl
    from matplotlib.rcsetup import cycler

    mpl.use("Agg")
    with mpl.rc_context(_STYLE | {"axes.prop_cycle": cycler(color=CYCLE)}):
        yield


@contextmanager
def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], title: str = "", **options: Any
) -> Iterator[tuple["Figure", Any]]:
    """A figure to draw into and its axes, shape (n_rows, n_columns).

    Args:
        n_rows: Rows of panels.
        n_columns: Columns of panels.
        size: Width and height in inches.
        title: The setting, over the panels.
        options: Of `matplotlib.pyplot.subplots`.
    """
    import matplotlib.pyplot as plt

    with styled():
        figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, **options)
        yield figure, axes
        if title:
            figure.suptitle(title, fontsize=TITLE_SIZE)


def save(figure: "Figure", prefix: str | Path) -> None:
    """Write `prefix`.pdf, .png (200 dpi) and .svg, and close the figure."""
    import matplotlib.pyplot as plt

    for suffix in _METADATA:
        write(figure, f"{prefix}{suffix}")
    plt.close(figure)


def write(figure: "Figure", path: str | Path) -> None:
    """Write one file; its suffix, .pdf, .png (200 dpi) or .svg, is the format."""
    suffix = Path(path).suffix
    with styled(), atomic.replacing(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], metadata=_METADATA[suffix])


def curve_style(k: int) -> dict[str, Any]:
    """How the k-th curve of a figure is drawn; no two of the first sixteen look the same."""
    return {
        "color": CYCLE[k % len(CYCLE)],
        "linestyle": ("-", "--")[k // len(CYCLE) % 2],
        "marker": MARKERS[k % len(MARKERS)],
        "markersize": 4,
        "linewidth": 1.2,
    }


def add_points(axis: "Axes", x: Any, y: Any, size: float, colour: str, **options: Any) -> None:
    """Draw points without edges, rasterised in PDF and SVG."""
    axis.scatter(x, y, s=size, color=colour, linewidths=0, rasterized=True, **options)


def add_note(axis: "Axes", text: str, position: tuple[float, float], align: str) -> None:
    """Write a text into a panel, at a position in axes coordinates, on a white box."""
    box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    axis.text(*position, text, transform=axis.transAxes, ha=align, fontsize=7.5, bbox=box, zorder=5)


def point_size(n_questions: int) -> float:
    """Size of a point, large enough for a hundred questions and small enough for a thousand."""
    return float(np.clip(900 / max(n_questions, 1), 2.0, 12.0))
