"""The languages of the generated texts: what is told, and in how many ways."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """How problems and instructions are told.

    Attributes:
        step_fractions: number of a problem's equations → fraction of the problems.
        distractor_fraction: of the questions that state something irrelevant.
        varied: whether rationales have many wordings (:mod:`zerogap.data.toy.wording`).
        reasoning_fraction: of the instructions whose response is worked reasoning
            (:mod:`zerogap.data.toy.reasoning`).
    """

    step_fractions: Mapping[int, float]
    distractor_fraction: float
    varied: bool
    reasoning_fraction: float


LANGUAGES = {
    "plain": Language(
        {1: 0.25, 2: 0.35, 3: 0.25, 4: 0.15},
        distractor_fraction=0.25,
        varied=False,
        reasoning_fraction=0,
    ),
    "varied": Language(
        {2: 0.25, 3: 0.3, 4: 0.25, 5: 0.15, 6: 0.05},
        distractor_fraction=0.5,
        varied=True,
        reasoning_fraction=0.5,
    ),
}
