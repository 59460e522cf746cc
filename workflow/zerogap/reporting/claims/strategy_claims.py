"""What the paper says about the strategies (Section 5.3)."""

from collections.abc import Callable, Iterable

from zerogap.reporting.claims.checks import (
    Check,
    Leak,
    lower,
    lower_in_primary,
    lower_in_settings,
    number_within,
    paired_difference,
    settings,
    with_interval,
)
from zerogap.reporting.claims.verdict import (
    CANNOT_TELL,
    Claim,
    Evidence,
    RunResults,
    below_zero,
    combined,
    difference,
    within,
)
from zerogap.reporting.render import Cell
from zerogap.strategies.registry import RAIL_N

NEARLY_EQUAL = 0.02  # in SA-PPG; the largest difference of TED in the paper is 0.018
SLIGHTLY = 0.05  # in SA-PPG; LNE-blocking's largest lead over Identity in the paper is 0.033
MAX_THRESHOLD_SPREAD = 0.008  # the paper's own number
JUDGED_THRESHOLDS = ("railcap_n3", "railcap", "railcap_n5", "railcap_n7")  # the best may be n=1
NOT_NARROWING = "pythia"  # Table 3: 0.0098 on GSM8K, 0.0199 on PQ


def _shortcut_is_runner_up(results: RunResults) -> Iterable[Evidence]:
    for setting in settings(results):
        comparisons = [
            evidence
            for strategy, reference in (
                ("railcap", "shortcut"),
                ("shortcut", "identity"),
                ("shortcut", "ted"),
                ("shortcut", "lne_blocking"),
            )
            for evidence in lower(results, setting, "sa_ppg", strategy, reference)
        ]
        if len(comparisons) == 4:
            verdict = combined([evidence.verdict for evidence in comparisons])
            yield Evidence(verdict, " ".join(evidence.sentence for evidence in comparisons))


def _nearly_equal(gap: Cell) -> str:
    return within(gap, -NEARLY_EQUAL, NEARLY_EQUAL)


def _slightly_lower(gap: Cell) -> str:
    return combined([below_zero(gap), within(gap, -SLIGHTLY, float("inf"))])


def _compared_with_identity(
    strategy: str, name: str, judge: Callable[[Cell], str], leak: Leak | None = None
) -> Check:
    """A verdict on SA-PPG minus that of Identity."""

    def check(results: RunResults) -> Iterable[Evidence]:
        for setting in settings(results, leak):
            gap = paired_difference(results, setting, "sa_ppg", strategy, "identity")
            if gap is not None:
                yield Evidence(
                    judge(gap),
                    f"{results.labels.setting(*setting)}: SA-PPG of {name} minus that of "
                    f"Identity: {with_interval(gap)}.",
                )

    return check


def _shortcut_lead_narrows(results: RunResults) -> Iterable[Evidence]:
    labels = results.labels
    for model, benchmark in settings(results, "paraphrase"):
        original = results.paraphrase_of[benchmark]
        if model == NOT_NARROWING or original == benchmark:
            continue
        lead, original_lead = (
            paired_difference(results, (model, name), "sa_ppg", "identity", "shortcut")
            for name in (benchmark, original)
        )
        if lead is None or original_lead is None:
            continue
        change = difference(lead, original_lead)
        yield Evidence(
            below_zero(change),
            f"{labels.models.get(model, model)}: Shortcut's lead over Identity is "
            f"{with_interval(original_lead)} on {labels.benchmarks.get(original, original)} and "
            f"{with_interval(lead)} on {labels.benchmarks.get(benchmark, benchmark)}, a change of "
            f"{with_interval(change)}.",
        )


def _threshold_is_robust(results: RunResults) -> Iterable[Evidence]:
    thresholds = ("railcap_n1", *JUDGED_THRESHOLDS)
    values = {
        row: cell.value
        for row in thresholds
        if (cell := results.metrics.get(*results.setting, row, "sa_ppg")) is not None
        and cell.value is not None
    }
    if len(values) < 2:
        return
    best = min(values, key=values.__getitem__)
    names = {**results.labels.strategies, **results.labels.configurations}
    for row in JUDGED_THRESHOLDS:
        if row == best or row not in values:
            continue
        gap = paired_difference(results, results.setting, "sa_ppg", row, best)
        if gap is not None:
            yield Evidence(
                within(gap, float("-inf"), MAX_THRESHOLD_SPREAD),
                f"{results.labels.setting(*results.setting)}: SA-PPG of {names.get(row, row)} "
                f"minus that of the best, {names.get(best, best)}: {with_interval(gap)}.",
            )
    if num_missing := len(thresholds) - len(values):
        yield Evidence(
            CANNOT_TELL,
            f"{num_missing} of {len(thresholds)} values of n are missing from the run.",
        )


def _with_the_papers_n(check: Check) -> Check:
    """The check, without evidence where RailCap has another n: the claim names the paper's."""

    def check_if_equal(results: RunResults) -> Iterable[Evidence]:
        return check(results) if results.rail_n == RAIL_N else ()

    return check_if_equal


STRATEGY_CLAIMS = (
    Claim(
        "railcap_lowest",
        "Section 5.3.1, Table 3",
        "RailCap has the lowest SA-PPG in every setting.",
        "It is below each of the four others in every setting of the run.",
        lower_in_settings(
            ("railcap", "identity"),
            ("railcap", "ted"),
            ("railcap", "shortcut"),
            ("railcap", "lne_blocking"),
        ),
    ),
    Claim(
        "ted_is_identity",
        "Section 5.3.1, Table 3",
        "TED is nearly indistinguishable from Identity in every setting.",
        f"SA-PPG within {NEARLY_EQUAL}; the largest difference in the paper is 0.018.",
        _compared_with_identity("ted", "TED", _nearly_equal),
    ),
    Claim(
        "shortcut_runner_up",
        "Section 5.3.1, Table 3",
        "Shortcut is the runner-up in five of the six settings.",
        "It is behind RailCap and ahead of Identity, TED and LNE-blocking, with one exception in "
        "six settings; a run with fewer settings may have none.",
        _shortcut_is_runner_up,
        exception_in=6,
    ),
    Claim(
        "lne_behind",
        "Section 5.3.1, Table 3",
        "LNE-blocking trails both Shortcut and RailCap in all six settings.",
        "Both differences have this sign in every setting of the run.",
        lower_in_settings(("shortcut", "lne_blocking"), ("railcap", "lne_blocking")),
    ),
    Claim(
        "lne_better_on_gsm8k",
        "Section 5.3.1, Table 3",
        "On GSM8K, LNE-blocking is slightly better than Identity for every model.",
        f"SA-PPG is lower, by at most {SLIGHTLY}; the paper's leads are 0.033, 0.009 and 0.005.",
        _compared_with_identity("lne_blocking", "LNE-blocking", _slightly_lower, "verbatim"),
    ),
    Claim(
        "lne_worse_on_pq",
        "Section 5.3.1, Table 3",
        "On PQ, LNE-blocking is worse than Identity for every model.",
        "The difference has this sign for every model of the run.",
        lower_in_settings(("identity", "lne_blocking"), leak="paraphrase"),
    ),
    Claim(
        "shortcut_lead_narrows",
        "Section 5.3.1, Table 3",
        "Shortcut's lead over Identity narrows visibly on PQ.",
        "The lead on PQ minus that on GSM8K is below zero for every model of the run. The paper "
        "says so of Llama-2 and Gemma; on Pythia its lead grows, so Pythia is not judged. The two "
        "benchmarks count as independent samples, which makes the interval rather too wide.",
        _shortcut_lead_narrows,
    ),
    Claim(
        "trade_off",
        "Section 5.3.2, Table 4",
        "As n grows, the residual component S-Δ⁺ rises and the damage component S-Δ⁻ falls.",
        "From n=1 to n=4 and from n=3 to n=4. Beyond n=4 the paper's own table does not continue: "
        "n=5 and n=7 have less S-Δ⁺ and more S-Δ⁻ than n=4.",
        _with_the_papers_n(
            lower_in_primary(
                ("s_delta_plus", "railcap_n1", "railcap"),
                ("s_delta_plus", "railcap_n3", "railcap"),
                ("s_delta_minus", "railcap", "railcap_n1"),
                ("s_delta_minus", "railcap", "railcap_n3"),
            )
        ),
    ),
    Claim(
        "parity",
        "Section 5.3.2, Table 4",
        "n=4 brings the two components close to parity.",
        f"S-Δ⁺ minus S-Δ⁻ is within {NEARLY_EQUAL}; in the paper it is -0.003.",
        _with_the_papers_n(
            number_within(
                "s_delta_difference_railcap",
                -NEARLY_EQUAL,
                NEARLY_EQUAL,
                "RailCap, S-Δ⁺ minus S-Δ⁻",
            )
        ),
    ),
    Claim(
        "threshold",
        "Section 5.3.2, Table 4",
        "The choice of n is robust: n from 3 to 7 stays within 0.008 of the best SA-PPG.",
        f"SA-PPG of each n from 3 to 7 is at most {MAX_THRESHOLD_SPREAD} above the run's best, n=1 "
        "included.",
        _with_the_papers_n(_threshold_is_robust),
    ),
    Claim(
        "cap_beats_ban",
        "Section 5.3.2, Table 4",
        "Banning the rail token instead of capping it raises the damage S-Δ⁻ and SA-PPG.",
        "Both differences have this sign.",
        lower_in_primary(
            ("s_delta_minus", "railcap", "railcap_ban"), ("sa_ppg", "railcap", "railcap_ban")
        ),
    ),
)
