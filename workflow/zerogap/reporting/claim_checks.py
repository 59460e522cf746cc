"""How a claim is checked against a run: evidence, its verdict, and the verdict on the claim.

A claim makes one or more comparisons. A comparison is supported if its whole interval is on the
claim's side, not supported if the whole interval is on the other side, and cannot tell otherwise,
or without an interval. A claim is supported if all its comparisons are, and not supported if one of
them is not; a claim about "five of six settings" allows one exception in six.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from zerogap.reporting.metric_table import METRICS, Labels, MetricTable
from zerogap.reporting.render import Cell
from zerogap.strategies.registry import RAIL_N

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = "supported", "not supported", "cannot tell"
VERDICTS = (SUPPORTED, NOT_SUPPORTED, CANNOT_TELL)
Setting = tuple[str, str]  # (model, benchmark)
# Which settings: the paper's single one, all, or those whose questions leaked in one form (the
# paper's GSM8K and PQ).
Where = Literal["primary", "all", "verbatim", "paraphrase"]

# 95 % intervals of differences in damage miss in up to 9.8 % of simulated runs, and in at most
# 4.6 % if they are a third wider (docs/metric.md).
DAMAGE_METRICS = ("delta_minus", "s_delta_minus")
DAMAGE_WIDENING = 4 / 3
JUDGED_THRESHOLDS = ("railcap_n3", "railcap", "railcap_n5", "railcap_n7")  # the best may be n=1
NOT_NARROWING = "pythia"  # Table 3: 0.0098 on GSM8K, 0.0199 on PQ


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
        check: Collects evidence from a run; none if the run lacks what it needs.
        exception_in: Of this many comparisons, one may fail; None if none may.
        only_with_the_papers_n: Whether it has no evidence where RailCap has another n, because it
            names the paper's.
    """

    key: str
    place: str
    text: str
    criterion: str
    check: Check
    exception_in: int | None = None
    only_with_the_papers_n: bool = False


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
        evidence = tuple(claim.check(results)) if applies else ()
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


def all_of(*checks: Check) -> Check:
    """The evidence of all checks."""
    return lambda results: [evidence for check in checks for evidence in check(results)]


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
