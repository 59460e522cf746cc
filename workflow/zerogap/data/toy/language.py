"""The languages of the generated texts: what is told, and in how many ways."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """How problems and instructions are told.

    Attributes:
        step_weights: how frequent problems with one, two, three … equations are.
        distractor_fraction: of the questions that state something irrelevant.
        varied: whether rationales have many wordings (:mod:`zerogap.data.toy.wording`).
        reasoning_fraction: of the instructions whose response is worked reasoning
            (:mod:`zerogap.data.toy.reasoning`).
    """

    step_weights: Sequence[float]
    distractor_fraction: float
    varied: bool
    reasoning_fraction: float


LANGUAGES = {
    "plain": Language(
        (0.25, 0.35, 0.25, 0.15),
        distractor_fraction=0.25,
        varied=False,
        reasoning_fraction=0,
    ),
    "varied": Language(
        (0, 0.25, 0.3, 0.25, 0.15, 0.05),
        distractor_fraction=0.5,
        varied=True,
        reasoning_fraction=0.5,
    ),
}
