"""Questions and their tables: test questions, of which some leak, and training questions.

Both tables follow the `questions` contract of :mod:`zerogap.io.parquet`.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

import pandas as pd

from zerogap.errors import InputError
from zerogap.io import parquet

# The split that questions are drawn from for all runs, by what they are drawn for.
RESERVED_SPLITS = {"preparation": "train", "screening": "test"}
_NUMBERED = {"preparation": "preparation", "screening": "candidates"}  # the keys after num_


@dataclass(frozen=True)
class Question:
    """A question, its rationale on one line, and its gold answer, which is usually a number."""

    question: str
    rationale: str
    gold: str


def split_test_questions(
    questions: Sequence[Question],
    num_test: int,
    num_leaked: int,
    seed: int,
    solvable: Collection[str] | None = None,
) -> pd.DataFrame:
    """Draw the test questions and mark some of them as leaked.

    The seed decides which questions are drawn and which of them leak. Ids ("test-0007") are
    positions in the file and the order is that of the file, so that a question has the same id for
    every `num_test` and from every source. The column `paraphrase` is empty.

    Args:
        questions: all test questions of the benchmark.
        num_test: number of questions to draw.
        num_leaked: number of leaked questions among them.
        seed: of the run.
        solvable: ids of the questions to draw from (:mod:`zerogap.sampling.jobs`); None for all.

    Raises:
        InputError: there are fewer questions.
    """
    available = [
        position
        for position in range(len(questions))
        if solvable is None or _question_id("test", position) in solvable
    ]
    positions = _sample(available, num_test, f"questions/{seed}", "test")
    leaked = set(Random(f"leaked/{seed}").sample(positions, num_leaked))
    return _table(questions, positions, leaked, "test")


def draw_test_questions(questions: Sequence[Question], num_test: int, seed: int) -> pd.DataFrame:
    """Draw test questions of which nobody says whether they leaked.

    They are those of :func:`split_test_questions`, with the columns question_id, question and gold.
    """
    return split_test_questions(questions, num_test, 0, seed)[["question_id", "question", "gold"]]


def draw_training_questions(
    questions: Sequence[Question], num_train: int, seed: int, num_preparation: int = 0
) -> pd.DataFrame:
    """Draw the clean model's training questions, none leaked; ids like "train-0007".

    Args:
        questions: all training questions of the benchmark.
        num_train: number of questions to draw.
        seed: of the run.
        num_preparation: number of questions set aside (:func:`reserved_questions`).

    Raises:
        InputError: there are fewer questions.
    """
    set_aside = _reserved(questions, num_preparation, "preparation") if num_preparation else []
    available = [position for position in range(len(questions)) if position not in set_aside]
    positions = _sample(available, num_train, f"training/{seed}", "train")
    return _table(questions, positions, set(), "train")


def reserved_questions(
    questions: Sequence[Question], number: int, use: Literal["preparation", "screening"]
) -> pd.DataFrame:
    """The questions with which base models are made ready for all runs, the same in every run.

    Args:
        questions: all questions of the benchmark's split: "train" for a preparation, which no run
            trains on, "test" for a screening.
        number: how many.
        use: what they are drawn for.

    Raises:
        InputError: there are fewer questions.
    """
    return _table(questions, _reserved(questions, number, use), set(), RESERVED_SPLITS[use])


def with_paraphrases(table: pd.DataFrame, paraphrases: Mapping[str, str | None]) -> pd.DataFrame:
    """Add a paraphrase to each leaked question of a test table.

    A question without a paraphrase no longer counts as leaked.

    Args:
        table: the test questions.
        paraphrases: question_id → paraphrase, or None if there is no valid one.

    Raises:
        InputError: the questions are not those that leak, or no paraphrase is valid.
    """
    if other := set(paraphrases) ^ set(table.question_id[table.leaked]):
        raise InputError(
            f"paraphrases: {len(other)} questions only leak or only have a paraphrase "
            f"({', '.join(sorted(other)[:5])}); regenerate the file"
        )
    valid = {question_id: text for question_id, text in paraphrases.items() if text is not None}
    if not valid:
        raise InputError("paraphrases: no question has a valid paraphrase; regenerate the file")
    return table.assign(
        leaked=table.question_id.isin(valid),
        paraphrase=table.question_id.map(valid).astype(object),
    )


def check_disjoint(test: Sequence[Question], train: Sequence[Question]) -> None:
    """Check that no test question is also a training question.

    Raises:
        InputError: one is, and would contaminate the clean model.
    """
    training_texts = {question.question for question in train}
    for position, question in enumerate(test):
        if question.question in training_texts:
            raise InputError(
                f"test question {position} is also a training question "
                f"({question.question[:60]!r}…); remove it from one of the files"
            )


def _reserved(questions: Sequence[Question], number: int, use: str) -> list[int]:
    return _sample(range(len(questions)), number, use, _NUMBERED[use])


def _sample(positions: Sequence[int], number: int, key: str, split: str) -> list[int]:
    if not 0 < number <= len(positions):
        raise InputError(
            f"num_{split} must be between 1 and {len(positions)}, the number of questions to draw "
            f"from (got {number})"
        )
    return sorted(Random(key).sample(positions, number))


def _question_id(split: str, position: int) -> str:
    return f"{split}-{position:04d}"


def _table(
    questions: Sequence[Question], positions: list[int], leaked: set[int], split: str
) -> pd.DataFrame:
    rows = [
        (_question_id(split, at), *dataclasses.astuple(questions[at]), at in leaked, None)
        for at in positions
    ]
    return pd.DataFrame(rows, columns=parquet.CONTRACTS["questions"].names)
