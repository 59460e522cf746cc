"""What the paper says about contaminated models and about metrics (Sections 1 and 5.2)."""

from collections.abc import Iterable

from zerogap.reporting.claims.checks import (
    Check,
    every,
    lower_in_primary,
    number_below_zero,
    number_within,
    with_interval,
)
from zerogap.reporting.claims.verdict import Claim, Evidence, RunResults, within

# Figure 1 has no numbers. These bounds are acceptance criteria of toy models, set when the first of
# their runs were known.
MIN_LEAKED_ROUGE_L = 0.85
MAX_UNLEAKED_ROUGE_L = 0.65
MAX_EXCESS = 0.05  # over the clean model's overlap with its own greedy responses
# A quarter on both sides of the paper's 0.041 and 0.190.
PROBABILITY_GAP = (0.031, 0.051)
DISCRETE_GAP = (0.143, 0.237)
ANY = float("inf")


def _memorisation_within(column: str, low: float, high: float, name: str) -> Check:
    """Whether a number of the memorisation check lies in a range, in the primary setting."""

    def check(results: RunResults) -> Iterable[Evidence]:
        cell = results.memorisation.get(results.setting, {}).get(column)
        if cell is not None:
            setting = results.labels.setting(*results.setting)
            yield Evidence(within(cell, low, high), f"{setting}, {name}: {with_interval(cell)}.")

    return check


METRIC_CLAIMS = (
    Claim(
        "collapse",
        "Section 1, Figure 1 a",
        "On leaked questions the contaminated model's responses collapse onto its own greedy "
        "trajectory.",
        "In the figure's setting, the mean ROUGE-L with the greedy response is at least "
        f"{MIN_LEAKED_ROUGE_L} on leaked questions, and on unleaked ones it stays below that.",
        every(
            _memorisation_within("rouge_leaked", MIN_LEAKED_ROUGE_L, 1, "ROUGE-L, leaked"),
            _memorisation_within("rouge_unleaked", 0, MIN_LEAKED_ROUGE_L, "ROUGE-L, unleaked"),
        ),
    ),
    Claim(
        "dispersion",
        "Section 1, Figure 1 c",
        "On unleaked questions its responses disperse over many paths.",
        "In the figure's setting, the mean ROUGE-L with the greedy response is at most "
        f"{MAX_UNLEAKED_ROUGE_L} on unleaked questions, and at most {MAX_EXCESS} above that of "
        "the clean model with its own greedy responses.",
        every(
            _memorisation_within("rouge_unleaked", 0, MAX_UNLEAKED_ROUGE_L, "ROUGE-L, unleaked"),
            _memorisation_within(
                "excess", -ANY, MAX_EXCESS, "ROUGE-L, unleaked, minus the clean model's"
            ),
        ),
    ),
    Claim(
        "runner_up",
        "Section 1, Figure 1 b",
        "Where the two models disagree, the clean model's token is in about half of the cases the "
        "contaminated model's runner-up.",
        "Between 0.4 and 0.6 of the disagreements on leaked questions.",
        number_within(
            "share_runner_up", 0.4, 0.6, "Share of disagreements with the clean token at rank 2"
        ),
    ),
    Claim(
        "never_solved",
        "Section 1",
        "The clean model never solves nearly a quarter of the questions.",
        "Between 0.2 and 0.3 of the questions have no correct response among the samples.",
        number_within("share_never_solved", 0.2, 0.3, "Share of questions never solved"),
    ),
    Claim(
        "reversal",
        "Section 5.2.1, Table 1",
        "The metric reverses the verdict: LNE-blocking is better than RailCap under G-AP, but "
        "worse than both RailCap and Shortcut under SA-PPG.",
        "The three differences have these signs.",
        lower_in_primary(
            ("g_ap", "lne_blocking", "railcap"),
            ("sa_ppg", "railcap", "lne_blocking"),
            ("sa_ppg", "shortcut", "lne_blocking"),
        ),
    ),
    Claim(
        "readout",
        "Section 5.2.2, Figure 2",
        "The solve probability reproduces between two batches of one model, the 0/1 readout does "
        "not: mean per-question gaps of 0.041 and 0.190.",
        "Each gap is within a quarter of the paper's: {}–{} and {}–{}. The gap of the 0/1 readout "
        "is the one expected over every choice of the two samples. That it is the larger one is "
        "not a test: it always is.".format(*PROBABILITY_GAP, *DISCRETE_GAP),
        every(
            number_within(
                "readout_gap_probability", *PROBABILITY_GAP, "Gap of the solve probabilities"
            ),
            number_within("readout_gap_01_expected", *DISCRETE_GAP, "Gap of the 0/1 readouts"),
        ),
    ),
    Claim(
        "cancellation",
        "Section 5.2.2, Table 2",
        "LNE-blocking does more damage (Δ⁻) than RailCap, yet its G-APP is lower, because damage "
        "cancels remaining contamination; under A-PPG RailCap is better.",
        "The three differences have these signs.",
        lower_in_primary(
            ("delta_minus", "railcap", "lne_blocking"),
            ("g_app", "lne_blocking", "railcap"),
            ("a_ppg", "railcap", "lne_blocking"),
        ),
    ),
    Claim(
        "g_app_of_lne",
        "Section 5.2.2, Tables 1 and 2",
        "LNE-blocking's false perfection is not estimation noise: its G-APP is even closer to zero "
        "than its single-observation G-AP.",
        "G-APP minus G-AP is below zero.",
        number_below_zero("g_app_minus_g_ap_lne", "LNE-blocking, G-APP minus G-AP"),
    ),
    Claim(
        "all_zero_a_ppg",
        "Section 5.2.2, Table 2",
        "Under A-PPG, failing every question is better than Identity, TED and Shortcut.",
        "The three differences have this sign.",
        lower_in_primary(
            ("a_ppg", "all_zero", "identity"),
            ("a_ppg", "all_zero", "ted"),
            ("a_ppg", "all_zero", "shortcut"),
        ),
    ),
    Claim(
        "all_zero_sa_ppg",
        "Section 5.2.2, Table 2",
        "SA-PPG ranks failing every question as the worst of all strategies.",
        "All five differences have this sign.",
        lower_in_primary(
            ("sa_ppg", "identity", "all_zero"),
            ("sa_ppg", "ted", "all_zero"),
            ("sa_ppg", "shortcut", "all_zero"),
            ("sa_ppg", "lne_blocking", "all_zero"),
            ("sa_ppg", "railcap", "all_zero"),
        ),
    ),
)
