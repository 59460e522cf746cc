"""The claims of the paper, in its order."""

from collections.abc import Callable, Iterable

from zerogap.reporting.claims.verdict import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    Claim,
    Evidence,
    RunResults,
    below_zero,
    negative,
    within,
)
from zerogap.reporting.labels import METRICS
from zerogap.reporting.render import Cell

BASELINES = ("identity", "ted", "shortcut", "lne_blocking")
MAX_TED_DIFFERENCE = 0.02
MAX_THRESHOLD_SPREAD = 0.008  # the paper's own number, Section 5.3.2


def _lower(
    results: RunResults, setting: tuple[str, str], metric: str, strategy: str, reference: str
) -> Iterable[Evidence]:
    """Whether `strategy` has a lower value than `reference`; nothing if either was not run."""
    # Differences are stored for some references only; the sign of the opposite one is turned.
    difference = results.metrics.get(*setting, strategy, f"{metric}_vs_{reference}")
    if difference is None:
        opposite = results.metrics.get(*setting, reference, f"{metric}_vs_{strategy}")
        difference = opposite and negative(opposite)
    value = results.metrics.get(*setting, strategy, metric)
    reference_value = results.metrics.get(*setting, reference, metric)
    if difference is None or value is None or reference_value is None:
        return
    labels = results.labels
    yield Evidence(
        below_zero(difference),
        f"{labels.setting(*setting)}, {METRICS[metric]}: "
        f"{labels.strategy(strategy)} {_number(value)}, "
        f"{labels.strategy(reference)} {_number(reference_value)}, "
        f"difference {_with_interval(difference)}.",
    )


def _reversal(results: RunResults) -> Iterable[Evidence]:
    yield from _lower(results, results.setting, "g_ap", "lne_blocking", "railcap")
    yield from _lower(results, results.setting, "sa_ppg", "railcap", "lne_blocking")
    yield from _lower(results, results.setting, "sa_ppg", "shortcut", "lne_blocking")


def _railcap_lowest(results: RunResults) -> Iterable[Evidence]:
    for setting in results.metrics.settings(results.labels):
        for baseline in BASELINES:
            yield from _lower(results, setting, "sa_ppg", "railcap", baseline)


def _all_zero(results: RunResults) -> Iterable[Evidence]:
    yield from _lower(results, results.setting, "a_ppg", "all_zero", "identity")
    for strategy in (*BASELINES, "railcap"):
        yield from _lower(results, results.setting, "sa_ppg", strategy, "all_zero")


def _cancellation(results: RunResults) -> Iterable[Evidence]:
    yield from _lower(results, results.setting, "delta_minus", "railcap", "lne_blocking")
    yield from _lower(results, results.setting, "g_app", "lne_blocking", "railcap")
    yield from _lower(results, results.setting, "a_ppg", "railcap", "lne_blocking")


def _ted_is_identity(results: RunResults) -> Iterable[Evidence]:
    for setting in results.metrics.settings(results.labels):
        difference = results.metrics.get(*setting, "ted", "sa_ppg_vs_identity")
        if difference is not None:
            yield Evidence(
                within(difference, -MAX_TED_DIFFERENCE, MAX_TED_DIFFERENCE),
                f"{results.labels.setting(*setting)}: SA-PPG of TED minus that of Identity: "
                f"{_with_interval(difference)}.",
            )


def _lne_worse_on_pq(results: RunResults) -> Iterable[Evidence]:
    for model, benchmark in results.metrics.settings(results.labels):
        if benchmark == "pq":
            yield from _lower(results, (model, benchmark), "sa_ppg", "identity", "lne_blocking")


def _threshold_is_robust(results: RunResults) -> Iterable[Evidence]:
    values = {
        row: cell.value
        for row in ("railcap_n3", "railcap", "railcap_n5", "railcap_n7")
        if (cell := results.metrics.get(*results.setting, row, "sa_ppg")) is not None
        and cell.value is not None
    }
    if len(values) < 2:
        return
    best = min(values, key=values.__getitem__)
    names = {**results.labels.strategies, **results.labels.configurations}
    for row in values:
        if row == best:
            continue
        difference = results.metrics.get(*results.setting, row, f"sa_ppg_vs_{best}")
        if difference is not None:
            yield Evidence(
                within(difference, float("-inf"), MAX_THRESHOLD_SPREAD),
                f"{results.labels.setting(*results.setting)}: SA-PPG of {names.get(row, row)} "
                f"minus that of the best, {names.get(best, best)}: {_with_interval(difference)}.",
            )


def _cap_beats_ban(results: RunResults) -> Iterable[Evidence]:
    yield from _lower(results, results.setting, "sa_ppg", "railcap", "railcap_ban")


def _probability_reproduces(results: RunResults) -> Iterable[Evidence]:
    readout = results.numbers.get("readout_gap_01")
    probability = results.numbers.get("readout_gap_probability")
    if readout is None or probability is None:
        return
    verdict = CANNOT_TELL
    if (
        readout.low is not None
        and readout.high is not None
        and probability.low is not None
        and probability.high is not None
    ):
        if probability.high < readout.low:
            verdict = SUPPORTED
        elif probability.low > readout.high:
            verdict = NOT_SUPPORTED
    yield Evidence(
        verdict,
        f"Mean per-question gap of two clean batches: {_with_interval(readout)} for the 0/1 "
        f"readout, {_with_interval(probability)} for the solve probability.",
    )


def _number_within(
    key: str, low: float, high: float, name: str
) -> Callable[[RunResults], Iterable[Evidence]]:
    def check(results: RunResults) -> Iterable[Evidence]:
        cell = results.numbers.get(key)
        if cell is not None:
            yield Evidence(within(cell, low, high), f"{name}: {_with_interval(cell)}.")

    return check


def _collapse(results: RunResults) -> Iterable[Evidence]:
    for setting, difference in results.collapse.items():
        yield Evidence(
            below_zero(negative(difference)),
            f"{results.labels.setting(*setting)}: mean ROUGE-L with the greedy response, leaked "
            f"minus unleaked questions: {_with_interval(difference)}.",
        )


def _number(cell: Cell) -> str:
    return cell.format(3)


def _with_interval(cell: Cell) -> str:
    return f"{_number(cell)} {cell.format_interval(3) or '(no interval)'}"


CLAIMS = (
    Claim(
        "collapse",
        "Section 1, Figure 1 a, c",
        "On leaked questions the contaminated model's responses collapse onto its greedy "
        "trajectory; on unleaked ones they disperse.",
        _collapse,
        criterion="Mean ROUGE-L with the greedy response is higher on leaked questions.",
    ),
    Claim(
        "runner_up",
        "Section 1, Figure 1 b",
        "Where the two models disagree, the clean model's token is in about half of the cases the "
        "contaminated model's runner-up.",
        _number_within(
            "share_runner_up", 0.4, 0.6, "Share of disagreements with the clean token at rank 2"
        ),
        criterion="Between 0.4 and 0.6 of the disagreements on leaked questions.",
    ),
    Claim(
        "never_solved",
        "Section 1",
        "The clean model never solves nearly a quarter of the questions.",
        _number_within("share_never_solved", 0.2, 0.3, "Share of questions never solved"),
        criterion="Between 0.2 and 0.3 of them have no correct response among the samples.",
    ),
    Claim(
        "reversal",
        "Section 5.2.1, Table 1",
        "The metric reverses the verdict: LNE-blocking is better than RailCap under G-AP, but "
        "worse than both RailCap and Shortcut under SA-PPG.",
        _reversal,
    ),
    Claim(
        "readout",
        "Section 5.2.2, Figure 2",
        "The solve probability reproduces between two batches of one model, the 0/1 readout does "
        "not: mean per-question gaps of 0.041 and 0.190.",
        _probability_reproduces,
        criterion="The gap of solve probabilities is smaller, and the intervals do not overlap.",
    ),
    Claim(
        "cancellation",
        "Section 5.2.2, Table 2",
        "LNE-blocking does more damage (Δ⁻) than RailCap, yet its G-APP is lower, because damage "
        "cancels remaining contamination; under A-PPG RailCap is better.",
        _cancellation,
    ),
    Claim(
        "all_zero",
        "Section 5.2.2, Table 2",
        "Failing every question is better than no mitigation under A-PPG, and the worst of all "
        "under SA-PPG.",
        _all_zero,
    ),
    Claim(
        "railcap_lowest",
        "Section 5.3.1, Table 3",
        "RailCap has the lowest SA-PPG in every setting.",
        _railcap_lowest,
    ),
    Claim(
        "ted_is_identity",
        "Section 5.3.1, Table 3",
        "TED is nearly indistinguishable from Identity in every setting.",
        _ted_is_identity,
        criterion="SA-PPG within 0.02; the largest difference in the paper is 0.018.",
    ),
    Claim(
        "lne_worse_on_pq",
        "Section 5.3.1, Table 3",
        "On PQ, LNE-blocking is worse than no mitigation for every model.",
        _lne_worse_on_pq,
    ),
    Claim(
        "threshold",
        "Section 5.3.2, Table 4",
        "The choice of n is robust: n from 3 to 7 stays within 0.008 of the best SA-PPG.",
        _threshold_is_robust,
    ),
    Claim(
        "cap_beats_ban",
        "Section 5.3.2, Table 4",
        "Capping the rail token at the runner-up is better than banning it.",
        _cap_beats_ban,
    ),
)
