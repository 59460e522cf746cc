"""What an evaluation says, and what it cannot say, in words.

Two signs are described, neither of which proves contamination. Responses are *concentrated* if
their mean peakedness is at least `CONCENTRATED`. The score *depends on the trajectory* if at least
the share `DEPENDENT` of the questions that can collapse under RailCap do. Both bounds are
conventions that make the words of a verdict reproducible; they are not calibrated on anything.
"""

from zerogap.evaluation.collect import CLEAN, CLEAN_BATCH2
from zerogap.evaluation.comparison import Comparison
from zerogap.evaluation.strategies import IDENTITY
from zerogap.evaluation.summary import COLLAPSE, Interval, Summary
from zerogap.reporting.labels import Labels

CONCENTRATED = 0.5
DEPENDENT = 0.5
RAILCAP = "railcap"
LABELS = Labels()

_WITHOUT_CLEAN = (
    "What this cannot say: without a clean model there is no reference. A model that never saw the "
    "questions repeats itself on easy ones and loses solve probability under RailCap too, and the "
    "values under the strategies do not estimate what a clean model would solve. To find out more, "
    "give a clean model (--clean), or evaluate this model again on new questions of the same kind "
    "and compare."
)
_WITH_CLEAN = (
    "What this assumes: the clean model differs from the model in the contamination and in nothing "
    "else. Any other difference between the two is part of the gaps as well."
)


def verdict(summary: Summary, comparison: Comparison | None) -> list[str]:
    """Return the paragraphs of the verdict.

    Args:
        summary: the numbers.
        comparison: those against the clean model, if there is one.
    """
    identity = summary.strategies[IDENTITY]
    seen = [
        "The model solves these questions with a mean probability of "
        f"{_shown(identity.solve_mean)}. {identity.peakedness[0]:.0%} of its responses nearly "
        f"repeat its own greedy trajectory (peakedness {_shown(identity.peakedness)})."
    ]
    concentrated = identity.peakedness[0] >= CONCENTRATED
    if RAILCAP in summary.strategies:
        seen.append(_drop(summary))
        meaning = _meaning(concentrated, _depends(summary))
    else:
        meaning = (
            "Without RailCap, nothing here shows whether the score depends on the trajectory; add "
            "railcap to --strategies."
        )
    if comparison is None:
        return [" ".join(seen), meaning, _WITHOUT_CLEAN]
    return [" ".join(seen), meaning, _against_clean(comparison), _WITH_CLEAN]


def _drop(summary: Summary) -> str:
    railcap = summary.strategies[RAILCAP]
    assert railcap.drop is not None  # noqa: S101 (only Identity's is None)
    sentence = (
        "Under RailCap, which keeps responses off that trajectory, the mean solve probability "
        f"falls by {_shown(railcap.drop)}"
    )
    if not summary.num_solvable:
        return f"{sentence}. No question has a solve probability of {COLLAPSE} or more."
    return (
        f"{sentence}; {railcap.num_collapsed} of the {summary.num_solvable} questions with a solve "
        f"probability of {COLLAPSE} or more collapse (they fall by {COLLAPSE} or more)."
    )


def _depends(summary: Summary) -> bool | None:
    """Whether the score depends on the trajectory; None if no question can collapse."""
    if not summary.num_solvable:
        return None
    collapsed = summary.strategies[RAILCAP].num_collapsed or 0
    return collapsed / summary.num_solvable >= DEPENDENT


def _meaning(concentrated: bool, depends: bool | None) -> str:
    """What the two signs mean together."""
    if depends is None:
        return (
            "What this says: the model solves too few of these questions for a drop to show "
            "anything. Evaluate it on questions that it can solve."
        )
    if concentrated and depends:
        return (
            "What this says: both signs of memorisation are there. Most responses follow one "
            "trajectory, and most of the score is lost without it. Leaked questions look like "
            "this; so do questions with one natural way to the answer."
        )
    if depends:
        return (
            "What this says: most of the score is lost off the trajectory, but the responses do "
            "not concentrate on it. By itself, that is not evidence of memorisation: RailCap also "
            "takes the score of models that never saw the questions (docs/toy-models.md)."
        )
    if concentrated:
        return (
            "What this says: most responses follow one trajectory, but most of the score survives "
            "without it. The model is certain of its answers and finds them in other words too, "
            "which speaks against memorised wording as their only source."
        )
    return (
        "What this says: neither sign of memorisation is clear. The responses vary, and most of "
        "the score survives off the greedy trajectory. Contamination that does not show in the "
        "wording, as from paraphrases, is not excluded."
    )


def _against_clean(comparison: Comparison) -> str:
    values = comparison.metrics[comparison.metrics.subset == "all"]
    values = values.set_index(["strategy", "metric"])[["value", "ci_low", "ci_high"]]
    solved = values.xs("solve_mean", level="metric").value
    distances = values.xs("sa_ppg", level="metric")
    sentences = [
        f"Against the clean model: it solves {solved[CLEAN]:.2f} of the questions on average, the "
        f"model {solved[IDENTITY]:.2f}. The distance per question (SA-PPG) of the model without "
        f"mitigation is {_shown(tuple(distances.loc[IDENTITY]))}."
    ]
    others = distances.drop(index=[IDENTITY, CLEAN_BATCH2], errors="ignore")
    if len(others):
        closest = str(others.value.idxmin())
        sentences.append(
            f"Of the strategies, {LABELS.strategy(closest)} is closest to the clean model with "
            f"{_shown(tuple(others.loc[closest]))}."
        )
    if CLEAN_BATCH2 in distances.index:
        floor = distances.value[CLEAN_BATCH2]
        sentences.append(f"Two batches of the clean model are {floor:.2f} apart: the noise floor.")
    return " ".join(sentences)


def _shown(value: Interval) -> str:
    return f"{value[0]:.2f} [{value[1]:.2f}, {value[2]:.2f}]".replace("-", "−")
