"""What a report card says, and what it cannot say, in words."""

import pandas as pd

from zerogap.evaluation.card import FALSE_DISCOVERY_RATE, LEVEL, MAX_STYLE_AUC, Card
from zerogap.evaluation.strategies import CLEAN, CLEAN_BATCH2, IDENTITY
from zerogap.evaluation.summary import Interval
from zerogap.reporting.metric_table import Labels
from zerogap.reporting.score import ASSUMPTION

LABELS = Labels()
# Tests of models of known history (docs/evaluate.md): clean ones that were called inflated, all.
FALSE_ALARMS, NUM_CLEAN_TESTS = 1, 36

_WITHOUT_CONTROLS = (
    "No verdict: nothing was compared with questions that cannot have leaked, and a model that "
    "never saw the questions repeats itself on easy ones and loses solve probability under every "
    "strategy too. Ask at least 20 questions, or give --controls a file of such questions."
)
_LIMITS = (
    "What this assumes: to a model that has seen neither, the benchmark's questions and the "
    "controls are equally hard. Contamination that also raises the controls, such as training on "
    "other questions of the same kind, is not measured."
)


def verdict(card: Card | None, metrics: pd.DataFrame | None) -> list[str]:
    """Return the paragraphs of the verdict.

    Args:
        card: the comparison with the controls, if there are any.
        metrics: the table of the strategies against the clean model, if there is one.
    """
    paragraphs = [_WITHOUT_CONTROLS] if card is None else _against_controls(card)
    if metrics is not None:
        paragraphs += [_against_clean(metrics), ASSUMPTION]
    return paragraphs


def _against_controls(card: Card) -> list[str]:
    score, share = card.signals[IDENTITY], card.share
    numbers = (
        f"The model solves {score.benchmark:.2f} of the benchmark and {score.controls:.2f} of the "
        f"{card.num_controls} controls ({card.name})"
    )
    if not card.is_comparable:
        return [
            f"No verdict: by their wording alone, the controls can be told from the benchmark (AUC "
            f"{card.style_auc:.2f}; the bound is {MAX_STYLE_AUC:.2f}), so a difference need not be "
            f"memorisation. {numbers}. Give controls that are written like the benchmark."
        ]
    inflation = f"{_shown(card.inflation)}, p = {max(card.p, 1e-4):.2g}"
    error_rate = (
        f"In tests on clean models, {FALSE_ALARMS} of {NUM_CLEAN_TESTS} were called inflated "
        "(docs/evaluate.md)."
    )
    if card.p > LEVEL:
        return [
            f"No inflation was found. {numbers}, a difference of {inflation}. An inflation below "
            f"{max(card.inflation[2], 0):.2f} is not excluded.",
            _LIMITS,
        ]
    num_flagged = int(card.questions.flagged.sum())
    return [
        f"The score is inflated by {inflation}. {numbers}. {error_rate}",
        f"At least {share[0]:.0%} [{share[1]:.0%}, {share[2]:.0%}] of the questions look "
        f"memorised. {num_flagged} of {len(card.questions)} are flagged one by one, at most "
        f"{FALSE_DISCOVERY_RATE:.0%} of them by chance (`flagged` in questions.csv).",
        _LIMITS,
    ]


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


def _shown(value: Interval) -> str:
    return f"{value[0]:.2f} [{value[1]:.2f}, {value[2]:.2f}]".replace("-", "−")
