"""The report card: what sets the benchmark's questions apart from controls that cannot have leaked.

A signal is a number per question that memorisation raises. Each is compared between the benchmark
and the controls, after that of the reference models, if there are any, was subtracted: a difference
of differences. Two choices were made on models whose history is known, before others were tested
(docs/evaluate.md): the signal that the verdict rests on, and the one that ranks the questions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from zerogap.evaluation.controls import style_auc
from zerogap.evaluation.question_sets import QuestionSet
from zerogap.evaluation.summary import Summary
from zerogap.metrics.controls import Difference, Interval, difference, flagged, memorised_share
from zerogap.metrics.gaps import Values

SIGNALS = {  # column of the questions' table → label
    "identity": "Solved",
    "gold_likelihood": "Likelihood of the gold solution",
    "min_k": "Min-20 % of the gold solution",
    "peakedness": "Peakedness",
    "rouge_l": "ROUGE-L",
    "drop_railcap": "Drop under RailCap",
    "drop_lne_blocking": "Drop under LNE-blocking",
}
SCORE = "identity"  # the verdict's p-value is that of its difference
SUSPICION = "min_k"  # ranks the questions; `SCORE` where no solution is known
MAX_STYLE_AUC = 0.7  # above it, the texts differ too much for a verdict
MAX_UNANSWERED = 0.5  # above it, responses say too little about what the model can solve
LEVEL = 0.05  # of the verdict
FALSE_DISCOVERY_RATE = 0.1  # of the flagged questions


@dataclass(frozen=True)
class Card:
    """A model's report card.

    Attributes:
        name: what the controls are.
        paired: whether each control belongs to a question of the benchmark.
        style_auc: how well the texts alone tell the benchmark from the controls.
        unanswered: share of the model's responses to the benchmark that have no answer.
        is_comparable: whether a difference can be read as memorisation: the texts are alike, and
            most responses have an answer. Otherwise no question is flagged.
        signals: signal → its difference.
        values: signal → its values of the benchmark's questions and of the controls.
        solved: the model's solve probability on the benchmark and on the controls.
        ranked_by: the signal of `share` and `questions`.
        share: share of the questions that are memorised, at least.
        questions: one row per compared question: question_id, control (solve probability of its
            control; NaN without pairs), suspicion (what ranks the questions), and flagged (none
            if the texts are not alike).
        num_controls: number of controls.
        num_references: number of reference models, whose mean is subtracted from the signals.
    """

    name: str
    paired: bool
    style_auc: float
    unanswered: float
    is_comparable: bool
    signals: dict[str, Difference]
    values: dict[str, tuple[Values, Values]]
    solved: tuple[float, float]
    ranked_by: str
    share: Interval
    questions: pd.DataFrame
    num_controls: int
    num_references: int

    @property
    def p(self) -> float:
        """The p-value of the verdict."""
        return self.signals[SCORE].p

    @property
    def inflation(self) -> Interval:
        """The solve probability on the benchmark minus what the controls predict."""
        return self.signals[SCORE].difference


def compare(models: Sequence[Sequence[Summary]], controls: QuestionSet) -> Card:
    """Compare benchmark and controls.

    `models` has the summaries of both: the model's, then those of each reference.
    """
    tables = [[side.questions.set_index("question_id") for side in sides] for sides in models]
    paired = "original" in controls.questions
    if paired:
        tables = [[own.loc[controls.questions.original], other] for own, other in tables]
    benchmark, other = tables[0]
    signals, values = {}, {}
    for name in [name for name in SIGNALS if name in benchmark]:
        first, second = _above_references(tables, name)
        known, known_too = ~np.isnan(first), ~np.isnan(second)
        if paired:
            known = known_too = known & known_too
        if min(known.sum(), known_too.sum()) > 1:
            signals[name] = difference(first[known], second[known_too], paired=paired)
            values[name] = first[known], second[known_too]
    counts = {name: tuple(map(len, sides)) for name, sides in values.items()}
    is_known = counts.get(SUSPICION) == (len(benchmark), len(other))
    ranked_by = SUSPICION if is_known else SCORE
    first, second = values[ranked_by]
    style = style_auc(benchmark.question, other.question, paired)
    unanswered = models[0][0].unanswered
    is_comparable = style <= MAX_STYLE_AUC and unanswered <= MAX_UNANSWERED
    return Card(
        name=controls.name,
        paired=paired,
        style_auc=style,
        unanswered=unanswered,
        is_comparable=is_comparable,
        signals=signals,
        values=values,
        solved=(float(benchmark[SCORE].mean()), float(other[SCORE].mean())),
        ranked_by=ranked_by,
        share=memorised_share(first, second, paired=paired),
        questions=pd.DataFrame(
            {
                "question_id": benchmark.index,
                "control": other[SCORE].to_numpy() if paired else np.nan,
                "suspicion": first,
                "flagged": flagged(first, second, FALSE_DISCOVERY_RATE) & is_comparable,
            }
        ),
        num_controls=len(other),
        num_references=len(models) - 1,
    )


def _above_references(tables: Sequence[Sequence[pd.DataFrame]], name: str) -> tuple[Values, Values]:
    """A signal of the benchmark and of the controls, minus the mean of the references that have it.

    Strategies other than Identity are sampled for the model alone.
    """
    sides = []
    for side in zip(*tables, strict=True):
        own, *others = [table[name].to_numpy(dtype=float) for table in side if name in table]
        sides.append(own - sum(others) / len(others) if others else own)
    return sides[0], sides[1]
