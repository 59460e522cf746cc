"""TED (Dong et al., 2024): drop the responses that stay close to the greedy trajectory.

The signal is edit distance: a model that has memorised a question samples responses that differ
from its greedy trajectory in a few tokens. A response is dropped if the Levenshtein distance
between the first `max_length` tokens of the trajectory and as many tokens of the response is at
most `tau`. Of several responses with the same text only the first is kept. A question without
responses left has solve probability 0, as in the authors' scoring; the variant `unfiltered` keeps
all responses of such a question.

Source: the authors' code (docs/choices.md). The strategy draws no responses of its own; it
filters those of the strategy named by `filter_of` in the configuration.
"""

from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Levenshtein

from zerogap.strategies.base import Context, Intervention, check_choice, check_whole_number


@dataclass(frozen=True)
class TED:
    """TED, a filter on the responses of another strategy.

    Attributes:
        tau: the largest edit distance, in tokens, at which a response counts as memorised.
        max_length: how many tokens of the greedy trajectory are compared.
        when_empty: what a question counts as if no response is left, "unsolved" or "unfiltered".

    Raises:
        ValueError: an attribute is not one of its values.
    """

    tau: int = 2
    max_length: int = 100
    when_empty: Literal["unsolved", "unfiltered"] = "unsolved"

    def __post_init__(self) -> None:
        check_whole_number("TED", "tau", self.tau, minimum=0)
        check_whole_number("TED", "max_length", self.max_length, minimum=1)
        check_choice("TED", "when_empty", self.when_empty, ("unsolved", "unfiltered"))

    def prepare(self, context: Context) -> Intervention:
        """Return the filter. It needs nothing from the context."""

        def filter_responses(
            trajectory: list[int], responses: list[list[int]], texts: list[str]
        ) -> list[bool]:
            reference = trajectory[: self.max_length]
            seen_texts: set[str] = set()
            keep = []
            for tokens, text in zip(responses, texts, strict=True):
                distance = Levenshtein.distance(reference, tokens[: len(reference)])
                keep.append(distance > self.tau and text not in seen_texts)
                seen_texts.add(text)
            if self.when_empty == "unfiltered" and not any(keep):
                return [True] * len(keep)
            return keep

        return Intervention(filter_responses=filter_responses)
