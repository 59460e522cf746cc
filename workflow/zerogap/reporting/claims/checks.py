"""Checks that several claims have in common, and the sentences of their evidence."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from zerogap.reporting.claims.verdict import (
    CANNOT_TELL,
    Evidence,
    RunResults,
    below_zero,
    negative,
    widened,
    within,
)
from zerogap.reporting.labels import METRICS
from zerogap.reporting.render import Cell

Setting = tuple[str, str]  # (model, benchmark)
Leak = Literal["verbatim", "paraphrase"]  # the paper's GSM8K and PQ
Check = Callable[[RunResults], Iterable[Evidence]]

# 95 % intervals of differences in damage miss in up to 9.8 % of simulated runs, and in at most
# 4.6 % if they are a third wider (docs/metric-study.md).
DAMAGE_METRICS = ("delta_minus", "s_delta_minus")
DAMAGE_WIDENING = 4 / 3


def lower(
    results: RunResults, setting: Setting, metric: str, strategy: str, reference: str
) -> Iterable[Evidence]:
    """Whether `strategy` has a lower value than `reference`; nothing if either was not run."""
    gap = paired_difference(results, setting, metric, strategy, reference)
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
        f"{labels.strategy(strategy)} {number(value)}, "
        f"{labels.strategy(reference)} {number(reference_value)}, "
        f"{name} {with_interval(judged)}.",
    )


def paired_difference(
    results: RunResults, setting: Setting, metric: str, strategy: str, reference: str
) -> Cell | None:
    """The value of `strategy` minus that of `reference`; None if the run does not have it."""
    stored = results.metrics.get(*setting, strategy, f"{metric}_vs_{reference}")
    if stored is not None:
        return stored
    # Differences are stored for some references only; the sign of the opposite one is turned.
    opposite = results.metrics.get(*setting, reference, f"{metric}_vs_{strategy}")
    return opposite and negative(opposite)


def lower_in_primary(*comparisons: tuple[str, str, str]) -> Check:
    """Comparisons (metric, lower strategy, higher strategy) in the paper's single setting."""

    def check(results: RunResults) -> Iterable[Evidence]:
        yield from _all_lower(results, results.setting, comparisons)

    return check


def lower_in_settings(*comparisons: tuple[str, str], leak: Leak | None = None) -> Check:
    """Comparisons (lower, higher strategy) of SA-PPG in every setting, or those of a leak."""

    def check(results: RunResults) -> Iterable[Evidence]:
        of_sa_ppg = [("sa_ppg", *comparison) for comparison in comparisons]
        for setting in settings(results, leak):
            yield from _all_lower(results, setting, of_sa_ppg)

    return check


def _all_lower(
    results: RunResults, setting: Setting, comparisons: Sequence[tuple[str, str, str]]
) -> Iterable[Evidence]:
    """The comparisons of a claim in one setting; those that the run lacks cannot tell.

    A setting that has none of them gives no evidence.
    """
    evidence = [
        found for comparison in comparisons for found in lower(results, setting, *comparison)
    ]
    yield from evidence
    if evidence and (num_missing := len(comparisons) - len(evidence)):
        yield Evidence(
            CANNOT_TELL,
            f"{results.labels.setting(*setting)}: {num_missing} of {len(comparisons)} comparisons "
            "are missing, because the run lacks a strategy.",
        )


def settings(results: RunResults, leak: Leak | None = None) -> list[Setting]:
    """The settings of the run, or those whose questions leaked in the given form."""
    every = results.metrics.settings(results.labels)
    if leak is None:
        return every
    is_paraphrase = leak == "paraphrase"
    return [setting for setting in every if (setting[1] in results.paraphrase_of) == is_paraphrase]


def number_within(key: str, low: float, high: float, name: str) -> Check:
    """Whether a number of the text lies in a range."""

    def check(results: RunResults) -> Iterable[Evidence]:
        cell = results.numbers.get(key)
        if cell is not None:
            yield Evidence(within(cell, low, high), f"{name}: {with_interval(cell)}.")

    return check


def number_below_zero(key: str, name: str) -> Check:
    """Whether a number of the text is negative."""

    def check(results: RunResults) -> Iterable[Evidence]:
        cell = results.numbers.get(key)
        if cell is not None:
            yield Evidence(below_zero(cell), f"{name}: {with_interval(cell)}.")

    return check


def every(*checks: Check) -> Check:
    """The evidence of several checks."""

    def check(results: RunResults) -> Iterable[Evidence]:
        for one in checks:
            yield from one(results)

    return check


def number(cell: Cell) -> str:
    """A value as sentences show it."""
    return cell.format(3)


def with_interval(cell: Cell) -> str:
    """A value with its interval as sentences show it."""
    return f"{number(cell)} {cell.format_interval(3) or '(no interval)'}"
