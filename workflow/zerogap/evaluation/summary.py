"""What the responses show: numbers per question and per strategy.

Solve probabilities are shares of correct responses. The *drop* of a question is Identity's solve
probability minus the strategy's. A question *collapses* if it drops by `COLLAPSE` or more; only
questions that Identity solves with at least that probability can. Overlap with the greedy
trajectory is ROUGE-L and peakedness (:mod:`zerogap.analysis.overlap`), both averaged per question.
A question is *peaked* if the peakedness of Identity's responses is at least `PEAKED`, and shows
*both signs* if it is peaked and collapses under RailCap. The two bounds are conventions; they are
not calibrated on anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from zerogap.analysis.overlap import peakedness, rouge_l
from zerogap.evaluation.strategies import IDENTITY, RAILCAP
from zerogap.metrics import interval, plain_weights, question_weights
from zerogap.strategies.filtering import without_end_token

COLLAPSE = 0.5
PEAKED = 0.5
N_RESAMPLES = 2000
Interval = tuple[float, float, float]  # the value, and the ends of its interval


@dataclass(frozen=True)
class StrategySummary:
    """One strategy: means over all questions, of overlaps over those that have responses.

    `drop` and `num_collapsed`, how many questions collapse, are None for Identity.
    """

    solve_mean: Interval
    drop: Interval | None
    num_collapsed: int | None
    rouge_l: float
    peakedness: Interval


@dataclass(frozen=True)
class Summary:
    """An evaluation in numbers.

    Attributes:
        questions: one row per question: question_id, question, gold, greedy_correct, then the
            strategies, each with a column of its name (solve probability) and, after Identity,
            drop_NAME, then rouge_l and peakedness of Identity's responses and, with RailCap,
            both_signs.
        strategies: strategy → its numbers, Identity's first.
        num_solvable: questions that Identity solves with a probability of at least `COLLAPSE`.
        num_peaked: questions that are peaked.
        num_both: questions that show both signs; None without RailCap.
        num_cut_off: greedy trajectories that reach the length limit.
    """

    questions: pd.DataFrame
    strategies: dict[str, StrategySummary]
    num_solvable: int
    num_peaked: int
    num_both: int | None
    num_cut_off: int


def summarise(
    questions: pd.DataFrame,
    greedy: pd.DataFrame,
    samples: Mapping[str, pd.DataFrame],
) -> Summary:
    """Summarise an evaluation; intervals are 95 % bootstrap intervals over the questions.

    `samples` is strategy → `samples` table of the responses that count, Identity's first.
    """
    trajectories = greedy.set_index("question_id").loc[questions.question_id]
    table = questions.set_index("question_id")
    table["greedy_correct"] = trajectories.correct
    overlaps = {name: _overlaps(responses, trajectories) for name, responses in samples.items()}
    for name, responses in samples.items():
        solved = responses.astype({"correct": bool}).groupby("question_id").correct.mean()
        table[name] = solved.reindex(table.index).fillna(0.0)  # no response left: not solved
        if name != IDENTITY:
            # Rounded, so that 29/50 - 4/50 is one half and not just below it.
            table[f"drop_{name}"] = (table[IDENTITY] - table[name]).round(12)
    table[["rouge_l", "peakedness"]] = overlaps[IDENTITY]
    is_peaked = table.peakedness >= PEAKED
    if RAILCAP in samples:
        table["both_signs"] = is_peaked & (table[f"drop_{RAILCAP}"] >= COLLAPSE)

    draws = question_weights(np.zeros(len(table)), N_RESAMPLES, np.random.default_rng(0))

    def mean(column: "pd.Series[float]", lowest: float = 0.0) -> Interval:
        known = column.notna().to_numpy()
        if not known.any():
            return (float("nan"),) * 3
        # A resample without any of the known questions says nothing.
        weights = plain_weights(draws[:, known][draws[:, known].any(axis=1)])
        value = float(column.mean())
        resamples = weights @ column.to_numpy()[known]
        return value, *interval(resamples, value, bounds=(lowest, 1.0))

    strategies = {}
    for name in samples:
        drop = None if name == IDENTITY else table[f"drop_{name}"]
        strategies[name] = StrategySummary(
            solve_mean=mean(table[name]),
            drop=None if drop is None else mean(drop, lowest=-1.0),
            num_collapsed=None if drop is None else int((drop >= COLLAPSE).sum()),
            rouge_l=float(overlaps[name].rouge_l.mean()),
            peakedness=mean(overlaps[name].peakedness),
        )
    return Summary(
        questions=table.reset_index(),
        strategies=strategies,
        num_solvable=int((table[IDENTITY] >= COLLAPSE).sum()),
        num_peaked=int(is_peaked.sum()),
        num_both=int(table.both_signs.sum()) if RAILCAP in samples else None,
        num_cut_off=int((greedy.finish_reason == "length").sum()),
    )


def _overlaps(samples: pd.DataFrame, trajectories: pd.DataFrame) -> pd.DataFrame:
    """Mean ROUGE-L and peakedness of each question; NaN where no response is left."""
    rows = {}
    for question_id, responses in samples.groupby("question_id", sort=False):
        greedy: Any = trajectories.loc[str(question_id)]
        tokens = [
            without_end_token(token_ids, reason)
            for token_ids, reason in zip(responses.token_ids, responses.finish_reason, strict=True)
        ]
        trajectory = without_end_token(greedy.token_ids, greedy.finish_reason)
        rows[question_id] = {
            "rouge_l": rouge_l(responses.text, greedy.text).mean(),
            "peakedness": peakedness(tokens, trajectory),
        }
    overlaps = pd.DataFrame.from_dict(rows, orient="index", columns=["rouge_l", "peakedness"])
    return overlaps.reindex(trajectories.index)
