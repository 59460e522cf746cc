"""The paper's claims (assets/claims.yaml) against a run: evidence, and the verdict on each claim.

A claim makes one or more comparisons. A comparison is supported if its whole interval is on the
claim's side, not supported if the whole interval is on the other side, and cannot tell otherwise,
or without an interval. A claim is supported if all its comparisons are, and not supported if one of
them is not; a claim about "five of six settings" allows one exception in six.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import yaml

from zerogap.reporting.metric_table import METRIC_LABELS, Labels, MetricTable, Setting
from zerogap.reporting.render import Cell

SUPPORTED, NOT_SUPPORTED, CANNOT_TELL = "supported", "not supported", "cannot tell"
VERDICTS = (SUPPORTED, NOT_SUPPORTED, CANNOT_TELL)
ANY = math.inf

# 95 % intervals of differences in damage miss in up to 9.8 % of simulated runs, and in at most
# 4.6 % if they are a third wider (benchmarks/interval_study.py).
DAMAGE_METRICS = ("delta_minus", "s_delta_minus")
DAMAGE_WIDENING = 4 / 3
JUDGED_THRESHOLDS = ("railcap_n3", "railcap", "railcap_n5", "railcap_n7")  # the best may be n=1
MAX_THRESHOLD_SPREAD = 0.008  # in SA-PPG; the paper's own number
NOT_NARROWING = "pythia"  # Table 3: 0.0098 on GSM8K, 0.0199 on PQ


@dataclass(frozen=True)
class RunResults:
    """What a run measured."""

    metrics: MetricTable
    setting: Setting  # of the paper's single-setting experiments
    numbers: Mapping[str, Cell]  # in that setting: those of the text and of memorisation, by key
    # Benchmark whose questions leaked as paraphrases (PQ) → the one of the questions (GSM8K).
    paraphrase_of: Mapping[str, str]
    rail_n: int | None  # RailCap's n in the run; None without RailCap
    labels: Labels

    def difference(self, setting: Setting, metric: str, first: str, second: str) -> Cell | None:
        """The value of the first strategy minus the second's, paired; None if not in the run."""
        stored = self.metrics.get(*setting, first, f"{metric}_vs_{second}")
        if stored is not None:
            return stored
        # Differences are stored for some references only; the sign of the opposite one is turned.
        opposite = self.metrics.get(*setting, second, f"{metric}_vs_{first}")
        return opposite and Cell(-opposite.value, -opposite.high, -opposite.low)

    def settings(self, form: str) -> list[Setting]:
        """All settings, the primary one, or those whose questions leaked in one form."""
        settings = self.metrics.settings(self.labels)
        if form == "primary":
            return [self.setting]
        if form == "all":
            return settings
        return [s for s in settings if (s[1] in self.paraphrase_of) == (form == "paraphrase")]


class Evidence(NamedTuple):
    """One comparison: its verdict, and a sentence with the numbers."""

    verdict: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper; assets/claims.yaml describes its attributes."""

    key: str
    about: str
    place: str
    text: str
    criterion: str
    needs_rail_n: int | None = None
    settings: Literal["all", "primary", "verbatim", "paraphrase"] = "all"
    numbers: Sequence[tuple[str, str, float, float]] = ()
    lower: Sequence[str] = ()
    together: bool = False
    difference: tuple[str, str, float, float] | None = None
    check: str | None = None
    exception_in: int | None = None

    def evidence(self, results: RunResults) -> Iterator[Evidence]:
        """The comparisons that the run has; none if it lacks what the claim is about."""
        if self.needs_rail_n not in (None, results.rail_n):
            return
        for key, name, low, high in self.numbers:
            if cell := results.numbers.get(key):
                yield Evidence(within(cell, low, high), f"{name}: {_shown(cell)}.")
        for setting in results.settings(self.settings):
            yield from self._comparisons(results, setting)
            if self.difference:
                yield from _sa_ppg_difference(results, setting, *self.difference)
        if self.check:
            yield from CHECKS[self.check](results)

    def _comparisons(self, results: RunResults, setting: Setting) -> list[Evidence]:
        """Those of `lower`; in a setting that has some of them, the others cannot tell."""
        evidence = [e for pair in self.lower for e in _lower(results, setting, pair)]
        num_missing = len(self.lower) - len(evidence)
        if self.together:
            sentence = " ".join(e.sentence for e in evidence)
            return [] if num_missing else [Evidence(combined(evidence), sentence)]
        if not evidence or not num_missing:
            return evidence
        sentence = (
            f"{results.labels.setting(*setting)}: {num_missing} of {len(self.lower)} "
            "comparisons are missing, because the run lacks a strategy."
        )
        return [*evidence, Evidence(CANNOT_TELL, sentence)]


_YAML = Path(__file__).parent / "assets/claims.yaml"
CLAIMS = tuple(Claim(**entry) for entry in yaml.safe_load(_YAML.read_text(encoding="utf-8")))


class ClaimVerdict(NamedTuple):
    """The verdict on a claim, with its evidence."""

    claim: Claim
    verdict: str
    evidence: tuple[Evidence, ...]


def evaluate_claims(results: RunResults) -> list[ClaimVerdict]:
    """Check every claim, in order."""
    verdicts = []
    for claim in CLAIMS:
        evidence = tuple(claim.evidence(results))
        exceptions = len(evidence) // claim.exception_in if claim.exception_in else 0
        verdicts.append(ClaimVerdict(claim, combined(evidence, exceptions), evidence))
    return verdicts


def combined(evidence: Sequence[Evidence], exceptions: int = 0) -> str:
    """The verdict on several comparisons together, of which `exceptions` may fail."""
    verdicts = [each.verdict for each in evidence]
    if verdicts and verdicts.count(SUPPORTED) >= len(verdicts) - exceptions:
        return SUPPORTED
    return NOT_SUPPORTED if verdicts.count(NOT_SUPPORTED) > exceptions else CANNOT_TELL


def within(cell: Cell, low: float, high: float) -> str:
    """The verdict on "low <= value < high"; an interval that touches 0 is not below 0."""
    if low <= cell.low and cell.high < high:
        return SUPPORTED
    return NOT_SUPPORTED if cell.high < low or cell.low > high else CANNOT_TELL


def widened(cell: Cell, factor: float) -> Cell:
    """The number with an interval that is `factor` times as wide on both sides."""
    low, high = (cell.value + factor * (end - cell.value) for end in (cell.low, cell.high))
    return Cell(cell.value, low, high)


def unpaired_difference(first: Cell, second: Cell) -> Cell:
    """`first` minus `second`, of two estimates with separate intervals.

    The distance of each end from the difference is the root of the sum of the squared distances of
    the estimates' ends from the estimates (Zou and Donner, Statistics in Medicine 27, 2008). Exact
    for independent estimates; too wide for positively correlated ones, such as two benchmarks with
    the same questions.
    """
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Cell(value, value - below, value + above)


def shortcut_lead_narrows(results: RunResults) -> Iterator[Evidence]:
    """Shortcut's lead over Identity on paraphrases minus that on the original questions."""
    labels = results.labels
    for model, benchmark in results.settings("paraphrase"):
        original = results.paraphrase_of[benchmark]
        if model == NOT_NARROWING or original == benchmark:
            continue
        lead, original_lead = (
            results.difference((model, name), "sa_ppg", "identity", "shortcut")
            for name in (benchmark, original)
        )
        if lead is None or original_lead is None:
            continue
        change = unpaired_difference(lead, original_lead)
        yield Evidence(
            within(change, -ANY, 0),
            f"{labels.models.get(model, model)}: Shortcut's lead over Identity is "
            f"{_shown(original_lead)} on {labels.benchmarks.get(original, original)} and "
            f"{_shown(lead)} on {labels.benchmarks.get(benchmark, benchmark)}, a change of "
            f"{_shown(change)}.",
        )


def threshold_is_robust(results: RunResults) -> Iterator[Evidence]:
    """Each n from 3 to 7 against the run's best, n=1 included."""
    thresholds, setting = ("railcap_n1", *JUDGED_THRESHOLDS), results.setting
    cells = {row: results.metrics.get(*setting, row, "sa_ppg") for row in thresholds}
    values = {row: cell.value for row, cell in cells.items() if cell}
    if len(values) < 2:
        return
    best, bounds = min(values, key=values.__getitem__), (-ANY, MAX_THRESHOLD_SPREAD)
    for row in JUDGED_THRESHOLDS:
        if row != best:
            yield from _sa_ppg_difference(results, setting, row, best, *bounds, "the best, ")
    if num_missing := len(thresholds) - len(values):
        sentence = f"{num_missing} of {len(thresholds)} values of n are missing from the run."
        yield Evidence(CANNOT_TELL, sentence)


CHECKS: dict[str, Callable[[RunResults], Iterator[Evidence]]] = {
    check.__name__: check for check in (shortcut_lead_narrows, threshold_is_robust)
}


def _sa_ppg_difference(
    results: RunResults,
    setting: Setting,
    strategy: str,
    reference: str,
    low: float,
    high: float,
    prefix: str = "",
) -> Iterator[Evidence]:
    """Whether a strategy's SA-PPG minus a reference's is in a range; nothing if not in the run."""
    labels, gap = results.labels, results.difference(setting, "sa_ppg", strategy, reference)
    if gap is not None:
        first, second = (
            labels.configurations.get(name, labels.strategy(name)) for name in (strategy, reference)
        )
        yield Evidence(
            within(gap, low, high),
            f"{labels.setting(*setting)}: SA-PPG of {first} minus that of {prefix}{second}: "
            f"{_shown(gap)}.",
        )


def _lower(results: RunResults, setting: Setting, comparison: str) -> Iterator[Evidence]:
    """One comparison; nothing if either strategy was not run."""
    metric, strategy, reference = re.split(": | < ", comparison)
    gap = results.difference(setting, metric, strategy, reference)
    value = results.metrics.get(*setting, strategy, metric)
    reference_value = results.metrics.get(*setting, reference, metric)
    if gap is None or value is None or reference_value is None:
        return
    labels, name = results.labels, "difference"
    if metric in DAMAGE_METRICS:
        name, gap = "difference (interval a third wider)", widened(gap, DAMAGE_WIDENING)
    yield Evidence(
        within(gap, -ANY, 0),
        f"{labels.setting(*setting)}, {METRIC_LABELS[metric]}: "
        f"{labels.strategy(strategy)} {value.format(3)}, "
        f"{labels.strategy(reference)} {reference_value.format(3)}, {name} {_shown(gap)}.",
    )


def _shown(cell: Cell) -> str:
    """A value with its interval as sentences show it."""
    return f"{cell.format(3)} {cell.format_interval(3) or '(no interval)'}"
