"""What a report card says, and what it cannot say, in words."""

import numpy as np
import pandas as pd

from zerogap.evaluation.card import (
    FALSE_DISCOVERY_RATE,
    LEVEL,
    MAX_STYLE_AUC,
    MAX_UNANSWERED,
    SIGNALS,
    Card,
)
from zerogap.evaluation.controls import FRESH_NUMBERS, NEW_QUESTIONS
from zerogap.evaluation.strategies import CLEAN, CLEAN_BATCH2, IDENTITY
from zerogap.metrics.controls import Interval
from zerogap.reporting.metric_table import Labels
from zerogap.reporting.render import format_number
from zerogap.reporting.score import ASSUMPTION

LABELS = Labels()
# By the name of the controls, what docs/evaluate.md measured with models of known history.
FALSE_ALARMS = {
    NEW_QUESTIONS: "1 of 36 clean tests of toy models was",
    FRESH_NUMBERS: "0 of 6 clean tests of SmolLM2 were",
}

_WITHOUT_CONTROLS = (
    "No verdict: nothing was compared with questions that cannot have leaked, and a model that "
    "never saw the questions repeats itself on easy ones and loses solve probability under every "
    "strategy too. Ask more questions (20 with controls), or give --controls a file of such ones."
)


def verdict(card: Card | None, metrics: pd.DataFrame | None) -> list[str]:
    """Return the paragraphs of the verdict; `metrics` is the table against the clean model."""
    paragraphs = [_WITHOUT_CONTROLS] if card is None else _against_controls(card)
    if metrics is not None:
        paragraphs += [_against_clean(metrics), ASSUMPTION]
    return paragraphs


def _against_controls(card: Card) -> list[str]:
    solved, (value, low, high) = card.solved, card.inflation
    numbers = (
        f"The mean solve probability is {solved[0]:.2f} on {len(card.questions)} questions of the "
        f"benchmark and {solved[1]:.2f} on {card.num_controls} controls ({card.name})"
    )
    likeness = "equally hard"
    if card.num_references:
        theirs = format_number(solved[0] - solved[1] - value, 2)
        numbers += f"; the difference of the reference models, {theirs}, is subtracted"
        likeness = "as unequal as to the reference models"
    if card.unanswered > MAX_UNANSWERED:
        return [
            f"No verdict: {card.unanswered:.1%} of the responses to the benchmark have no answer. "
            f"{numbers}. If responses are cut off, as long thinking is, raise --max-new-tokens; "
            "otherwise read some in report.html, and choose another prompt or --extraction."
        ]
    if not card.is_comparable:
        return [
            f"No verdict: by their wording alone, the controls can be told from the benchmark (AUC "
            f"{card.style_auc:.3f}; the bound is {MAX_STYLE_AUC:.2f}), so a difference need not be "
            f"memorisation. {numbers}. Give controls that are written like the benchmark."
        ]
    found = f"{_shown(card.inflation)}, p = {card.p:.2g} (one-sided)"
    if card.p <= LEVEL:
        doubt = "" if low > 0 else " The evidence is weak: the interval, two-sided, includes 0."
        measured = None if card.num_references else FALSE_ALARMS.get(card.name)
        errors = (
            f"with such controls, {measured} called inflated (docs/evaluate.md)"
            if measured
            else "how often this is wrong with such controls was not measured"
        )
        first = f"The score is inflated by {found}; {errors}. {numbers}.{doubt}"
    else:
        if round(high, 2) > 0:
            bound = f"An inflation of up to {high:.2f} is not excluded."
        elif value < 0:
            bound = "The controls are easier than the benchmark, which would hide an inflation."
        else:
            bound = "Not one question tells them apart, which says little: ask more questions."
        first = f"No inflation was found. {numbers}: {found}. {bound}"
    limits = (
        "What this assumes: to a model that has seen neither, the benchmark's questions and the "
        f"controls are {likeness}. Contamination that also raises the controls, such as training "
        "on other questions of the same kind, is not measured."
    )
    if card.paired:
        limits += " A model that memorised a question also solves it with fresh numbers now and "
        limits += "then, so an inflation is underestimated."
    return [first, *_memorised(card), limits]


def _memorised(card: Card) -> list[str]:
    """How many questions look memorised; nothing if neither they nor the score do."""
    (share, low, high), num_flagged = card.share, int(card.questions.flagged.sum())
    if card.p > LEVEL and not num_flagged:
        return []
    found = "no more questions than controls look memorised"
    if share:
        found = f"at least {share:.0%} [{low:.0%}, {high:.0%}] of the questions look memorised"
    return [
        f"By one signal ({SIGNALS[card.ranked_by]}), {found}. {num_flagged} of "
        f"{len(card.questions)} are flagged one by one (`flagged` in questions.csv); on average, "
        f"at most {FALSE_DISCOVERY_RATE:.0%} of flags are wrong."
    ]


def _against_clean(metrics: pd.DataFrame) -> str:
    values = metrics[metrics.subset == "all"].set_index(["strategy", "metric"])[
        ["value", "ci_low", "ci_high"]
    ]
    solved = values.xs("solve_mean", level="metric").value
    distances = values.xs("sa_ppg", level="metric")
    text = (
        f"Against the clean model: it solves {solved[CLEAN]:.2f} of the questions on average, the "
        f"model {solved[IDENTITY]:.2f}. The distance per question (SA-PPG) of the model without "
        f"mitigation is {_shown(tuple(distances.loc[IDENTITY]))}."
    )
    if not solved[CLEAN]:
        return (
            f"{text} THE CLEAN MODEL SOLVES NONE of these questions, so being close to it "
            "does not mean restoration; give a clean model that solves some of them."
        )
    others = distances.drop(index=[IDENTITY, CLEAN_BATCH2], errors="ignore")
    if len(others):
        closest = str(others.value.idxmin())
        name, distance = LABELS.strategy(closest), _shown(tuple(others.loc[closest]))
        if others.value[closest] < distances.value[IDENTITY]:
            text += f" {name} is closest to the clean model with {distance}"
            names = [IDENTITY, *map(str, others.index)]
            pairs = values.loc[closest].reindex([f"sa_ppg_maxt_vs_{name}" for name in names])
            may_be_0 = (pairs.ci_low <= 0) & (pairs.ci_high >= 0)
            alike = [LABELS.strategy(names[k]) for k in np.flatnonzero(may_be_0)]
            text += f"; the difference from {', '.join(alike)} may be chance." if alike else "."
        else:
            text += (
                f" No strategy is closer to the clean model; the next is {name} with {distance}."
            )
    if CLEAN_BATCH2 in distances.index:
        floor = distances.value[CLEAN_BATCH2]
        text += f" Two batches of the clean model are {floor:.2f} apart: the noise floor."
    return text


def _shown(value: Interval) -> str:
    mean, low, high = (format_number(each, 2) for each in value)
    return f"{mean} [{low}, {high}]"
