"""Logs of other tools as rows of question_id, sample_id, correct, response, gold and question.

A format is one function from the rows of a file, as they are in it, to such rows. `FORMATS` says by
which columns its files are recognised. lm_eval's logs have a module of their own
(:mod:`zerogap.scoring.lm_eval`).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from zerogap.errors import InputError
from zerogap.scoring.response_file import ResponseFile, describe

Row = dict[str, Any]
# What Inspect's scorers write: correct, incorrect, no answer; 1, 1.0 and true are equal.
INSPECT_MARKS: dict[Any, bool] = {"C": True, "I": False, "N": False, 1: True, 0: False}


@dataclass(frozen=True)
class Format:
    """A kind of log.

    Attributes:
        columns: what its files have.
        read: file and chosen marks (None: the first) → rows, or raises InputError.
        marks: one record → the names of its marks, of which one is chosen; None if it has one.
    """

    columns: frozenset[str]
    read: Callable[[ResponseFile, str | None], Iterable[Row]]
    marks: Callable[[Row], Iterable[str]] | None = None


def convert(file: ResponseFile, filter_name: str | None) -> tuple[ResponseFile, str, list[str]]:
    """Bring a log of another tool into the form of other files.

    Args:
        file: as it is read.
        filter_name: which marks of its responses count; None for the first.

    Returns:
        The file, the name of its format ("" if it has the form already), and notes.

    Raises:
        InputError: a record is not valid, or has no such marks.
    """
    for name, log_format in FORMATS.items():
        if not log_format.columns <= set(file.rows):
            continue
        notes = []
        if log_format.marks:
            names = list(
                dict.fromkeys(name for _, row in _records(file) for name in log_format.marks(row))
            )
            if filter_name not in (None, *names):
                raise InputError(f"{file.path}: no {filter_name!r}; it has {', '.join(names)}")
            filter_name = filter_name or (names[0] if names else None)
            others = ", ".join(each for each in names if each != filter_name)
            choice = f" (others: {others}; choose with --filter)" if others else ""
            notes = [f"{file.path}: correct is {filter_name} of the {name}{choice}"]
        rows = pd.DataFrame(list(log_format.read(file, filter_name)), dtype=object)
        rows.index += 1
        return replace(file, rows=rows, unit="response"), name, notes
    return file, "", []


def _inspect(file: ResponseFile, scorer: str | None) -> Iterator[Row]:
    """One sample per question and epoch."""
    for number, sample in _records(file):
        score = _part(sample, "scores").get(scorer or "")
        metadata = _part(sample, "metadata")
        if not isinstance(score, dict):
            raise file.error(
                number,
                f"sample {describe(sample['id'])} has no score; finish the log with "
                "inspect eval-retry or inspect score",
            )
        value = score.get("value")
        if not isinstance(value, str | int | float) or value not in INSPECT_MARKS:
            raise file.error(
                number,
                f"the score {scorer} of sample {describe(sample['id'])} is {describe(value)}; "
                'give a log whose scores are "C" or "I", 1 or 0',
            )
        yield {
            "question_id": sample["id"],
            "sample_id": sample["epoch"],
            "correct": INSPECT_MARKS[value],
            "response": _part(sample, "output").get("completion"),
            "gold": _only(sample["target"]),
            "question": sample.get("input"),
        } | ({"cluster": metadata["cluster"]} if "cluster" in metadata else {})


def _every_eval_ever(file: ResponseFile, evaluation: str | None) -> Iterator[Row]:
    """One record per response, or several responses in a record, which are scored here."""
    records = [
        (number, record)
        for number, record in _records(file)
        if evaluation in (None, *_evaluations(record))
    ]
    outputs = [_part(record, "output").get("raw") or [None] for _, record in records]
    repeated = any(len(texts) > 1 for texts in outputs)
    for (number, record), texts in zip(records, outputs, strict=True):
        asked, marks = _part(record, "input"), _part(record, "evaluation")
        if "is_correct" not in marks:
            raise file.error(number, "evaluation.is_correct is missing; give true or false")
        for text in texts:
            yield {
                "question_id": record["sample_id"],
                "response": text,
                "gold": _only(asked.get("reference")),
                "question": asked.get("raw"),
                "doc_hash": record.get("sample_hash"),
            } | ({} if repeated else {"correct": marks["is_correct"]})


def _lighteval(file: ResponseFile, _: str | None) -> Iterator[Row]:
    """One document with all of its responses; its metrics are means over them."""
    for number, record in _records(file):
        doc, texts = _part(record, "doc"), _part(record, "model_response").get("text")
        index = _only(doc.get("gold_index"))
        choices = doc.get("choices")
        if not isinstance(index, int) or not isinstance(choices, list) or not texts:
            raise file.error(number, "needs doc.choices, one doc.gold_index, model_response.text")
        if not 0 <= index < len(choices):
            raise file.error(number, f"doc.gold_index is {index} of {len(choices)} choices")
        query = str(doc.get("query"))
        for text in texts:
            yield {
                "question_id": doc.get("id") or hashlib.sha256(query.encode()).hexdigest()[:16],
                "response": text,
                "gold": choices[index],
                "question": query,
            }


def _nested(file: ResponseFile, _: str | None) -> Iterator[Row]:
    """One question with a list of texts, or of objects with text and mark."""
    for number, record in _records(file):
        responses = record["responses"]
        if not isinstance(responses, list) or not responses:
            raise file.error(number, f"responses is {describe(responses)}; give a list of texts")
        shared = {name: value for name, value in record.items() if name != "responses"}
        for response in responses:
            yield shared | (response if isinstance(response, dict) else {"response": response})


def _records(file: ResponseFile) -> Iterator[tuple[int, Row]]:
    columns = [str(name) for name in file.rows]
    for number, *values in file.rows.itertuples(name=None):
        yield number, dict(zip(columns, values, strict=True))


def _part(record: Row, name: str) -> Row:
    """An object in a record; empty if it is missing."""
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _only(value: Any) -> Any:
    """The one value of a list; the list as a text if it has several."""
    if not isinstance(value, list):
        return value
    return value[0] if len(value) == 1 else str(value)


def _evaluations(record: Row) -> list[str]:
    return [str(record.get("evaluation_result_id") or record.get("evaluation_name"))]


FORMATS = {
    "Inspect log": Format(
        frozenset({"id", "epoch", "scores"}), _inspect, lambda record: _part(record, "scores")
    ),
    "Every Eval Ever file": Format(
        frozenset({"sample_id", "evaluation", "evaluation_name"}), _every_eval_ever, _evaluations
    ),
    "lighteval details": Format(frozenset({"doc", "model_response"}), _lighteval),
    "list of responses": Format(frozenset({"responses"}), _nested),
}
