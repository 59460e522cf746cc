"""The checks of the paper's claims, and the sentences of their evidence."""

import re
from collections.abc import Callable, Iterable
from typing import Literal

from zerogap.reporting.claims.verdict import (
    CANNOT_TELL,
    Check,
    Evidence,
    RunResults,
    Setting,
    below_zero,
    combined,
    difference,
    widened,
    within,
)
from zerogap.reporting.labels import METRICS
from zerogap.reporting.render import Cell

# Which settings: the paper's single one, all, or those whose questions leaked in one form (the
# paper's GSM8K and PQ).
Where = Literal["primary", "all", "verbatim", "paraphrase"]

# 95 % intervals of differences in damage miss in up to 9.8 % of simulated runs, and in at most
# 4.6 % if they are a third wider (docs/metric.md).
DAMAGE_METRICS = ("delta_minus", "s_delta_minus")
DAMAGE_WIDENING = 4 / 3
JUDGED_THRESHOLDS = ("railcap_n3", "railcap", "railcap_n5", "railcap_n7")  # the best may be n=1
NOT_NARROWING = "pythia"  # Table 3: 0.0098 on GSM8K, 0.0199 on PQ


def lower(where: Where, *comparisons: str) -> Check:
    """Comparisons "metric: lower strategy < higher strategy"; those that a run lacks cannot tell.

    A setting that has none of them gives no evidence.
    """

    def check(results: RunResults) -> Iterable[Evidence]:
        for setting in _settings(results, where):
            evidence = [e for pair in comparisons for e in _lower(results, setting, pair)]
            yield from evidence
            if evidence and (num_missing := len(comparisons) - len(evidence)):
                yield Evidence(
                    CANNOT_TELL,
                    f"{results.labels.setting(*setting)}: {num_missing} of {len(comparisons)} "
                    "comparisons are missing, because the run lacks a strategy.",
                )

    return check


def number(key: str, name: str, judge: Callable[[Cell], str]) -> Check:
    """A verdict on one of the `RunResults.numbers`."""

    def check(results: RunResults) -> Iterable[Evidence]:
        cell = results.numbers.get(key)
        if cell is not None:
            yield Evidence(judge(cell), f"{name}: {_shown(cell)}.")

    return check


def between(low: float, high: float) -> Callable[[Cell], str]:
    """The verdict on "the value is between `low` and `high`"."""
    return lambda cell: within(cell, low, high)


def against_identity(where: Where, strategy: str, name: str, judge: Callable[[Cell], str]) -> Check:
    """A verdict on a strategy's SA-PPG minus that of Identity."""

    def check(results: RunResults) -> Iterable[Evidence]:
        for setting in _settings(results, where):
            gap = results.difference(setting, "sa_ppg", strategy, "identity")
            if gap is not None:
                yield Evidence(
                    judge(gap),
                    f"{results.labels.setting(*setting)}: SA-PPG of {name} minus that of "
                    f"Identity: {_shown(gap)}.",
                )

    return check


def slightly_lower(at_most: float) -> Callable[[Cell], str]:
    """The verdict on "lower, by at most so much"."""
    return lambda gap: combined([below_zero(gap), within(gap, -at_most, float("inf"))])


def shortcut_is_runner_up(results: RunResults) -> Iterable[Evidence]:
    """Behind RailCap and ahead of the others: one comparison per setting."""
    pairs = ["sa_ppg: railcap < shortcut"]
    pairs += [f"sa_ppg: shortcut < {other}" for other in ("identity", "ted", "lne_blocking")]
    for setting in _settings(results, "all"):
        evidence = [e for pair in pairs for e in _lower(results, setting, pair)]
        if len(evidence) == len(pairs):
            verdict = combined([e.verdict for e in evidence])
            yield Evidence(verdict, " ".join(e.sentence for e in evidence))


def shortcut_lead_narrows(results: RunResults) -> Iterable[Evidence]:
    """Shortcut's lead over Identity on paraphrases minus that on the original questions."""
    labels = results.labels
    for model, benchmark in _settings(results, "paraphrase"):
        original = results.paraphrase_of[benchmark]
        if model == NOT_NARROWING or original == benchmark:
            continue
        lead, original_lead = (
            results.difference((model, name), "sa_ppg", "identity", "shortcut")
            for name in (benchmark, original)
        )
        if lead is None or original_lead is None:
            continue
        change = difference(lead, original_lead)
        yield Evidence(
            below_zero(change),
            f"{labels.models.get(model, model)}: Shortcut's lead over Identity is "
            f"{_shown(original_lead)} on {labels.benchmarks.get(original, original)} and "
            f"{_shown(lead)} on {labels.benchmarks.get(benchmark, benchmark)}, a change of "
            f"{_shown(change)}.",
        )


def threshold_is_robust(max_spread: float) -> Check:
    """Each n from 3 to 7 against the run's best, n=1 included."""

    def check(results: RunResults) -> Iterable[Evidence]:
        thresholds = ("railcap_n1", *JUDGED_THRESHOLDS)
        cells = {row: results.metrics.get(*results.setting, row, "sa_ppg") for row in thresholds}
        values = {row: cell.value for row, cell in cells.items() if cell and cell.value is not None}
        if len(values) < 2:
            return
        best = min(values, key=values.__getitem__)
        names = {**results.labels.strategies, **results.labels.configurations}
        for row in JUDGED_THRESHOLDS:
            gap = results.difference(results.setting, "sa_ppg", row, best)
            if row != best and row in values and gap is not None:
                yield Evidence(
                    within(gap, float("-inf"), max_spread),
                    f"{results.labels.setting(*results.setting)}: SA-PPG of {names.get(row, row)} "
                    f"minus that of the best, {names.get(best, best)}: {_shown(gap)}.",
                )
        if num_missing := len(thresholds) - len(values):
            sentence = f"{num_missing} of {len(thresholds)} values of n are missing from the run."
            yield Evidence(CANNOT_TELL, sentence)

    return check


def _settings(results: RunResults, where: Where) -> list[Setting]:
    if where == "primary":
        return [results.setting]
    settings = results.metrics.settings(results.labels)
    if where == "all":
        return settings
    is_paraphrase = where == "paraphrase"
    return [s for s in settings if (s[1] in results.paraphrase_of) == is_paraphrase]


def _lower(results: RunResults, setting: Setting, comparison: str) -> Iterable[Evidence]:
    """One comparison; nothing if either strategy was not run."""
    metric, strategy, reference = re.split(": | < ", comparison)
    gap = results.difference(setting, metric, strategy, reference)
    value = results.metrics.get(*setting, strategy, metric)
    reference_value = results.metrics.get(*setting, reference, metric)
    if gap is None or value is None or reference_value is None:
        return
    labels = results.labels
    name, judged = "difference", gap
    if metric in DAMAGE_METRICS:
        name, judged = "difference (interval a third wider)", widened(gap, DAMAGE_WIDENING)
    yield Evidence(
        below_zero(judged),
        f"{labels.setting(*setting)}, {METRICS[metric]}: "
        f"{labels.strategy(strategy)} {value.format(3)}, "
        f"{labels.strategy(reference)} {reference_value.format(3)}, {name} {_shown(judged)}.",
    )


def _shown(cell: Cell) -> str:
    """A value with its interval as sentences show it."""
    return f"{cell.format(3)} {cell.format_interval(3) or '(no interval)'}"
