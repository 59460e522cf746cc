"""How a claim is checked against a run: evidence, its verdict, and the verdict on the claim.

A claim makes one or more comparisons. A comparison is supported if its whole interval is on the
claim's side, not supported if the whole interval is on the other side, and cannot tell otherwise,
or without an interval. A claim is supported if all its comparisons are, and not supported if one of
them is not.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = "supported", "not supported", "cannot tell"
VERDICTS = (SUPPORTED, NOT_SUPPORTED, CANNOT_TELL)


@dataclass(frozen=True)
class RunResults:
    """What a run measured.

    Attributes:
        metrics: Metric values of all models and benchmarks.
        setting: (model, benchmark) of the paper's single-setting experiments.
        numbers: Key to value, the table `inline_numbers` of that setting.
        collapse: (model, benchmark) to the difference of ROUGE-L between leaked and unleaked
            questions.
        labels: Names to show.
    """

    metrics: MetricTable
    setting: tuple[str, str]
    numbers: Mapping[str, Cell]
    collapse: Mapping[tuple[str, str], Cell]
    labels: Labels


@dataclass(frozen=True)
class Evidence:
    """One comparison: its verdict, and a sentence with the numbers."""

    verdict: str
    sentence: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        key: Name in the CSV file.
        place: Section, table or figure of the paper.
        text: The claim.
        check: Collects the evidence from a run; nothing if the run lacks what it needs.
        criterion: How words that are not numbers ("about half") are checked here.
    """

    key: str
    place: str
    text: str
    check: Callable[[RunResults], Iterable[Evidence]]
    criterion: str = ""


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
        evidence = tuple(claim.check(results))
        verdicts.append(ClaimVerdict(claim, _combined({e.verdict for e in evidence}), evidence))
    return verdicts


def within(interval: Cell, low: float, high: float) -> str:
    """The verdict on "the value is between `low` and `high`"."""
    if interval.low is None or interval.high is None:
        return CANNOT_TELL
    if low <= interval.low and interval.high <= high:
        return SUPPORTED
    return NOT_SUPPORTED if interval.high < low or interval.low > high else CANNOT_TELL


def below_zero(difference: Cell) -> str:
    """The verdict on "the difference is negative"; an interval that touches 0 cannot tell."""
    if difference.low is None or difference.high is None:
        return CANNOT_TELL
    if difference.high < 0:
        return SUPPORTED
    return NOT_SUPPORTED if difference.low > 0 else CANNOT_TELL


def negative(cell: Cell) -> Cell:
    """The number and its interval with the opposite sign."""
    value, low, high = (None if x is None else -x for x in (cell.value, cell.high, cell.low))
    return Cell(value, low, high)


def _combined(verdicts: set[str]) -> str:
    if verdicts == {SUPPORTED}:
        return SUPPORTED
    return NOT_SUPPORTED if NOT_SUPPORTED in verdicts else CANNOT_TELL
