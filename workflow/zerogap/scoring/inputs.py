"""Files of responses as counts per question, whatever their format and origin.

A file is recognised by its content, not by its name. The result has the columns of a `solve` table
(see `zerogap.io.parquet`) that the file gives: ``question_id`` (str), ``n_correct`` and
``n_samples`` (int), then ``first_correct`` (bool) and ``leaked`` (bool) if the file has them; and
``doc_hash`` (str) for lm_eval logs, which distinguishes documents with the same number.
"""

import multiprocessing
import os
import signal
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.io.text_files import read_text
from zerogap.scoring import lm_eval
from zerogap.scoring.grader import Grader
from zerogap.scoring.response_file import ResponseFile, read, unknown_kind

# Alternative name of a column → its name.
ALIASES = {"id": "question_id", "is_correct": "correct", "text": "response", "target": "gold"}
ACCEPTED = (
    "question_id with correct (one row per response), with n_correct and n_samples (one row per "
    "question), or with response and gold; or a sample log of lm_eval (doc_id, target, resps)"
)
LM_EVAL = "lm_eval sample log"  # the `kind` of such a file
PARALLEL_BYTES = 20 * 2**20  # smaller files are read before other processes have started
_COLUMNS = [*ALIASES.values(), "sample_id", "n_correct", "n_samples", "first_correct", "leaked"]


@dataclass(frozen=True)
class Loaded:
    """The counts of a file.

    Attributes:
        path: The file.
        counts: One row per question, in the order of the file.
        kind: What kind of file it is.
        notes: What its reader should know.
        disagreements: The responses on which extraction rules do not agree, as JSON records, if
            they were to be listed; None if the file itself says which responses are correct.
    """

    path: Path
    counts: pd.DataFrame
    kind: str
    notes: tuple[str, ...] = ()
    disagreements: tuple[dict[str, Any], ...] | None = None


def load(
    path: str | Path,
    lm_eval_filter: str | None = None,
    extraction: str = "numeric",
    *,
    list_disagreements: bool = False,
) -> Loaded:
    """Read a file of responses or counts.

    Args:
        path: The file, of any kind in docs/score.md.
        lm_eval_filter: Filter whose records of an lm_eval log are read; the first one if None.
        extraction: Rule that scores responses, see `zerogap.data.extraction`.
        list_disagreements: Whether to list the responses on which the rules do not agree.

    Raises:
        InputError: The file is missing, empty, malformed or of unknown kind; a question or response
            is duplicated; correctness is missing or not 0/1; a gold answer is not accepted by the
            rule or changes within a question; counts are not valid. The message names file and
            line.
    """
    path = Path(path)
    grader = Grader(extraction_rule(extraction), list_disagreements=list_disagreements)
    file = read(path, [*_COLUMNS, *ALIASES], ACCEPTED)
    if set(file.rows) >= lm_eval.COLUMNS:
        responses, doc_hash, notes = lm_eval.read_log(file, lm_eval_filter, grader)
        counts = _count(file, responses, list(doc_hash.index))
        counts = counts.assign(doc_hash=doc_hash.to_numpy())
        return Loaded(path, counts, LM_EVAL, notes, grader.disagreements)
    columns = list(file.rows)
    file = file.rename(ALIASES)
    if "question_id" not in file.rows:
        raise unknown_kind(path, columns, ACCEPTED)
    ids = file.question_ids("question_id")
    if set(file.rows) >= {"n_correct", "n_samples"}:
        return Loaded(path, _read_counts(file, ids), "counts per question")
    notes = ()
    if "correct" in file.rows:
        marks = file.flags("correct", ids, "give true or false for every response")
        kind = "correctness of each response"
    elif set(file.rows) >= {"response", "gold"}:
        marks, kind = _grade(file, ids, grader), "responses with gold answers"
        notes = (grader.note(path),)
    elif "response" in file.rows:
        raise InputError(
            f"{path}: has responses but no gold answers to score them against; add a column gold, "
            "or correct with the marks of your own scoring"
        )
    else:
        raise unknown_kind(path, columns, ACCEPTED)
    responses = pd.DataFrame({"question_id": ids, "correct": marks})
    if "sample_id" in file.rows:
        responses["sample_id"] = file.counts("sample_id", ids)
    if "leaked" in file.rows:
        responses["leaked"] = file.flags("leaked", ids)
    return Loaded(path, _count(file, responses), kind, notes, grader.disagreements)


def load_all(
    paths: Mapping[str, Path],
    lm_eval_filter: str | None = None,
    extraction: str = "numeric",
    *,
    list_disagreements: bool = False,
) -> dict[str, Loaded]:
    """Read several files, large ones in a process per core.

    Args:
        paths: Name → file.
        lm_eval_filter: As for :func:`load`.
        extraction: As for :func:`load`.
        list_disagreements: As for :func:`load`.

    Returns:
        Name → counts.

    Raises:
        InputError: As :func:`load`, for the first file that is not valid.
    """
    read_one = partial(
        load,
        lm_eval_filter=lm_eval_filter,
        extraction=extraction,
        list_disagreements=list_disagreements,
    )
    size = sum(path.stat().st_size for path in paths.values() if path.is_file())
    processes = min(len(paths), os.cpu_count() or 1)
    if size < PARALLEL_BYTES or processes == 1:
        return {name: read_one(path) for name, path in paths.items()}
    # Not forked: pyarrow's threads do not survive a fork. An interrupt is the parent's to handle.
    with ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:
        try:
            return dict(zip(paths, pool.map(read_one, paths.values()), strict=True))
        finally:
            pool.shutdown(cancel_futures=True)


def leaked_questions(path: str | Path) -> list[str]:
    """The question ids of a text file, one per line.

    Raises:
        InputError: The file does not exist, is not text or has no ids.
    """
    ids = [line.strip() for line in read_text(Path(path)).splitlines() if line.strip()]
    if not ids:
        raise InputError(f"{path}: has no question ids; give one per line")
    return ids


def _read_counts(file: ResponseFile, ids: "pd.Series[str]") -> pd.DataFrame:
    """The counts of a file with one row per question."""
    _check_duplicates(file, ids.to_frame("question_id"), "give one row per question")
    table = pd.DataFrame(
        {
            "question_id": ids,
            "n_correct": file.counts("n_correct", ids),
            "n_samples": file.counts("n_samples", ids),
        }
    )
    invalid = table[table["n_correct"] > table["n_samples"]]
    if len(invalid):
        row = invalid.iloc[0]
        raise file.error(
            int(invalid.index[0]),
            f"question {row['question_id']!r} has {row['n_correct']} correct of "
            f"{row['n_samples']} samples",
        )
    for column in ("first_correct", "leaked"):
        if column in file.rows:
            table[column] = file.flags(column, ids)
    return table.reset_index(drop=True)


def _grade(file: ResponseFile, ids: "pd.Series[str]", grader: Grader) -> "pd.Series[bool]":
    """Score the responses of a file that has gold answers.

    Raises:
        InputError: As `Grader`; also if the rows of a question disagree on its gold answer.
    """
    gold = grader.gold_answers(file, "gold")
    expected = gold.groupby(ids).transform("first")
    differing = gold[gold != expected]
    if len(differing):
        number = differing.index[0]
        raise file.error(
            number,
            f"question {ids[number]!r} has gold {gold[number]} here and {expected[number]} "
            "before; a question has one gold answer",
        )
    responses = file.rows["response"]
    marks = [
        grader.grade(file, *row) for row in zip(file.numbers, ids, responses, gold, strict=True)
    ]
    return pd.Series(marks, index=responses.index)


def _count(
    file: ResponseFile, responses: pd.DataFrame, questions: list[str] | None = None
) -> pd.DataFrame:
    """Counts from one row per response; the first response is that with the lowest sample_id.

    Without `sample_id`, it is that of the first row. A question without a response is given by
    `questions`.
    """
    if questions is None:
        questions = list(responses["question_id"].unique())
    if "sample_id" in responses:
        responses = responses.sort_values("sample_id", kind="stable")
        _check_duplicates(file, responses[["question_id", "sample_id"]], "remove one of the two")
    by_question = responses.groupby("question_id", sort=False)
    counts = by_question["correct"].agg(n_correct="sum", n_samples="size", first_correct="first")
    if "leaked" in responses:
        counts["leaked"] = by_question["leaked"].first()
        expected = responses["question_id"].map(counts["leaked"])
        differing = responses.index[responses["leaked"] != expected]
        if len(differing):
            number = int(differing[0])
            question = responses.loc[number, "question_id"]
            raise file.error(number, f"question {question!r} is leaked in one row, not in another")
    table = pd.DataFrame(counts).reindex(pd.Index(questions, name="question_id"), fill_value=0)
    types = {"n_correct": int, "n_samples": int, "first_correct": bool}
    return table.reset_index().astype(types)


def _check_duplicates(file: ResponseFile, keys: pd.DataFrame, fix: str) -> None:
    duplicates = keys[keys.duplicated()]
    if len(duplicates):
        key = duplicates.iloc[0]
        first = file.place(keys.index[(keys == key).all(axis=1)][0])
        sample = f", sample {key['sample_id']}" if "sample_id" in key else ""
        raise file.error(
            int(duplicates.index[0]),
            f"duplicate row: question {key['question_id']!r}{sample} (first: {first}); {fix}",
        )
