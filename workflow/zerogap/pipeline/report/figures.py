"""All figures of a run: what each is made of; figures.yaml has their words.

A new figure is one entry in both and one function that draws it. The target ``figure_<name>``
follows from the entry.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from zerogap.pipeline.report import sources
from zerogap.pipeline.report.entry import Source, entries, made_of
from zerogap.pipeline.report.sources import CLEAN, TITLE
from zerogap.reporting.figures import (
    plot_mechanism,
    plot_readout_variance,
    plot_scatter,
    plot_strata,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST_PAGE = ("mechanism", "readout_variance")  # Figures 1 and 2

_SOURCES: dict[str, Source["Figure"]] = {
    "mechanism": made_of(plot_mechanism, sources.OVERLAP, sources.RANKS, TITLE),
    "readout_variance": made_of(plot_readout_variance, CLEAN, sources.CLEAN_BATCH2, TITLE),
    "scatter": made_of(plot_scatter, CLEAN, sources.STRATEGIES, TITLE),
    "strata": made_of(plot_strata, CLEAN, sources.STRATEGIES_AND_ALL_ZERO, TITLE, sources.BINS),
}
FIGURES = entries(Path(__file__).with_suffix(".yaml"), _SOURCES)
