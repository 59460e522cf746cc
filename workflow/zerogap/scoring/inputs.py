"""Files of responses as counts per question, whatever their format and origin.

A file is recognised by its columns, not by its name: `KINDS` has a reader per kind. The result
has the columns of a `solve` table (see `zerogap.io.parquet`) that the file gives: ``question_id``
(str), ``n_correct`` and ``n_samples`` (int), then ``first_correct`` (bool), ``leaked`` (bool) and
``cluster`` (str) if the file has them; ``gold`` (str), the gold answer, None where it is not known;
and ``doc_hash`` (str) for lm_eval logs, which distinguishes documents with the same number.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.text_files import read_text
from zerogap.scoring import formats, lm_eval
from zerogap.scoring.grader import Grader, count_note
from zerogap.scoring.response_file import ResponseFile, read, shorten, unknown_kind

# Alternative name of a column → its name.
ALIASES = {"id": "question_id", "is_correct": "correct", "text": "response", "target": "gold"}
LM_EVAL = "lm_eval sample log"  # the `kind` of such a file
WITH_FILTERS = (LM_EVAL, *(name for name, each in formats.FORMATS.items() if each.marks))
RUN_FILES = ("samples.parquet", "solve.parquet")
COLUMNS = (  # of Parquet files
    *(*ALIASES.values(), *ALIASES),
    *("answer", "sample_id", "n_correct", "n_samples", "first_correct", "leaked", "cluster"),
    "responses",
    *("doc.id", "doc.query", "doc.choices", "doc.gold_index", "model_response.text"),
)
SHARED_COLUMNS = ["leaked", "cluster"]  # of a question, equal in all rows and files

Counts = tuple[pd.DataFrame, tuple[str, ...]]  # one row per question, and notes for a reader


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
    """

    path: Path
    counts: pd.DataFrame
    kind: str
    notes: tuple[str, ...] = ()
    disagreements: tuple[dict[str, Any], ...] | None = None
    made_by: dict[str, Any] = field(default_factory=dict)


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
        lm_eval_filter: Filter whose records of an lm_eval log are read, or scorer of an Inspect
            log; the first one if None.
        extraction: Rule that scores responses, see `zerogap.data.extraction`.
        list_disagreements: Whether to list the responses on which the rules do not agree.

    Raises:
        InputError: The file is missing, empty, malformed or of unknown kind; a question or response
            is duplicated; correctness is missing or not 0/1; a gold answer is not accepted by the
            rule or changes within a question; counts are not valid; a run's file was made for
            another place of the run. The message names file and line.
    """
    path = Path(path)
    grader = Grader(extraction_rule(extraction), list_disagreements=list_disagreements)
    file = read(path, COLUMNS)
    if set(file.rows) >= lm_eval.COLUMNS:
        counts, notes = _read_log(file, grader, lm_eval_filter)
        return Loaded(path, counts, LM_EVAL, notes, grader.disagreements)
    made_by = _provenance(file)
    file, log_format, notes_on_format = formats.convert(file, lm_eval_filter)
    file = file.rename(ALIASES)
    for kind, (columns, read_kind) in KINDS.items():
        if set(file.rows) >= columns:
            counts, notes = read_kind(file, grader)
            notes = (*notes_on_format, *notes)
            graded = grader.disagreements
            return Loaded(path, counts, log_format or kind, notes, graded, made_by)
    if set(file.rows) >= {"question_id", "response"}:
        raise InputError(
            f"{file.path}: has responses but no gold answers to score them against; add a column "
            "gold, or correct with the marks of your own scoring"
        )
    raise unknown_kind(file.path, list(file.rows))


def leaked_questions(path: str | Path) -> list[str]:
    """The question ids of a text file, one per line.

    Raises:
        InputError: The file does not exist, is not text or has no ids.
    """
    ids = [line.strip() for line in read_text(Path(path)).splitlines() if line.strip()]
    if not ids:
        raise InputError(f"{path}: has no question ids; give one per line")
    return ids


def _read_log(file: ResponseFile, grader: Grader, lm_eval_filter: str | None) -> Counts:
    responses, documents, notes = lm_eval.read_log(file, grader, lm_eval_filter)
    counts = _count(file, responses, list(documents.index))
    return counts.merge(documents, left_on="question_id", right_index=True), notes


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
    ids = file.question_ids("question_id")
    file.check_duplicates({"question": ids}, "give one row per question")
    names = ["n_correct", "n_samples"]
    table = pd.DataFrame({"question_id": ids, **{name: file.counts(name, ids) for name in names}})
    for number, row in table[table["n_correct"] > table["n_samples"]].iterrows():
        raise file.error(
            int(str(number)),
            f"question {row['question_id']!r} has {row['n_correct']} correct of "
            f"{row['n_samples']} samples",
        )
    for column in ("first_correct", "leaked"):
        if column in file.rows:
            table[column] = file.flags(column, ids)
    if "cluster" in file.rows:
        table["cluster"] = file.question_ids("cluster")
    if "first_correct" in table:
        first, wrong = table["first_correct"], table["n_samples"] - table["n_correct"]
        impossible = (first > table["n_correct"]) | ((~first > wrong) & (table["n_samples"] > 0))
        for number, row in table[impossible].iterrows():
            raise file.error(
                int(str(number)),
                f"first_correct of question {row['question_id']!r} is {row['first_correct']}, but "
                f"{row['n_correct']} of {row['n_samples']} samples are correct; fix one of them",
            )
    return table.reset_index(drop=True), ()


def _read_marks(file: ResponseFile, grader: Grader) -> Counts:
    ids = file.question_ids("question_id")
    marks = file.flags("correct", ids, "give true or false for every response")
    notes = []
    if "response" in file.rows:
        num_empty = sum(not str(text or "").strip() for text in file.rows["response"])
        answers = file.rows.get("answer")
        unanswered = {} if answers is None else {"its rule": int(answers.isna().sum())}
        counted = count_note(len(ids), num_empty, unanswered)
        notes.append(f"{file.path}: correct is as the file has it: {counted}")
    gold = grader.known_gold(file.rows["gold"]) if "gold" in file.rows else None
    return _count_marks(file, ids, marks, gold), tuple(notes)


def _read_responses(file: ResponseFile, grader: Grader) -> Counts:
    """Score the responses.

    Raises:
        InputError: As `Grader`; also if the rows of a question disagree on its gold answer.
    """
    ids = file.question_ids("question_id")
    gold = grader.gold_answers(file, "gold")
    expected = gold.groupby(ids).transform("first")
    for number in gold.index[gold != expected]:
        raise file.error(
            number,
            f"question {ids[number]!r} has gold {shorten(gold[number])} here and "
            f"{shorten(expected[number])} before; a question has one gold answer",
        )
    rows = zip(file.numbers, ids, file.rows["response"], gold, strict=True)
    marks = [grader.grade(file, *row) for row in rows]
    counts = _count_marks(file, ids, pd.Series(marks, index=ids.index), gold)
    return counts, (f"{file.path}: {grader.note()}",)


# Kind → the columns that a file of it has, and its reader.
KINDS: dict[str, tuple[set[str], Callable[[ResponseFile, Grader], Counts]]] = {
    "counts per question": ({"question_id", "n_correct", "n_samples"}, _read_counts),
    "correctness of each response": ({"question_id", "correct"}, _read_marks),
    "responses with gold answers": ({"question_id", "response", "gold"}, _read_responses),
}


def _count_marks(
    file: ResponseFile,
    ids: "pd.Series[str]",
    marks: "pd.Series[bool]",
    gold: "pd.Series[Any] | None",
) -> pd.DataFrame:
    """Counts from the marks of the rows, with the file's sample_id, leaked and cluster."""
    responses = pd.DataFrame({"question_id": ids, "correct": marks})
    if "sample_id" in file.rows:
        responses["sample_id"] = file.counts("sample_id", ids)
    if "leaked" in file.rows:
        responses["leaked"] = file.flags("leaked", ids)
    if "cluster" in file.rows:
        responses["cluster"] = file.question_ids("cluster")
    counts = _count(file, responses, list(ids.unique()))
    known = {"gold": gold, "doc_hash": file.rows.get("doc_hash")}
    return counts.assign(
        **{
            name: values.groupby(ids, sort=False).first().to_numpy()
            for name, values in known.items()
            if values is not None
        }
    )


def _count(file: ResponseFile, responses: pd.DataFrame, questions: list[str]) -> pd.DataFrame:
    """Counts from one row per response; the first response is that with the lowest sample_id.

    Without `sample_id`, it is that of the first row. A question may have no response.
    """
    if "sample_id" in responses:
        responses = responses.sort_values("sample_id", kind="stable")
        keys = {"question": responses["question_id"], "sample": responses["sample_id"]}
        file.check_duplicates(keys, "remove one of the two")
    by_question = responses.groupby("question_id", sort=False)
    counts = by_question["correct"].agg(n_correct="sum", n_samples="size", first_correct="first")
    for column in responses.columns.intersection(SHARED_COLUMNS):
        counts[column] = by_question[column].first()
        expected = responses["question_id"].map(counts[column])
        for number in responses.index[responses[column] != expected]:
            question = responses.loc[number, "question_id"]
            raise file.error(number, f"question {question!r} has another {column} than before")
    table = pd.DataFrame(counts).reindex(pd.Index(questions, name="question_id"), fill_value=0)
    types = {"n_correct": int, "n_samples": int, "first_correct": bool}
    return table.reset_index().astype(types)
