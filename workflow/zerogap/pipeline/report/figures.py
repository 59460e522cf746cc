"""All figures of a run: what each is made of, and how it is presented.

A new figure is one entry here and one function that draws it. The target ``figure_<name>`` follows
from the entry.
"""

from typing import TYPE_CHECKING

from zerogap.pipeline.report import sources
from zerogap.pipeline.report.entry import PAPER, Entry, made_of
from zerogap.pipeline.report.sources import CLEAN, TITLE
from zerogap.reporting.figures.paper import plot_mechanism, plot_readout_variance
from zerogap.reporting.figures.supplementary import plot_scatter, plot_strata

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST_PAGE = ("mechanism", "readout_variance")  # Figures 1 and 2

FIGURES: dict[str, Entry["Figure"]] = {
    "mechanism": Entry(
        made_of(plot_mechanism, sources.OVERLAP, sources.RANKS, TITLE),
        "overlap with the greedy trajectory, token ranks",
        """
        Left: ROUGE-L between each sampled response and the model's own greedy response to the same
        question. A faint point is one sample, a solid point the mean of one question; memorised
        questions are close to 1. Right: the contaminated model is given the clean model's greedy
        response. For each of the first ten steps, a bar shows the ranks that it gives to the clean
        model's token where it would have chosen a different one, as shares of these disagreements
        (their number is above the bar). RailCap relies on both: returning to the greedy trajectory
        reveals memorisation, and the runner-up is often the clean model's token.
        """,
        number="1",
        section=PAPER,
    ),
    "readout_variance": Entry(
        made_of(plot_readout_variance, CLEAN, sources.CLEAN_BATCH2, TITLE),
        "0/1 readout and solve probability of two batches",
        """
        Two batches of responses of one clean model, with the questions sorted by the first batch.
        Left: one response per question, right or wrong (with vertical jitter). Where the colours
        disagree, a second evaluation of the same model contradicts the first. Right: the share of
        correct responses; the second batch should follow the first within sampling noise. The note
        in each panel gives the mean distance between the two batches per question.
        """,
        number="2",
        section=PAPER,
    ),
    "scatter": Entry(
        made_of(plot_scatter, CLEAN, sources.STRATEGIES, TITLE),
        "every question, clean model and strategy",
        """
        One point per question: how often the clean model solves it, and how often the contaminated
        model does under each strategy. A perfect restoration lies on the diagonal. Above it,
        contamination remains, as for leaked questions (blue points) under Identity. Below it, a
        strategy did damage, which unleaked questions (orange triangles) should not show. Points are
        translucent and moved by up to half a step of the grid of counts, equally in every panel. A
        question for which a strategy kept no response counts as never solved.
        """,
    ),
    "strata": Entry(
        made_of(plot_strata, CLEAN, sources.STRATEGIES_AND_ALL_ZERO, TITLE, sources.BINS),
        "gaps by the clean model's solve probability",
        """
        The mean distance to the clean model against the clean model's own solve probability;
        neighbouring strata are joined. High values on the left: questions that the clean model
        hardly solves are still inflated. High values on the right: questions that it does solve are
        damaged. The bars show the number of questions per range. SA-PPG gives every stratum the
        same weight, however few questions it has.
        """,
    ),
}
