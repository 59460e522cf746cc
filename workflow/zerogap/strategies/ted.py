"""TED (Dong et al., 2024): drop the responses that stay close to the greedy one.

A response is dropped when the token Levenshtein distance between the first `max_length` tokens of
the greedy trajectory and as many of its own is at most `tau`; of responses with the same text the
first is kept. A question with nothing left counts as never solved (the authors' scoring).
"""

from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from zerogap.strategies.base import Context, Intervention


@dataclass(frozen=True)
class TED:
    """TED as a filter on drawn responses.

    Attributes:
        tau: the largest distance, in edits, at which a response counts as memorised.
        max_length: tokens of the greedy trajectory that are looked at.
    """

    tau: int = 2
    max_length: int = 100

    def prepare(self, context: Context) -> Intervention:
        """The filter; it needs nothing beside what it is handed."""

        def keep(trajectory: list[int], responses: list[list[int]], texts: list[str]) -> list[bool]:
            reference = trajectory[: self.max_length]
            kept: list[bool] = []
            seen: set[str] = set()
            for tokens, text in zip(responses, texts, strict=True):
                far = Levenshtein.distance(reference, tokens[: len(reference)]) > self.tau
                kept.append(far and text not in seen)
                seen.add(text)
            return kept

        return Intervention(keep=keep)
