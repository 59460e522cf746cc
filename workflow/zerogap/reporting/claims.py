"""The claims of the paper, in its order."""

from zerogap.analysis.memorisation import MAX_UNLEAKED_ROUGE_L, MIN_LEAKED_ROUGE_L
from zerogap.reporting.claim_checks import (
    Claim,
    against_identity,
    all_of,
    below_zero,
    between,
    lower,
    number,
    shortcut_is_runner_up,
    shortcut_lead_narrows,
    slightly_lower,
    threshold_is_robust,
)

MAX_EXCESS = 0.05  # over the clean model's overlap with its own greedy responses
# A quarter on both sides of the paper's 0.041 and 0.190.
PROBABILITY_GAP = (0.031, 0.051)
DISCRETE_GAP = (0.143, 0.237)
NEARLY_EQUAL = 0.02  # in SA-PPG; the largest difference of TED in the paper is 0.018
SLIGHTLY = 0.05  # in SA-PPG; LNE-blocking's largest lead over Identity in the paper is 0.033
MAX_THRESHOLD_SPREAD = 0.008  # the paper's own number
ANY = float("inf")
BASELINES = ("identity", "ted", "shortcut")

CLAIMS = (
    # What contaminated models do and what metrics show (Sections 1 and 5.2).
    Claim(
        "collapse",
        "Section 1, Figure 1 a",
        "On leaked questions the contaminated model's responses collapse onto its own greedy "
        "trajectory.",
        "In the figure's setting, the mean ROUGE-L with the greedy response is at least "
        f"{MIN_LEAKED_ROUGE_L} on leaked questions, and on unleaked ones it stays below that.",
        all_of(
            number("rouge_leaked", "ROUGE-L, leaked", between(MIN_LEAKED_ROUGE_L, 1)),
            number("rouge_unleaked", "ROUGE-L, unleaked", between(0, MIN_LEAKED_ROUGE_L)),
        ),
    ),
    Claim(
        "dispersion",
        "Section 1, Figure 1 c",
        "On unleaked questions its responses disperse over many paths.",
        "In the figure's setting, the mean ROUGE-L with the greedy response is at most "
        f"{MAX_UNLEAKED_ROUGE_L} on unleaked questions, and at most {MAX_EXCESS} above that of "
        "the clean model with its own greedy responses.",
        all_of(
            number("rouge_unleaked", "ROUGE-L, unleaked", between(0, MAX_UNLEAKED_ROUGE_L)),
            number(
                "excess", "ROUGE-L, unleaked, minus the clean model's", between(-ANY, MAX_EXCESS)
            ),
        ),
    ),
    Claim(
        "runner_up",
        "Section 1, Figure 1 b",
        "Where the two models disagree, the clean model's token is in about half of the cases the "
        "contaminated model's runner-up.",
        "Between 0.4 and 0.6 of the disagreements on leaked questions.",
        number(
            "share_runner_up",
            "Share of disagreements with the clean token at rank 2",
            between(0.4, 0.6),
        ),
    ),
    Claim(
        "never_solved",
        "Section 1",
        "The clean model never solves nearly a quarter of the questions.",
        "Between 0.2 and 0.3 of the questions have no correct response among the samples.",
        number("share_never_solved", "Share of questions never solved", between(0.2, 0.3)),
    ),
    Claim(
        "reversal",
        "Section 5.2.1, Table 1",
        "The metric reverses the verdict: LNE-blocking is better than RailCap under G-AP, but "
        "worse than both RailCap and Shortcut under SA-PPG.",
        "The three differences have these signs.",
        lower(
            "primary",
            "g_ap: lne_blocking < railcap",
            "sa_ppg: railcap < lne_blocking",
            "sa_ppg: shortcut < lne_blocking",
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
        all_of(
            number(
                "readout_gap_probability",
                "Gap of the solve probabilities",
                between(*PROBABILITY_GAP),
            ),
            number("readout_gap_01_expected", "Gap of the 0/1 readouts", between(*DISCRETE_GAP)),
        ),
    ),
    Claim(
        "cancellation",
        "Section 5.2.2, Table 2",
        "LNE-blocking does more damage (Δ⁻) than RailCap, yet its G-APP is lower, because damage "
        "cancels remaining contamination; under A-PPG RailCap is better.",
        "The three differences have these signs.",
        lower(
            "primary",
            "delta_minus: railcap < lne_blocking",
            "g_app: lne_blocking < railcap",
            "a_ppg: railcap < lne_blocking",
        ),
    ),
    Claim(
        "g_app_of_lne",
        "Section 5.2.2, Tables 1 and 2",
        "LNE-blocking's false perfection is not estimation noise: its G-APP is even closer to zero "
        "than its single-observation G-AP.",
        "G-APP minus G-AP is below zero.",
        number("g_app_minus_g_ap_lne", "LNE-blocking, G-APP minus G-AP", below_zero),
    ),
    Claim(
        "all_zero_a_ppg",
        "Section 5.2.2, Table 2",
        "Under A-PPG, failing every question is better than Identity, TED and Shortcut.",
        "The three differences have this sign.",
        lower("primary", *(f"a_ppg: all_zero < {other}" for other in BASELINES)),
    ),
    Claim(
        "all_zero_sa_ppg",
        "Section 5.2.2, Table 2",
        "SA-PPG ranks failing every question as the worst of all strategies.",
        "All five differences have this sign.",
        lower(
            "primary",
            *(f"sa_ppg: {s} < all_zero" for s in (*BASELINES, "lne_blocking", "railcap")),
        ),
    ),
    # The strategies (Section 5.3).
    Claim(
        "railcap_lowest",
        "Section 5.3.1, Table 3",
        "RailCap has the lowest SA-PPG in every setting.",
        "It is below each of the four others in every setting of the run.",
        lower("all", *(f"sa_ppg: railcap < {s}" for s in (*BASELINES, "lne_blocking"))),
    ),
    Claim(
        "ted_is_identity",
        "Section 5.3.1, Table 3",
        "TED is nearly indistinguishable from Identity in every setting.",
        f"SA-PPG within {NEARLY_EQUAL}; the largest difference in the paper is 0.018.",
        against_identity("all", "ted", "TED", between(-NEARLY_EQUAL, NEARLY_EQUAL)),
    ),
    Claim(
        "shortcut_runner_up",
        "Section 5.3.1, Table 3",
        "Shortcut is the runner-up in five of the six settings.",
        "It is behind RailCap and ahead of Identity, TED and LNE-blocking, with one exception in "
        "six settings; a run with fewer settings may have none.",
        shortcut_is_runner_up,
        exception_in=6,
    ),
    Claim(
        "lne_behind",
        "Section 5.3.1, Table 3",
        "LNE-blocking trails both Shortcut and RailCap in all six settings.",
        "Both differences have this sign in every setting of the run.",
        lower("all", "sa_ppg: shortcut < lne_blocking", "sa_ppg: railcap < lne_blocking"),
    ),
    Claim(
        "lne_better_on_gsm8k",
        "Section 5.3.1, Table 3",
        "On GSM8K, LNE-blocking is slightly better than Identity for every model.",
        f"SA-PPG is lower, by at most {SLIGHTLY}; the paper's leads are 0.033, 0.009 and 0.005.",
        against_identity("verbatim", "lne_blocking", "LNE-blocking", slightly_lower(SLIGHTLY)),
    ),
    Claim(
        "lne_worse_on_pq",
        "Section 5.3.1, Table 3",
        "On PQ, LNE-blocking is worse than Identity for every model.",
        "The difference has this sign for every model of the run.",
        lower("paraphrase", "sa_ppg: identity < lne_blocking"),
    ),
    Claim(
        "shortcut_lead_narrows",
        "Section 5.3.1, Table 3",
        "Shortcut's lead over Identity narrows visibly on PQ.",
        "The lead on PQ minus that on GSM8K is below zero for every model of the run. The paper "
        "says so of Llama-2 and Gemma; on Pythia its lead grows, so Pythia is not judged. The two "
        "benchmarks count as independent samples, which makes the interval rather too wide.",
        shortcut_lead_narrows,
    ),
    Claim(
        "trade_off",
        "Section 5.3.2, Table 4",
        "As n grows, the residual component S-Δ⁺ rises and the damage component S-Δ⁻ falls.",
        "From n=1 to n=4 and from n=3 to n=4. Beyond n=4 the paper's own table does not continue: "
        "n=5 and n=7 have less S-Δ⁺ and more S-Δ⁻ than n=4.",
        lower(
            "primary",
            "s_delta_plus: railcap_n1 < railcap",
            "s_delta_plus: railcap_n3 < railcap",
            "s_delta_minus: railcap < railcap_n1",
            "s_delta_minus: railcap < railcap_n3",
        ),
        only_with_the_papers_n=True,
    ),
    Claim(
        "parity",
        "Section 5.3.2, Table 4",
        "n=4 brings the two components close to parity.",
        f"S-Δ⁺ minus S-Δ⁻ is within {NEARLY_EQUAL}; in the paper it is -0.003.",
        number(
            "s_delta_difference_railcap",
            "RailCap, S-Δ⁺ minus S-Δ⁻",
            between(-NEARLY_EQUAL, NEARLY_EQUAL),
        ),
        only_with_the_papers_n=True,
    ),
    Claim(
        "threshold",
        "Section 5.3.2, Table 4",
        "The choice of n is robust: n from 3 to 7 stays within 0.008 of the best SA-PPG.",
        f"SA-PPG of each n from 3 to 7 is at most {MAX_THRESHOLD_SPREAD} above the run's best, n=1 "
        "included.",
        threshold_is_robust(MAX_THRESHOLD_SPREAD),
        only_with_the_papers_n=True,
    ),
    Claim(
        "cap_beats_ban",
        "Section 5.3.2, Table 4",
        "Banning the rail token instead of capping it raises the damage S-Δ⁻ and SA-PPG.",
        "Both differences have this sign.",
        lower("primary", "s_delta_minus: railcap < railcap_ban", "sa_ppg: railcap < railcap_ban"),
    ),
)
