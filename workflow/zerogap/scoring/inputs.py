"""Files of responses as counts per question, whatever their format and origin.

A file is recognised by its columns, not by its name: `KINDS` has a reader per kind. The result
has the columns of a `solve` table (see `zerogap.io.parquet`) that the file gives: ``question_id``
(str), ``n_correct`` and ``n_samples`` (int), then ``first_correct`` (bool), ``leaked`` (bool) and
``cluster`` (str) if the file has them; ``gold`` (str), the gold answer, None where it is not known;
and ``doc_hash`` (str) of some logs, which distinguishes documents with the same number.
"""

import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.text_files import read_text
from zerogap.scoring.formats import WITH_FILTERS, convert
from zerogap.scoring.grader import Grader, count_note
from zerogap.scoring.log_files import one_log
from zerogap.scoring.response_file import ResponseFile, is_missing, read, shorten, unknown_kind
from zerogap.strategies.filtering import DROPPED

# Alternative name of a column → its name.
ALIASES = {"id": "question_id", "is_correct": "correct", "text": "response", "target": "gold"}
RUN_FILES = ("samples.parquet", "solve.parquet")
COLUMNS = (  # of Parquet files
    *(*ALIASES.values(), *ALIASES),
    *("answer", "sample_id", "n_correct", "n_samples", "first_correct", "leaked", "cluster"),
    *("question", "responses"),
    *("doc.id", "doc.query", "doc.choices", "doc.gold_index", "model_response.text"),
)
DEFAULT_RULE = "numeric"
NUM_SHOWN = 3  # responses per question
LARGE = 20 * 2**20  # bytes of files, which take as long to read as further processes to start
ALL_MARKED = "every file already marks which responses are correct; omit the option"
MAX_PROCESSES = 4  # each holds a file, in several times its size

Counts = tuple[pd.DataFrame, list[str]]  # one row per question, and notes for a reader


@dataclass(frozen=True)
class Texts:
    """The texts of a file, as far as it has them.

    Attributes:
        questions: Question id → text of the question.
        responses: Question id → its first responses, at most `NUM_SHOWN`.
    """

    questions: dict[str, str] = field(default_factory=dict)
    responses: dict[str, list[str]] = field(default_factory=dict)


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
        made_by: The provenance of a file of this project.
        texts: Its texts, if they were asked for.
    """

    path: Path
    counts: pd.DataFrame
    kind: str
    notes: tuple[str, ...] = ()
    disagreements: tuple[dict[str, Any], ...] | None = None
    made_by: dict[str, Any] = field(default_factory=dict)
    texts: Texts = field(default_factory=Texts)


def load(
    path: str | Path,
    filter_name: str | None = None,
    extraction: str = DEFAULT_RULE,
    *,
    list_disagreements: bool = False,
    with_texts: bool = False,
) -> Loaded:
    """Read a file of responses or counts.

    Args:
        path: The file, of any kind in docs/score.md.
        filter_name: Filter whose records of an lm_eval log are read, or scorer of an Inspect log;
            the first one if None.
        extraction: Rule that scores responses, see `zerogap.data.extraction`.
        list_disagreements: Whether to list the responses on which the rules do not agree.
        with_texts: Whether to keep some texts. The questions of a file in the results of a run are
            those of its benchmark.

    Raises:
        InputError: The file is missing, empty, malformed or of unknown kind; a question or response
            is duplicated; correctness is missing or not 0/1; a gold answer is not accepted by the
            rule or changes within a question; counts are not valid; a run's file was made for
            another place of the run. The message names file and line.
    """
    path = Path(path)
    grader = Grader(extraction_rule(extraction), list_disagreements=list_disagreements)
    file = read(path, COLUMNS)
    made_by = _provenance(file)
    file, log_format, notes_on_format = convert(file, filter_name)
    file = file.rename(ALIASES)
    for kind, (columns, read_kind) in KINDS.items():
        if set(file.rows) >= columns:
            counts, notes = read_kind(file, grader)
            return Loaded(
                path,
                counts,
                log_format or kind,
                tuple(f"{file.path}: {note}" for note in (*notes_on_format, *notes)),
                grader.disagreements,
                made_by,
                _texts(file) if with_texts else Texts(),
            )
    if set(file.rows) >= {"question_id", "response"}:
        raise InputError(
            f"{file.path}: has responses but no gold answers to score them against; add a column "
            "gold, or correct with the marks of your own scoring"
        )
    raise unknown_kind(file.path, list(file.rows))


def load_all(
    paths: Mapping[str, Path],
    filter_name: str | None = None,
    extraction: str = DEFAULT_RULE,
    **options: bool,
) -> dict[str, Loaded]:
    """Read files as `load` does, several large ones at once.

    Args:
        paths: Name → file.
        filter_name: As of `load`.
        extraction: As of `load`.
        **options: Others of `load`.

    Raises:
        InputError: as `load`, of the first file that is not valid; the filter or the rule applies
            to no file; or a process was killed.
    """
    files = _load_all(paths, filter_name=filter_name, extraction=extraction, **options)
    if filter_name and all(file.kind not in WITH_FILTERS for file in files.values()):
        raise InputError("--filter: no file is a log with several filters; omit the option")
    if extraction != DEFAULT_RULE and all(f.disagreements is None for f in files.values()):
        raise InputError(f"--extraction: {ALL_MARKED}")
    return files


def _load_all(paths: Mapping[str, Path], **options: Any) -> dict[str, Loaded]:
    read_one: Callable[[Path], Loaded] = partial(load, **options)
    processes = min(len(paths), os.cpu_count() or 1, MAX_PROCESSES)
    if processes == 1 or sum(one_log(path).stat().st_size for path in paths.values()) < LARGE:
        return {name: read_one(path) for name, path in paths.items()}
    # Not forked, since the caller may have threads; an interrupt ends them without a traceback.
    spawned = (get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_DFL))
    with ProcessPoolExecutor(processes, *spawned) as pool:
        try:
            return dict(zip(paths, pool.map(read_one, paths.values()), strict=True))
        except BrokenProcessPool as error:
            raise InputError(
                "a process that read the files was killed, perhaps for lack of memory; give fewer "
                "or smaller files"
            ) from error


def leaked_questions(path: str | Path) -> list[str]:
    """The question ids of a text file, one per line.

    Raises:
        InputError: The file does not exist, is not text or has no ids.
    """
    ids = [line.strip() for line in read_text(Path(path)).splitlines() if line.strip()]
    if not ids:
        raise InputError(f"{path}: has no question ids; give one per line")
    return ids


def _provenance(file: ResponseFile) -> dict[str, Any]:
    """How a file of this project was made; empty for other files.

    Raises:
        InputError: It is among a run's files, but was made for another place.
    """
    if file.unit != "row":
        return {}
    if file.path.name in RUN_FILES and "cells" in file.path.absolute().parts:
        parquet.check_place(file.path)
    return parquet.provenance(file.path)


def _read_counts(file: ResponseFile, _: Grader) -> Counts:
    ids = file.question_ids()
    file.check_duplicates({"question": ids}, "give one row per question")
    names = ["n_correct", "n_samples"]
    table = pd.DataFrame({"question_id": ids, **{name: file.counts(name, ids) for name in names}})
    correct, samples = table["n_correct"], table["n_samples"]
    for row in np.flatnonzero(correct > samples):
        raise file.error(
            row, f"question {ids[row]!r} has {correct[row]} correct of {samples[row]} samples"
        )
    if "first_correct" in file.rows:
        first = table["first_correct"] = file.flags("first_correct", ids)
        impossible = (first > correct) | ((~first > samples - correct) & (samples > 0))
        for row in np.flatnonzero(impossible):
            raise file.error(
                row,
                f"first_correct of question {ids[row]!r} is {first[row]}, but {correct[row]} of "
                f"{samples[row]} samples are correct; fix one of them",
            )
    return table.assign(**_of_questions(file, ids)), []


def _read_marks(file: ResponseFile, grader: Grader) -> Counts:
    """Count the marks, except those of responses that a strategy dropped."""
    ids = file.question_ids()
    marks = file.flags("correct", ids, "give true or false for every response")
    notes = []
    if "response" in file.rows:
        rows = file.rows[file.rows["response"] != DROPPED]
        marks = marks[rows.index]
        num_empty = sum(is_missing(text) or not str(text).strip() for text in rows["response"])
        unanswered = {}
        if "answer" in rows:
            unanswered["its rule or filter"] = int(rows["answer"].isna().sum())
        counts = count_note(len(rows), num_empty, unanswered)
        notes = [f"correct is as the file has it: {counts}", *_note_on_dropped(len(ids), rows)]
    gold = grader.known_gold(file.rows["gold"]) if "gold" in file.rows else None
    return _count(file, ids, marks, gold), notes


def _read_responses(file: ResponseFile, grader: Grader) -> Counts:
    """Score the responses, except those that a strategy dropped.

    Raises:
        InputError: As `Grader`; also if the rows of a question disagree on its gold answer.
    """
    ids = file.question_ids()
    gold = grader.gold_answers(file)
    expected = gold.groupby(ids).transform("first")
    for row in np.flatnonzero(gold != expected):
        raise file.error(
            row,
            f"question {ids[row]!r} has gold {shorten(gold[row])} here and "
            f"{shorten(expected[row])} before; a question has one gold answer",
        )
    rows = pd.DataFrame({"question_id": ids, "gold": gold, "response": file.rows["response"]})
    rows = rows[rows["response"] != DROPPED]
    marks, note = grader.grade(file, rows)
    return _count(file, ids, marks, gold), [note, *_note_on_dropped(len(ids), rows)]


def _note_on_dropped(num_responses: int, kept: pd.DataFrame) -> list[str]:
    number = num_responses - len(kept)
    return [f"{number} responses were dropped by the strategy"] if number else []


# Kind → the columns that a file of it has, and its reader.
KINDS: dict[str, tuple[set[str], Callable[[ResponseFile, Grader], Counts]]] = {
    "counts per question": ({"question_id", "n_correct", "n_samples"}, _read_counts),
    "correctness of each response": ({"question_id", "correct"}, _read_marks),
    "responses with gold answers": ({"question_id", "response", "gold"}, _read_responses),
}


def _count(
    file: ResponseFile,
    ids: "pd.Series[str]",
    marks: "pd.Series[bool]",
    gold: "pd.Series[Any] | None",
) -> pd.DataFrame:
    """Counts from the marks of the rows that count; a question may have none.

    The first response is that with the lowest `sample_id`, without one that of the first row.
    """
    order = marks.index
    if "sample_id" in file.rows:
        samples = file.counts("sample_id", ids)
        file.check_duplicates({"question": ids, "sample": samples}, "remove one of the two")
        order = samples[order].sort_values(kind="stable").index
    counts = marks[order].groupby(ids[order], sort=False).agg(["sum", "size", "first"])
    counts.columns = pd.Index(["n_correct", "n_samples", "first_correct"])
    table = counts.reindex(pd.Index(ids.unique(), name="question_id"), fill_value=0)
    table = table.astype({"n_correct": int, "n_samples": int, "first_correct": bool})
    shared = _of_questions(file, ids)
    known = {"gold": gold, "doc_hash": file.rows.get("doc_hash")}
    for column, values in (shared | known).items():
        if values is None:
            continue
        table[column] = values.groupby(ids, sort=False).first()
        if column in shared:
            for row in np.flatnonzero(values != ids.map(table[column])):
                raise file.error(row, f"question {ids[row]!r} has another {column} than before")
    return table.reset_index()


def _of_questions(file: ResponseFile, ids: "pd.Series[str]") -> dict[str, "pd.Series[Any]"]:
    """What a file says of its questions, equal in all rows of one and in all files."""
    values: dict[str, pd.Series[Any]] = {}
    if "leaked" in file.rows:
        values["leaked"] = file.flags("leaked", ids)
    if "cluster" in file.rows:
        values["cluster"] = file.question_ids("cluster")
    return values


def _texts(file: ResponseFile) -> Texts:
    ids = file.question_ids()
    responses: dict[str, list[str]] = {key: [] for key in ids}
    for key, text in zip(ids, file.rows.get("response", ids.map(lambda _: None)), strict=True):
        if isinstance(text, str) and text != DROPPED and len(responses[key]) < NUM_SHOWN:
            responses[key].append(text)
    asked = zip(ids, file.rows.get("question", ids.map(lambda _: None)), strict=True)
    questions = {key: text for key, text in asked if isinstance(text, str)}
    return Texts(questions or _run_questions(file.path), responses)


def _run_questions(samples: Path) -> dict[str, str]:
    """The questions of a file <run>/<model>/<benchmark>/cells/<strategy>/samples.parquet."""
    benchmark = samples.resolve().parent.parent.parent  # the root is its own parent
    path = benchmark / "../../data" / benchmark.name / "questions.parquet"
    if not path.is_file():
        return {}
    table = parquet.read(path, "questions")
    return dict(zip(table["question_id"], table["question"], strict=True))
