"""What an evaluation says, and what it cannot say, in words.

Two signs of memorisation are counted per question, neither of which proves contamination: its
responses are peaked around the greedy trajectory, and its solve probability collapses under RailCap
(:mod:`zerogap.evaluation.summary`).
"""

import pandas as pd

from zerogap.evaluation.strategies import CLEAN, CLEAN_BATCH2, IDENTITY, RAILCAP
from zerogap.evaluation.summary import COLLAPSE, PEAKED, Interval, Summary
from zerogap.reporting.metric_table import Labels
from zerogap.reporting.score import ASSUMPTION

LABELS = Labels()
MOST = 0.5  # share of the questions that the model solves from which on they are "most"

_WITHOUT_CLEAN = (
    "What this cannot say: without a clean model there is no reference. A model that never saw the "
    "questions repeats itself on easy ones and loses solve probability under RailCap too, and the "
    "values under the strategies do not estimate what a clean model would solve. To find out more, "
    "give a clean model (--clean), or evaluate this model again on new questions of the same kind "
    "and compare."
)


def verdict(summary: Summary, metrics: pd.DataFrame | None) -> list[str]:
    """Return the paragraphs of the verdict.

    `metrics` is the table of the strategies against the clean model, if there is one.
    """
    paragraphs = [_seen(summary), _meaning(summary)]
    if metrics is None:
        return [*paragraphs, _WITHOUT_CLEAN]
    return [*paragraphs, _against_clean(metrics), ASSUMPTION]


def _seen(summary: Summary) -> str:
    """The numbers that the verdict rests on."""
    identity, num_questions = summary.strategies[IDENTITY], len(summary.questions)
    sentences = [
        "The model solves these questions with a mean probability of "
        f"{_shown(identity.solve_mean)}. {identity.peakedness[0]:.0%} of its responses nearly "
        f"repeat its own greedy trajectory; on {summary.num_peaked} of {num_questions} questions "
        f"at least {PEAKED:.0%} do (peaked)."
    ]
    if RAILCAP in summary.strategies:
        railcap = summary.strategies[RAILCAP]
        assert railcap.drop is not None  # noqa: S101 (only Identity's is None)
        sentences.append(
            "Under RailCap, which keeps responses off that trajectory, the mean solve probability "
            f"falls by {_shown(railcap.drop)}."
        )
        sentences.append(
            f"{railcap.num_collapsed} of the {summary.num_solvable} questions with a solve "
            f"probability of {COLLAPSE} or more collapse (they fall by {COLLAPSE} or more). "
            f"{_show_both(summary.num_both)} both signs: peaked responses and collapse."
            if summary.num_solvable
            else f"No question has a solve probability of {COLLAPSE} or more."
        )
    return " ".join(sentences)


def _meaning(summary: Summary) -> str:
    """What the two signs mean together."""
    if summary.num_both is None:
        return (
            "Without RailCap, nothing here shows whether the score depends on the trajectory; add "
            "railcap to --strategies."
        )
    if not summary.num_solvable:
        return (
            "What this says: the model solves too few of these questions for a collapse to show. "
            "Evaluate it on questions that it can solve."
        )
    if summary.num_both:
        part = "most" if summary.num_both >= MOST * summary.num_solvable else "some"
        return (
            f"What this says: {part} of the questions that the model solves show both signs of "
            "memorisation. Leaked questions look like this; so do questions with one natural way "
            "to the answer, in models that never saw them (docs/evaluate.md has an example). They "
            "are the ones to check first (both_signs in questions.csv)."
        )
    if (summary.strategies[RAILCAP].num_collapsed or 0) >= MOST * summary.num_solvable:
        return (
            "What this says: most of the score is lost off the trajectory, but where it is lost "
            "the responses vary. By itself, that is not evidence of memorisation: RailCap also "
            "takes the score of models that never saw the questions (docs/results.md)."
        )
    return (
        "What this says: no question shows both signs of memorisation. Contamination that does not "
        "show in the wording, as from paraphrases, is not excluded."
    )


def _against_clean(metrics: pd.DataFrame) -> str:
    values = metrics[metrics.subset == "all"].set_index(["strategy", "metric"])[
        ["value", "ci_low", "ci_high"]
    ]
    solved = values.xs("solve_mean", level="metric").value
    distances = values.xs("sa_ppg", level="metric")
    sentences = [
        f"Against the clean model: it solves {solved[CLEAN]:.2f} of the questions on average, the "
        f"model {solved[IDENTITY]:.2f}. The distance per question (SA-PPG) of the model without "
        f"mitigation is {_shown(tuple(distances.loc[IDENTITY]))}."
    ]
    if not solved[CLEAN]:
        return (
            f"{sentences[0]} THE CLEAN MODEL SOLVES NONE of these questions, so being close to it "
            "does not mean restoration; give a clean model that solves some of them."
        )
    others = distances.drop(index=[IDENTITY, CLEAN_BATCH2], errors="ignore")
    if len(others):
        closest = str(others.value.idxmin())
        name, distance = LABELS.strategy(closest), _shown(tuple(others.loc[closest]))
        if others.value[closest] < distances.value[IDENTITY]:
            sentences.append(f"{name} is closest to the clean model with {distance}.")
        else:
            sentences.append(
                f"No strategy is closer to the clean model; the next is {name} with {distance}."
            )
    if CLEAN_BATCH2 in distances.index:
        floor = distances.value[CLEAN_BATCH2]
        sentences.append(f"Two batches of the clean model are {floor:.2f} apart: the noise floor.")
    return " ".join(sentences)


def _show_both(number: int | None) -> str:
    return "1 question shows" if number == 1 else f"{number} questions show"


def _shown(value: Interval) -> str:
    return f"{value[0]:.2f} [{value[1]:.2f}, {value[2]:.2f}]".replace("-", "−")
