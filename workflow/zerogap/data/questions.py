"""Questions and their tables: test questions, of which some leak, and training questions.

Both tables follow the `questions` contract of :mod:`zerogap.io.parquet`.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import pandas as pd

from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.digests import value_digest


@dataclass(frozen=True)
class Question:
    """A question, its rationale on one line, and its gold answer, which is usually a number."""

    question: str
    rationale: str
    gold: str


def questions_digest(questions: pd.DataFrame) -> str:
    """A digest of ids, questions and gold answers, in whatever order."""
    asked = questions[["question_id", "question", "gold"]].sort_values("question_id")
    return value_digest(asked.to_numpy().tolist())


def split_test_questions(
    questions: Sequence[Question],
    num_test: int,
    num_leaked: int,
    seed: int,
    eligible: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Draw the test questions and mark some of them as leaked.

    The questions of consecutive seeds, from 0 on, are disjoint as long as the file has enough of
    them. Ids ("test-0007") are positions in the file and the order is that of the file, so that a
    question has the same id for every `num_test` and from every source. The column `paraphrase` is
    empty.

    Questions are only drawn from the `eligible` positions, if they are given.

    Raises:
        InputError: there are fewer questions.
    """
    available = range(len(questions)) if eligible is None else eligible
    _check_number(num_test, available, "test")
    draw, block = divmod(seed, len(available) // num_test)
    shuffled = Random(f"questions/{draw}").sample(available, len(available))
    positions = sorted(shuffled[block * num_test : (block + 1) * num_test])
    leaked = Random(f"leaked/{seed}").sample(positions, num_leaked)
    return _table(questions, positions, "test", leaked)


def draw_training_questions(
    questions: Sequence[Question], num_train: int, seed: int, num_preparation: int = 0
) -> pd.DataFrame:
    """Draw the clean model's training questions, none leaked; ids like "train-0007".

    Those that :func:`preparation_questions` sets aside are left out.

    Raises:
        InputError: there are fewer questions.
    """
    set_aside = _reserved(questions, num_preparation) if num_preparation else []
    available = sorted(set(range(len(questions))).difference(set_aside))
    return _table(questions, _sample(available, num_train, f"training/{seed}", "train"), "train")


def preparation_questions(questions: Sequence[Question], number: int) -> pd.DataFrame:
    """The training questions that bases are prepared on, the same in every run.

    Raises:
        InputError: there are fewer questions.
    """
    return _table(questions, _reserved(questions, number), "train")


def with_paraphrases(table: pd.DataFrame, paraphrases: Mapping[str, str | None]) -> pd.DataFrame:
    """Add a paraphrase to each leaked question of a test table.

    A question without a valid paraphrase (None) no longer counts as leaked.

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
        leaked=table.question_id.isin(valid), paraphrase=table.question_id.map(valid).astype(object)
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


def _reserved(questions: Sequence[Question], number: int) -> list[int]:
    return _sample(range(len(questions)), number, "preparation", "preparation")


def _sample(positions: Sequence[int], number: int, key: str, split: str) -> list[int]:
    _check_number(number, positions, split)
    return sorted(Random(key).sample(positions, number))


def _check_number(number: int, positions: Sequence[int], split: str) -> None:
    if not 0 < number <= len(positions):
        raise InputError(
            f"num_{split} must be between 1 and {len(positions)}, the number of questions to draw "
            f"from (got {number})"
        )


def _table(
    questions: Sequence[Question], positions: list[int], split: str, leaked: Collection[int] = ()
) -> pd.DataFrame:
    leaking = set(leaked)
    rows = [
        (f"{split}-{at:04d}", *dataclasses.astuple(questions[at]), at in leaking, None)
        for at in positions
    ]
    return pd.DataFrame(rows, columns=parquet.CONTRACTS["questions"].names)
