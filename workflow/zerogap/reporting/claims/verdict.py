"""How a claim is checked against a run: evidence, its verdict, and the verdict on the claim.

A claim makes one or more comparisons. A comparison is supported if its whole interval is on the
claim's side, not supported if the whole interval is on the other side, and cannot tell otherwise,
or without an interval. A claim is supported if all its comparisons are, and not supported if one of
them is not; a claim about "five of six settings" allows one exception in six.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell
from zerogap.strategies.registry import RAIL_N

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = "supported", "not supported", "cannot tell"
VERDICTS = (SUPPORTED, NOT_SUPPORTED, CANNOT_TELL)
Setting = tuple[str, str]  # (model, benchmark)


@dataclass(frozen=True)
class RunResults:
    """What a run measured.

    Attributes:
        metrics: Metric values of all models and benchmarks.
        setting: The setting of the paper's single-setting experiments.
        numbers: Key to value, in that setting: the paper's inline numbers and the memorisation
            check.
        paraphrase_of: Benchmark contaminated with paraphrases (the paper's PQ) to the benchmark
            whose questions they paraphrase (the paper's GSM8K).
        rail_n: RailCap's n in the run; None without RailCap.
        labels: Names to show.
    """

    metrics: MetricTable
    setting: Setting
    numbers: Mapping[str, Cell]
    paraphrase_of: Mapping[str, str]
    rail_n: int | None
    labels: Labels

    def difference(self, setting: Setting, metric: str, first: str, second: str) -> Cell | None:
        """The value of the first strategy minus the second's, paired; None if not in the run."""
        stored = self.metrics.get(*setting, first, f"{metric}_vs_{second}")
        if stored is not None:
            return stored
        # Differences are stored for some references only; the sign of the opposite one is turned.
        opposite = self.metrics.get(*setting, second, f"{metric}_vs_{first}")
        return opposite and negative(opposite)


@dataclass(frozen=True)
class Evidence:
    """One comparison: its verdict, and a sentence with the numbers."""

    verdict: str
    sentence: str


Check = Callable[[RunResults], Iterable[Evidence]]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        key: Name in the CSV file.
        place: Section, table or figure of the paper.
        text: The claim.
        criterion: The test, stated before the run. The paper's own numbers pass it.
        checks: Each collects evidence from a run; none if the run lacks what it needs.
        exception_in: Of this many comparisons, one may fail; None if none may.
        only_with_the_papers_n: Whether it has no evidence where RailCap has another n, because it
            names the paper's.
    """

    key: str
    place: str
    text: str
    criterion: str
    checks: tuple[Check, ...]
    exception_in: int | None = None
    only_with_the_papers_n: bool = False


def claim(key: str, place: str, text: str, criterion: str, *checks: Check, **options: Any) -> Claim:
    """A claim from its checks; arguments as of `Claim`."""
    return Claim(key, place, text, criterion, checks, **options)


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict on a claim, with its evidence."""

    claim: Claim
    verdict: str
    evidence: tuple[Evidence, ...]


def evaluate_claims(claims: Iterable[Claim], results: RunResults) -> list[ClaimVerdict]:
    """Check every claim, in order."""
    verdicts = []
    for claim in claims:
        applies = results.rail_n == RAIL_N or not claim.only_with_the_papers_n
        checks = claim.checks if applies else ()
        evidence = tuple(found for check in checks for found in check(results))
        exceptions = len(evidence) // claim.exception_in if claim.exception_in else 0
        verdict = combined([e.verdict for e in evidence], exceptions)
        verdicts.append(ClaimVerdict(claim, verdict, evidence))
    return verdicts


def combined(verdicts: Sequence[str], exceptions: int = 0) -> str:
    """The verdict on several comparisons together, of which `exceptions` may fail."""
    if verdicts and verdicts.count(SUPPORTED) >= len(verdicts) - exceptions:
        return SUPPORTED
    return NOT_SUPPORTED if verdicts.count(NOT_SUPPORTED) > exceptions else CANNOT_TELL


def within(interval: Cell, low: float, high: float) -> str:
    """The verdict on "the value is between `low` and `high`"."""
    if interval.low is None or interval.high is None:
        return CANNOT_TELL
    if low <= interval.low and interval.high <= high:
        return SUPPORTED
    return NOT_SUPPORTED if interval.high < low or interval.low > high else CANNOT_TELL


def below_zero(difference: Cell) -> str:
    """The verdict on "the difference is negative"; an interval that touches 0 cannot tell."""
    if not difference.excludes_zero:
        return CANNOT_TELL
    return SUPPORTED if difference.high is not None and difference.high < 0 else NOT_SUPPORTED


def widened(cell: Cell, factor: float) -> Cell:
    """The number with an interval that is `factor` times as wide on both sides."""
    if cell.value is None or cell.low is None or cell.high is None:
        return cell
    low, high = (cell.value + factor * (end - cell.value) for end in (cell.low, cell.high))
    return Cell(cell.value, low, high)


def negative(cell: Cell) -> Cell:
    """The number and its interval with the opposite sign."""
    value, low, high = (None if x is None else -x for x in (cell.value, cell.high, cell.low))
    return Cell(value, low, high)


def difference(first: Cell, second: Cell) -> Cell:
    """`first` minus `second`, of two estimates with separate intervals.

    The distance of each end from the difference is the root of the sum of the squared distances of
    the estimates' ends from the estimates (Zou and Donner, Statistics in Medicine 27, 2008). Exact
    for independent estimates; too wide for positively correlated ones, such as two benchmarks with
    the same questions.
    """
    if first.value is None or second.value is None:
        return Cell()
    value = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Cell(value)
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Cell(value, value - below, value + above)
