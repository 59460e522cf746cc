"""Score responses by an answer extraction rule, and compare it with the other rules."""

from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.data.extraction import RULES, ExtractionRule
from zerogap.errors import InputError
from zerogap.scoring.response_file import ResponseFile, describe


class Grader:
    """Scores the responses of a file, and compares the marks of the other named rules.

    Args:
        rule: the rule that scores.
        list_disagreements: whether to keep the responses on which the rules do not agree.
    """

    def __init__(self, rule: ExtractionRule, *, list_disagreements: bool) -> None:
        self._rule = rule
        self._others = [other for other in RULES.values() if other.name != rule.name]
        self._n_disagreeing = dict.fromkeys((other.name for other in self._others), 0)
        self._n_graded = 0
        self._list_disagreements = list_disagreements
        self._disagreements: list[dict[str, Any]] = []

    def gold_answers(self, file: ResponseFile, column: str) -> "pd.Series[str]":
        """The gold answer of each row, as the rule compares it.

        Rules that do not accept the answers are left out of the comparison.

        Raises:
            InputError: The rule does not accept an answer.
        """
        values = file.rows[column]
        missing = values.index[values.isna()]
        if len(missing):
            raise file.error(int(missing[0]), f"the gold answer is empty; give {column}")
        texts = [str(value) for value in values]
        gold: dict[str, str] = {}  # of each distinct text: a question has many responses
        for number, text in zip(file.numbers, texts, strict=True):
            if text not in gold:
                gold[text] = self._gold(file, column, number, text)
        return pd.Series([gold[text] for text in texts], index=values.index)

    def grade(
        self, file: ResponseFile, number: int, question_id: str, response: Any, gold: str
    ) -> bool:
        """Whether a response in the given row is correct.

        Raises:
            InputError: The response is not a text.
        """
        if not isinstance(response, str):
            raise file.error(number, f"a response is {describe(response)}; give a text")
        self._n_graded += 1
        grade = self._rule.grade(response, gold)
        others = [(other.name, other.grade(response, gold)) for other in self._others]
        disagreeing = [name for name, other in others if other.correct != grade.correct]
        for name in disagreeing:
            self._n_disagreeing[name] += 1
        if disagreeing and self._list_disagreements:
            row = {"file": str(file.path), file.unit: number, "question_id": question_id}
            rules = {
                name: {"answer": each.answer, "correct": each.correct}
                for name, each in [(self._rule.name, grade), *others]
            }
            self._disagreements.append(row | {"gold": gold} | rules | {"response": response})
        return bool(grade.correct)

    @property
    def disagreements(self) -> tuple[dict[str, Any], ...] | None:
        """The listed responses with different marks, as JSON records; None if none was graded."""
        return tuple(self._disagreements) if self._n_graded else None

    def note(self, path: Path) -> str:
        """Which rule scored the responses, and how often each other one agrees."""
        agreements = [
            f"{other.name} agrees on {100 * self._agreement(other):.1f}%"
            for other in self._others
            if self._n_graded  # a strategy may have dropped every response
        ]
        scored = f"{path}: responses scored by the rule {self._rule.name}"
        return "; ".join([scored, ", ".join(agreements)]) if agreements else scored

    def _agreement(self, other: ExtractionRule) -> float:
        return (self._n_graded - self._n_disagreeing[other.name]) / self._n_graded

    def _gold(self, file: ResponseFile, column: str, number: int, text: str) -> str:
        answer = text.rpartition("####")[2]
        self._others = [other for other in self._others if other.accepts_gold(answer)]
        try:
            return self._rule.parse_gold(answer)
        except InputError as error:
            value = describe(file.rows[column][number])
            raise file.error(
                number,
                f"the gold answer is {value}, which the rule '{self._rule.name}' does "
                f"not accept ({error}); if answers are not numbers, name your own rule with "
                "--extraction, or score the responses and give correct",
            ) from error
