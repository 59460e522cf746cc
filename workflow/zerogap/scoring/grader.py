"""Score responses by an answer extraction rule, and compare it with the other rules."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pandas as pd

from zerogap.data.extraction import RULES, ExtractionRule
from zerogap.errors import InputError
from zerogap.scoring.response_file import ResponseFile, describe, is_missing


class Grader:
    """Scores the responses of a file, and compares the marks of the other named rules.

    Args:
        rule: the rule that scores.
        list_disagreements: whether to keep the responses on which the rules do not agree.
    """

    def __init__(self, rule: ExtractionRule, *, list_disagreements: bool) -> None:
        self._rule = rule
        self._others = [other for other in RULES.values() if other.name != rule.name]
        # Equal responses are graded once: they are to one question, so near each other.
        self._grades = lru_cache(maxsize=2**12)(
            lambda text, gold: {r.name: r.grade(text, gold) for r in (self._rule, *self._others)}
        )
        self._num_graded = self._num_empty = 0
        self._unanswered: Counter[str] = Counter()  # rule → responses without an answer
        self._compared: Counter[str] = Counter()  # rule → where it or the own rule has an answer
        self._agreeing: Counter[str] = Counter()  # rule → those with the same mark
        self._list_disagreements = list_disagreements
        self._disagreements: list[dict[str, Any]] = []

    def gold_answers(self, file: ResponseFile) -> "pd.Series[str]":
        """The gold answer of each row, as the rule compares it.

        Rules that do not accept the answers are left out of the comparison.

        Raises:
            InputError: An answer is missing, or the rule does not accept it.
        """
        gold: dict[str, str] = {}  # of each distinct text: a question has many responses
        texts = []
        for row, value in enumerate(file.rows["gold"]):
            if is_missing(value):
                raise file.error(row, "the gold answer is empty; give gold")
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise file.error(row, f"gold is {describe(value)}; give a text or a number")
            texts.append(str(value))
            if texts[-1] not in gold:
                gold[texts[-1]] = self._gold(file, row, value)
        return pd.Series([gold[text] for text in texts])

    def known_gold(self, values: "pd.Series[Any]") -> "pd.Series[Any]":
        """The gold answers of marked responses, to compare files: None where one is missing.

        An answer that the rule does not accept stays as it is.
        """

        def parse(text: str) -> str | None:
            answer = text.rpartition("####")[2].strip()
            try:
                return None if describe(text) == "empty" else self._rule.parse_gold(answer)
            except InputError:
                return answer

        parsed = {text: parse(text) for text in set(map(str, values))}
        return values.map(lambda value: parsed[str(value)]).astype(object)

    def grade(
        self, file: ResponseFile, row: int, question_id: str, response: Any, gold: str
    ) -> bool:
        """Whether the response in a row is correct.

        Raises:
            InputError: The response is not a text.
        """
        if not isinstance(response, str):
            raise file.error(row, f"a response is {describe(response)}; give a text")
        grades = self._grades(response, gold)
        grade = grades[self._rule.name]
        self._num_graded += 1
        self._num_empty += not response.strip()
        self._unanswered.update(name for name, each in grades.items() if each.answer is None)
        compared = [
            other.name
            for other in self._others
            if grade.answer is not None or grades[other.name].answer is not None
        ]
        agreeing = [name for name in compared if grades[name].correct == grade.correct]
        self._compared.update(compared)
        self._agreeing.update(agreeing)
        if len(agreeing) < len(compared) and self._list_disagreements:
            self._disagreements.append(
                {"file": str(file.path), file.unit: file.numbers[row], "question_id": question_id}
                | {"gold": gold}
                | {n: {"answer": g.answer, "correct": g.correct} for n, g in grades.items()}
                | {"response": response}
            )
        return bool(grade.correct)

    @property
    def disagreements(self) -> tuple[dict[str, Any], ...] | None:
        """The listed responses with different marks, as JSON records; None if none was graded."""
        return tuple(self._disagreements) if self._num_graded else None

    def note(self) -> str:
        """How many responses have an answer, and how often each other rule agrees on them."""
        names = [rule.name for rule in (self._rule, *self._others)]
        unanswered = {name: self._unanswered[name] for name in names}
        agreements = [
            f"{name} agrees on {self._agreeing[name] / self._compared[name]:.1%}"
            for name in names
            if self._compared[name]
        ]
        shown = f"; of those with an answer, {', '.join(agreements)}" if agreements else ""
        counts = count_note(self._num_graded, self._num_empty, unanswered)
        return f"responses scored by the rule {self._rule.name}: {counts}{shown}"

    def _gold(self, file: ResponseFile, row: int, value: object) -> str:
        answer = str(value).rpartition("####")[2]
        self._others = [other for other in self._others if other.accepts_gold(answer)]
        try:
            return self._rule.parse_gold(answer)
        except InputError as error:
            raise file.error(
                row,
                f"the gold answer is {describe(value)}, which the rule '{self._rule.name}' does "
                f"not accept ({error}); if answers are not numbers, name your own rule with "
                "--extraction, or score the responses and give correct",
            ) from error


def count_note(num_responses: int, num_empty: int, unanswered: Mapping[str, int]) -> str:
    """How many responses are empty, and how many have no answer by each rule.

    Args:
        num_responses: all of them.
        num_empty: those without a text.
        unanswered: rule → responses in which it finds no answer, the empty ones among them.
    """
    if num_responses and num_empty == num_responses:
        return f"every one of the {num_responses} responses is empty"
    without = ", ".join(f"{name} {number}" for name, number in unanswered.items())
    counts = f"{num_responses} responses, {num_empty} empty"
    return f"{counts}; without an answer: {without}" if without else counts
