"""Files of responses as counts per question, whatever their format and origin.

A file is recognised by its columns, not by its name: `KINDS` has a reader per kind. The result
has the columns of a `solve` table (see `zerogap.io.parquet`) that the file gives: ``question_id``
(str), ``n_correct`` and ``n_samples`` (int), then ``first_correct`` (bool), ``leaked`` (bool) and
``cluster`` (str) if the file has them; ``gold`` (str), the gold answer, None where it is not known;
and ``doc_hash`` (str) of some logs, which distinguishes documents with the same number.
"""

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError, listed
from zerogap.io import parquet
from zerogap.io.text_files import read_text
from zerogap.scoring.formats import convert
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
MAX_PROCESSES = 4  # each holds a file, in several times its size

Counts = tuple[pd.DataFrame, list[str]]  # one row per question, and notes for a reader


@dataclass(frozen=True)
class Texts:
    """Question id → text of the question, and → its first `NUM_SHOWN` responses, if known."""

    questions: dict[str, str] = field(default_factory=dict)
    responses: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Loaded:
    """The counts of a file.

    Attributes:
        counts: One row per question, in the order of the file.
        has_filters: Whether it is a log of which one filter or scorer was read.
        notes: What its reader should know.
        disagreements: As of `Grader`.
        made_by: The provenance of a file of this project.
        texts: Empty unless they were asked for.
    """

    path: Path
    counts: pd.DataFrame
    has_filters: bool = False
    notes: tuple[str, ...] = ()
    disagreements: tuple[dict[str, Any], ...] | None = None
    made_by: dict[str, Any] = field(default_factory=dict)
    texts: Texts = field(default_factory=Texts)


def load(
    path: str | Path,
    filter_name: str | None = None,
    extraction: str | None = None,
    *,
    list_disagreements: bool = False,
    with_texts: bool = False,
) -> Loaded:
    """Read a file of responses or counts.

    Args:
        path: The file, of any kind in docs/score.md.
        filter_name: Filter whose records of an lm_eval log are read, or scorer of an Inspect log;
            the first one if None.
        extraction: Rule that scores responses, see `zerogap.data.extraction`; None: the default
            rule, and responses that the file marks as correct or not are not scored.
        list_disagreements: As of `Grader`.
        with_texts: Whether to keep some texts.

    Raises:
        InputError: The file or a value is not valid, or a run's file was made for another place of
            the run; names file and line.
    """
    path = Path(path)
    rule = extraction_rule(extraction or DEFAULT_RULE)
    grader = Grader(rule, list_disagreements=list_disagreements)
    file = read(path, COLUMNS)
    made_by = _provenance(file)
    file, marks, notes_on_format = convert(file, filter_name, marked=not extraction)
    # Where a file has both names, the alias is another column.
    aliases = {alias: name for alias, name in ALIASES.items() if name not in file.rows}
    rows = file.rows.rename(columns=aliases)
    if extraction and {"response", "gold"} <= set(rows):
        rows = rows.drop(columns="correct", errors="ignore")
    if marks and "correct" in rows:
        notes_on_format = [f"correct is {marks}", *notes_on_format]
    file = replace(file, rows=rows)
    for columns, read_kind in KINDS:
        if set(file.rows) >= columns:
            counts, notes = read_kind(file, grader)
            return Loaded(
                path=path,
                counts=counts,
                has_filters=bool(marks),
                notes=tuple(f"{file.path}: {note}" for note in (*notes_on_format, *notes)),
                disagreements=grader.disagreements,
                made_by=made_by,
                texts=_texts(file) if with_texts else Texts(),
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
    extraction: str | None = None,
    **options: Any,
) -> dict[str, Loaded]:
    """Read files by name, several large ones at once, with the options of `load`.

    Raises:
        InputError: as `load`, of the first file that is not valid; the filter or the rule applies
            to no file; or a process was killed.
    """
    options |= {"filter_name": filter_name, "extraction": extraction}
    read_one: Callable[[Path], Loaded] = partial(load, **options)
    processes = min(len(paths), os.cpu_count() or 1, MAX_PROCESSES)
    if processes > 1 and sum(one_log(path).stat().st_size for path in paths.values()) >= LARGE:
        loaded = _in_processes(read_one, paths.values(), processes)
    else:
        loaded = [read_one(path) for path in paths.values()]
    if filter_name and not any(file.has_filters for file in loaded):
        raise InputError("--filter: no file is a log with several filters; omit the option")
    if extraction and all(file.disagreements is None for file in loaded):
        raise InputError("--extraction: no file has responses with gold answers; omit the option")
    return dict(zip(paths, loaded, strict=True))


def _in_processes(
    read_one: Callable[[Path], Loaded], paths: Iterable[Path], processes: int
) -> list[Loaded]:
    # Not forked, since the caller may have threads; an interrupt ends them without a traceback.
    spawned = (get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_DFL))
    try:
        with ProcessPoolExecutor(processes, *spawned) as pool:
            return list(pool.map(read_one, paths))
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
    ids = file.question_ids
    file.check_duplicates({"question": ids}, "give one row per question")
    correct, samples = file.counts("n_correct"), file.counts("n_samples")
    table = pd.DataFrame({"question_id": ids, "n_correct": correct, "n_samples": samples})
    for row in np.flatnonzero(correct > samples):
        raise file.error(
            row,
            f"question {ids[row]!r} has {correct[row]} correct of {samples[row]} samples; fix one "
            "of them",
        )
    if "first_correct" in file.rows:
        first = table["first_correct"] = file.flags("first_correct")
        impossible = (first > correct) | ((~first > samples - correct) & (samples > 0))
        for row in np.flatnonzero(impossible):
            raise file.error(
                row,
                f"first_correct of question {ids[row]!r} is {first[row]}, but {correct[row]} of "
                f"{samples[row]} samples are correct; fix one of them",
            )
    return table.assign(**_of_questions(file)), []


def _read_marks(file: ResponseFile, grader: Grader) -> Counts:
    """Count the marks, except those of responses that a strategy dropped."""
    marks = file.flags("correct", "give true or false for every response")
    notes = []
    if "response" in file.rows:
        rows = file.rows[file.rows["response"] != DROPPED]
        marks = marks[rows.index]
        num_empty = sum(is_missing(text) or not str(text).strip() for text in rows["response"])
        # Only if some have none: "answer" may be the gold answer, and a filter may extract nothing.
        without = int(rows["answer"].isna().sum()) if "answer" in rows else 0
        unanswered = {"its rule or filter": without} if without else {}
        counts = count_note(len(rows), num_empty, unanswered)
        notes = [f"correct is as the file has it: {counts}", *_note_on_dropped(file, rows)]
    gold = grader.known_gold(file.rows["gold"]) if "gold" in file.rows else None
    table, notes_on_counts = _count(file, marks, gold)
    return table, [*notes, *notes_on_counts]


def _read_responses(file: ResponseFile, grader: Grader) -> Counts:
    """Score the responses, except those that a strategy dropped."""
    ids, gold = file.question_ids, grader.gold_answers(file)
    file.check_one_per_question("gold", gold)
    rows = pd.DataFrame({"question_id": ids, "gold": gold, "response": file.rows["response"]})
    rows = rows[rows["response"] != DROPPED]
    marks, note = grader.grade(file, rows)
    counts, notes = _count(file, marks, gold)
    return counts, [note, *_note_on_dropped(file, rows), *notes]


def _note_on_dropped(file: ResponseFile, kept: pd.DataFrame) -> list[str]:
    number = len(file.rows) - len(kept)
    return [f"{number} responses were dropped by the strategy"] if number else []


# The columns that a kind of file has, and its reader.
KINDS: tuple[tuple[set[str], Callable[[ResponseFile, Grader], Counts]], ...] = (
    ({"question_id", "n_correct", "n_samples"}, _read_counts),
    ({"question_id", "correct"}, _read_marks),
    ({"question_id", "response", "gold"}, _read_responses),
)


def _count(file: ResponseFile, marks: "pd.Series[bool]", gold: "pd.Series[Any] | None") -> Counts:
    """Counts from the marks of the rows that count; a question may have none.

    The first response is that with the lowest `sample_id`, without one that of the first row. A
    gold answer or hash is kept where a question has one.
    """
    ids, order = file.question_ids, marks.index
    if "sample_id" in file.rows:
        samples = file.counts("sample_id")
        file.check_duplicates({"question": ids, "sample": samples}, "remove one of the two")
        order = samples[order].sort_values(kind="stable").index
    counts = marks[order].groupby(ids[order], sort=False).agg(["sum", "size", "first"])
    counts.columns = pd.Index(["n_correct", "n_samples", "first_correct"])
    table = counts.reindex(pd.Index(ids.unique(), name="question_id"), fill_value=0)
    table = table.astype({"n_correct": int, "n_samples": int, "first_correct": bool})
    for column, values in _of_questions(file).items():
        table[column] = values.groupby(ids, sort=False).first()
    notes = []
    others: dict[str, pd.Series[Any] | None] = {"gold": gold, "doc_hash": file.rows.get("doc_hash")}
    for column, known in others.items():
        if known is not None:
            grouped = known.groupby(ids, sort=False)
            has_several = grouped.nunique() > 1
            table[column] = grouped.first().mask(has_several, None)
            if has_several.any():
                shown = listed(list(map(shorten, has_several.index[has_several])))
                notes.append(
                    f"questions with several values of {column} ({shown}); if they are different "
                    "questions, give them different ids"
                )
    return table.reset_index(), notes


def _of_questions(file: ResponseFile) -> dict[str, "pd.Series[Any]"]:
    """What a file says of its questions, equal in all rows of one and in all files."""
    values: dict[str, pd.Series[Any]] = {}
    if "leaked" in file.rows:
        values["leaked"] = file.flags("leaked")
    if "cluster" in file.rows:
        values["cluster"] = file.names("cluster")
    for column in values:
        file.check_one_per_question(column, values[column])
    return values


def _texts(file: ResponseFile) -> Texts:
    texts = Texts()
    columns = file.rows.reindex(columns=["question", "response"])
    for key, (question, response) in zip(file.question_ids, columns.to_numpy(), strict=True):
        if isinstance(question, str):
            texts.questions[key] = question
        responses = texts.responses.setdefault(key, [])
        if isinstance(response, str) and response != DROPPED and len(responses) < NUM_SHOWN:
            responses.append(response)
    return texts if texts.questions else replace(texts, questions=_run_questions(file.path))


def _run_questions(samples: Path) -> dict[str, str]:
    """The questions of a file <run>/<model>/<benchmark>/cells/<strategy>/samples.parquet."""
    benchmark = samples.resolve().parent.parent.parent  # the root is its own parent
    path = benchmark / "../../data" / benchmark.name / "questions.parquet"
    if not path.is_file():
        return {}
    table = parquet.read(path, "questions")
    return dict(zip(table["question_id"], table["question"], strict=True))
