"""What the responses show: numbers per question and per strategy.

Solve probabilities are shares of correct responses. The *drop* of a question is Identity's solve
probability minus the strategy's. Overlap with the greedy trajectory is ROUGE-L and peakedness
(:mod:`zerogap.analysis.overlap`), both averaged per question. The likelihood of the gold solution
is the mean log-probability of its tokens, and min-k % the mean of the `MIN_K` least likely of them
(Shi et al., ICLR 2024).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from zerogap.analysis.overlap import peakedness, rouge_l
from zerogap.evaluation.collect import Collected
from zerogap.evaluation.strategies import IDENTITY
from zerogap.metrics.bootstrap import question_weights, with_interval
from zerogap.metrics.controls import CONFIDENCE_LEVEL, N_RESAMPLES, Interval
from zerogap.strategies.filtering import without_end_tokens

MIN_K = 0.2  # share of the tokens


@dataclass(frozen=True)
class StrategySummary:
    """One strategy: means over all questions, of overlaps over those that have responses.

    `drop` is None for Identity.
    """

    solve_mean: Interval
    drop: Interval | None
    rouge_l: float
    peakedness: Interval


@dataclass(frozen=True)
class Summary:
    """An evaluation in numbers.

    Attributes:
        questions: one row per question: question_id, question, gold, greedy_correct, then the
            strategies, each with a column of its name (solve probability) and, after Identity,
            drop_NAME, then rouge_l and peakedness of Identity's responses, and gold_likelihood and
            min_k (nats per token), NaN where no solution is known.
        strategies: strategy → its numbers, Identity's first.
        num_cut_off: greedy trajectories that reach the length limit.
        unanswered: share of Identity's responses without an answer.
    """

    questions: pd.DataFrame
    strategies: dict[str, StrategySummary]
    num_cut_off: int
    unanswered: float


def summarise(collected: Collected) -> Summary:
    """Summarise responses; intervals are 95 % bootstrap intervals over the questions."""
    greedy, samples = collected.greedy, collected.samples
    table = collected.questions.set_index("question_id")[["question", "gold"]]
    trajectories = greedy.set_index("question_id").loc[table.index]
    table["greedy_correct"] = trajectories.correct
    overlaps = {name: _overlaps(responses, trajectories) for name, responses in samples.items()}
    for name, responses in samples.items():
        solved = responses.astype({"correct": bool}).groupby("question_id").correct.mean()
        table[name] = solved.reindex(table.index).fillna(0.0)  # no response left: not solved
        if name != IDENTITY:
            # Rounded, so that 29/50 - 4/50 is one half and not just below it.
            table[f"drop_{name}"] = (table[IDENTITY] - table[name]).round(12)
    table[["rouge_l", "peakedness"]] = overlaps[IDENTITY]
    if collected.likelihoods is not None:
        tokens = collected.likelihoods.set_index("question_id").log_probabilities
        table["gold_likelihood"] = tokens.map(lambda values: _lowest(values, 1.0))
        table["min_k"] = tokens.map(lambda values: _lowest(values, MIN_K))

    draws = question_weights(np.zeros(len(table)), N_RESAMPLES, np.random.default_rng(0))

    def mean(column: "pd.Series[float]", lowest: float = 0.0) -> Interval:
        values = column.dropna().to_numpy()
        weights = draws[:, column.notna()].astype(float)
        with np.errstate(invalid="ignore"):  # a resample without any of the known questions
            resamples = weights @ values / weights.sum(axis=1)
        return with_interval([column.mean(), *resamples], CONFIDENCE_LEVEL, (lowest, 1.0))

    strategies = {
        name: StrategySummary(
            solve_mean=mean(table[name]),
            drop=None if name == IDENTITY else mean(table[f"drop_{name}"], lowest=-1.0),
            rouge_l=float(overlaps[name].rouge_l.mean()),
            peakedness=mean(overlaps[name].peakedness),
        )
        for name in samples
    }
    return Summary(
        questions=table.reset_index(),
        strategies=strategies,
        num_cut_off=int((greedy.finish_reason == "length").sum()),
        unanswered=float(samples[IDENTITY].answer.isna().mean()),
    )


def _lowest(values: Sequence[float], share: float) -> float:
    """The mean of the lowest values, at least of one; NaN without any."""
    if not len(values):
        return float("nan")
    ordered = np.sort(np.asarray(values, dtype=float))
    return float(ordered[: max(1, int(share * len(ordered)))].mean())


def _overlaps(samples: pd.DataFrame, trajectories: pd.DataFrame) -> pd.DataFrame:
    """Mean ROUGE-L and peakedness of each question; NaN where no response is left."""
    tokens = dict(zip(trajectories.index, without_end_tokens(trajectories), strict=True))
    overlaps = pd.DataFrame(np.nan, trajectories.index, ["rouge_l", "peakedness"])
    for name, responses in samples.groupby("question_id", sort=False):
        overlaps.loc[name] = (
            rouge_l(responses.text, trajectories.text[name]).mean(),
            peakedness(without_end_tokens(responses), tokens[name]),
        )
    return overlaps
