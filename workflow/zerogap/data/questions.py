"""The tables of questions: the test questions, of which a part leaks, and the training questions.

Both follow the `questions` contract of :mod:`zerogap.io.parquet`.
"""

from collections.abc import Mapping, Sequence
from random import Random

import pandas as pd

from zerogap.data.gsm8k import Row
from zerogap.errors import InputError

COLUMNS = ("question_id", "question", "rationale", "gold", "leaked", "paraphrase")


def questions(rows: Sequence[Row], n: int | None, n_leaked: int, seed: int) -> pd.DataFrame:
    """The test questions: `n` of the rows (None: all), `n_leaked` of them marked as leaked.

    Which rows are taken and which leak is drawn from the seed. The ids ("test-0007") are the
    row's place in the file, and the order is the file's, so that a question has one id at every
    `n` and from every source. `paraphrase` is empty.

    Raises:
        InputError: more are asked for than there are, or no question is left unleaked.
    """
    n = len(rows) if n is None else n
    chosen = _sample(rows, n, f"questions/{seed}", "test")
    if not 0 < n_leaked < n:
        raise InputError(
            f"data.n_leaked is {n_leaked} of {n} questions; at least one must leak and at least "
            "one must not"
        )
    leaked = set(Random(f"leaked/{seed}").sample(chosen, n_leaked))
    return _table(rows, chosen, leaked, "test")


def training_questions(rows: Sequence[Row], n: int | None, seed: int) -> pd.DataFrame:
    """`n` of the training rows (None: all), none leaked; ids like "train-0007".

    Raises:
        InputError: more are asked for than there are.
    """
    n = len(rows) if n is None else n
    return _table(rows, _sample(rows, n, f"training/{seed}", "train"), set(), "train")


def with_paraphrases(table: pd.DataFrame, paraphrases: Mapping[str, str | None]) -> pd.DataFrame:
    """The table with a paraphrase for every leaked question.

    A question that has none is leaked no longer, in whichever wording: the benchmarks leak the same
    questions, and `leaked` is true of all of them.

    Args:
        paraphrases: question_id → paraphrase, or None where none was found.

    Raises:
        InputError: a leaked question is missing, or one is not leaked; or none is left.
    """
    leaked = set(table.question_id[table.leaked])
    missing = sorted(leaked - set(paraphrases))
    foreign = sorted(set(paraphrases) - leaked)
    for ids, what in ((missing, "leaked questions without"), (foreign, "not leaked, yet with")):
        if ids:
            shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
            raise InputError(f"paraphrases: {len(ids)} {what} a paraphrase ({shown})")
    found = {i: text for i, text in paraphrases.items() if text is not None}
    if not found:
        raise InputError("paraphrases: not one question has a paraphrase; make them again")
    return table.assign(
        leaked=table.question_id.isin(found),
        paraphrase=table.question_id.map(found).astype(object),
    )


def disjoint(test: Sequence[Row], train: Sequence[Row]) -> None:
    """Check that no test question is among the training questions.

    Raises:
        InputError: one is: it would contaminate the clean model.
    """
    known = {row.question for row in train}
    for place, row in enumerate(test):
        if row.question in known:
            raise InputError(
                f"test question {place} is also a training question ({row.question[:60]!r}…); "
                "remove it from one of the files"
            )


def _sample(rows: Sequence[Row], n: int, key: str, split: str) -> list[int]:
    if not 0 < n <= len(rows):
        raise InputError(f"data.n_{split} is {n}; the {split} data has {len(rows)} questions")
    return sorted(Random(key).sample(range(len(rows)), n))


def _table(rows: Sequence[Row], chosen: list[int], leaked: set[int], split: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            (
                f"{split}-{i:04d}",
                rows[i].question,
                rows[i].rationale,
                rows[i].gold,
                i in leaked,
                None,
            )
            for i in chosen
        ],
        columns=list(COLUMNS),
    )
