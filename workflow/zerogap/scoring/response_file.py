"""Read files of responses: Parquet, JSON and CSV, recognised by content.

Values are kept as they are in the file and checked by column afterwards, so that an error can name
the file, the line and the value.
"""

import csv
import io
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from zerogap.errors import InputError, first_line, listed
from zerogap.io.parquet import DAMAGE
from zerogap.io.text_files import decode, json_lines, parse_json, printable
from zerogap.scoring.log_files import content, one_log, zipped_samples

ACCEPTED = (
    "question_id with correct (one row per response), with n_correct and n_samples (one row per "
    "question), or with response and gold; or a sample log of lm_eval (doc_id, target, resps)"
)
INSPECT = (  # of a sample
    *("id", "epoch", "input", "target", "scores", "output", "metadata", "error", "invalidation"),
)
# Keys of files of other kinds → what they are, and what to do.
OTHER_KINDS = {
    "results config_general": "the results of lighteval; give details_*.parquet (--save-details)",
    "results versions": "the results of lm_eval; give samples_*.jsonl (--log_samples)",
    "doc_id prompt_0": "a log of lm_eval 0.3; write question_id and correct",
    "evaluation_id evaluation_results": (
        "an aggregate of Every Eval Ever; give its instances, *_samples.jsonl"
    ),
    "eval status": "an Inspect log without samples; give the whole log",
    "custom_id response": "an output of OpenAI's batch API; write question_id, response and gold",
    "run_id event_id": "a log of OpenAI Evals; write question_id and correct",
    "task_id solution": "a file of EvalPlus; write question_id and correct",
    "adapter_spec request_states": "a log of HELM; write question_id, response and gold",
    "index sample_score": "a log of EvalScope; write question_id and correct",
}
MAX_SHOWN_COLUMNS = 8
MAX_SHOWN_CHARACTERS = 60
MAX_SHARED = 32  # characters of a text that is likely to occur often
_EMPTY = ("", "none", "null", "nan")
FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_COUNT = re.compile(r"([0-9]{1,9})(?:\.0*)?")


@dataclass(frozen=True)
class ResponseFile:
    """The rows of a file.

    Attributes:
        path: The file.
        rows: Values as read, of dtype object, by position.
        numbers: Where each row is in the file, from 1; rows may come from one place.
        unit: What is numbered: ``line``, ``row``, ``record`` or ``sample``.
    """

    path: Path
    rows: pd.DataFrame
    numbers: Sequence[int]
    unit: str

    def place(self, row: SupportsIndex) -> str:
        """Where a row is, "clean.jsonl, line 3"."""
        return f"{self.path}, {self.unit} {self.numbers[int(row)]}"

    def error(self, row: SupportsIndex, message: str) -> InputError:
        """An error about one row."""
        return InputError(f"{self.place(row)}: {message}")

    @cached_property
    def question_ids(self) -> "pd.Series[str]":
        """The ids of the questions, as of `names`."""
        return self.names("question_id")

    def names(self, column: str) -> "pd.Series[str]":
        """A column of names as text; InputError if one is neither a text nor a whole number."""
        names = self.rows[column].map(_name)
        for row in np.flatnonzero(names == ""):
            value = describe(self.rows[column][row])
            raise self.error(
                row,
                f"{column} is {value}; give a text or a whole number, without control characters",
            )
        return names

    def counts(self, column: str) -> "pd.Series[int]":
        """A column of whole numbers from 0; InputError if a value is something else."""
        return self._parsed(column, _count, "a count is 0, 1, 2, …, with at most nine digits")

    def flags(self, column: str, fix: str = "give true or false") -> "pd.Series[bool]":
        """A column of true/false or 1/0; InputError, which ends in `fix`, if it has others."""
        return self._parsed(column, FLAGS.get, fix)

    def check_duplicates(self, keys: Mapping[str, "pd.Series[Any]"], fix: str) -> None:
        """InputError, which ends in `fix`, if two rows have the same values of all keys."""
        table = pd.DataFrame(keys, dtype=object)
        for row in np.flatnonzero(table.duplicated()):
            key = table.iloc[row]
            first = self.place((table == key).all(axis=1).argmax())
            shown = ", ".join(f"{name} {describe(value)}" for name, value in key.items())
            raise self.error(row, f"duplicate row: {shown} (first: {first}); {fix}")

    def check_one_per_question(self, column: str, values: "pd.Series[Any]") -> None:
        """InputError if the rows of a question have several values of a column."""
        first = values.groupby(self.question_ids).transform("first")
        for row in np.flatnonzero(values != first):
            here, before = (shorten(str(each[row])) for each in (values, first))
            raise self.error(
                row,
                f"question {self.question_ids[row]!r} has {column} {here} here and {before} "
                f"before; give all responses of a question the same {column}",
            )

    def _parsed(self, column: str, parse: Callable[[str], Any], fix: str) -> "pd.Series[Any]":
        """The values of a column, each distinct text parsed once; None is an error."""
        # As texts: in Python, True == 1, and a count could be given as true.
        codes, distinct = pd.factorize(np.array([str(v) for v in self.rows[column]], dtype=object))
        values = [parse(text.strip().lower()) for text in distinct]
        is_invalid = np.array([value is None for value in values])[codes]
        for row in np.flatnonzero(is_invalid):
            value, question = describe(self.rows[column][row]), describe(self.question_ids[row])
            raise self.error(row, f"{column} of question {question} is {value}; {fix}")
        return pd.Series(np.array(values)[codes])


def read(path: Path, known_columns: Iterable[str]) -> ResponseFile:
    """Read a file of responses or counts, or the one in a folder.

    Of a Parquet file, only the known columns are read; "column.field" is a field of a struct.

    Raises:
        InputError: The file is missing, empty or malformed.
    """
    path = one_log(path)
    with path.open("rb") as file:
        start = file.read(4)
    numbers: Sequence[int] = ()
    if start == b"PAR1":
        rows, unit = _read_parquet(path, set(known_columns)), "row"
    elif start[:2] == b"PK":
        parsed = [_json_object(parse_json(decode(path, data))) for data in zipped_samples(path)]
        rows, unit = _inspect_samples(parsed), "sample"
    else:
        text, unit = decode(path, content(path)), "line"
        if text.lstrip().startswith("["):
            (rows, numbers), unit = _table(_array(path, text)), "record"
        elif text.lstrip()[:1] != "{":
            rows, numbers = _read_csv(path, text)
        elif not (document := _document(path, text)):
            rows, numbers = _table(json_lines(path, text, _json_object))
        elif "eval" in document and document.get("samples"):
            rows, unit = _inspect_samples(document["samples"]), "sample"
        else:
            rows = pd.DataFrame([document], dtype=object)
    if rows.empty:
        raise InputError(f"{path}: has no rows; give {ACCEPTED}")
    return ResponseFile(path, rows, numbers or range(1, len(rows) + 1), unit)


def unknown_kind(path: Path, columns: Iterable[object]) -> InputError:
    """The error for a file without the columns of any kind."""
    names = [str(name) for name in columns]
    shown = listed(list(map(shorten, names)), MAX_SHOWN_COLUMNS)
    for keys, kind in OTHER_KINDS.items():
        if set(keys.split()) <= set(names):
            raise InputError(f"{path}: is {kind}")
    other_separator = len(names) == 1 and any(separator in names[0] for separator in ";\t")
    fix = "separate the columns by commas" if other_separator else f"give {ACCEPTED}"
    return InputError(f"{path}: unknown kind of file (columns {shown}); {fix}")


def is_missing(value: Any) -> bool:
    """Whether a row has no value: None, or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def describe(value: Any) -> str:
    """A value as errors show it: short, and "empty" if it is missing."""
    return "empty" if str(value).strip().lower() in _EMPTY else shorten(repr(value))


def shorten(text: str) -> str:
    """The text if it is short, else its beginning."""
    too_long = len(text) > MAX_SHOWN_CHARACTERS
    return f"{text[: MAX_SHOWN_CHARACTERS - 3]}…" if too_long else text


def _name(value: Any) -> str:
    """An id as text; empty if it is not valid."""
    if isinstance(value, str):
        return value.strip() if printable(value, keep="") == value else ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return ""


def _count(text: str) -> int | None:
    """A count; None if the text is something else."""
    match = _COUNT.fullmatch(text)
    return int(match[1]) if match else None


def _read_parquet(path: Path, known_columns: set[str]) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        names = file.schema_arrow.names
        # Without the long columns that are not needed, such as token_ids; of lm_eval's logs all,
        # since a task names its own metrics.
        columns = [name for name in known_columns if name.partition(".")[0] in names]
        table = file.read(columns=None if {"doc_id", "resps"} <= set(names) else columns)
        values = {
            name: [_shared(value) for value in _exact(name, table[name]).to_pylist()]
            for name in table.column_names
        }
    except DAMAGE as error:
        raise InputError(
            f"{path}: is not a readable Parquet file ({first_line(error)}); regenerate it"
        ) from error
    if not table.num_columns:
        raise unknown_kind(path, names)
    return pd.DataFrame(values, dtype=object)


def _exact(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column; gold answers that Python would give other digits than the file as texts."""
    is_inexact = pa.types.is_float32(column.type) or pa.types.is_decimal(column.type)
    return column.cast(pa.string()) if name in ("gold", "target") and is_inexact else column


def _shared(value: Any) -> Any:
    """The value; a short text, such as an id, is in memory once, however often it occurs."""
    return sys.intern(value) if isinstance(value, str) and len(value) < MAX_SHARED else value


def _document(path: Path, text: str) -> dict[str, Any]:
    """A JSON object over several lines, or on the only line; empty if the text is none."""
    first, _, rest = text.lstrip().partition("\n")
    if first.strip() != "{" and rest.strip():
        return {}
    try:
        return dict(parse_json(text))
    except InputError as error:
        if first.strip() == "{":  # it is not one of several objects, one per line
            raise InputError(f"{path}: {error}") from error
        return {}


def _inspect_samples(samples: Any) -> pd.DataFrame:
    """The parts of Inspect's samples that are needed, which is not their transcript."""
    rows = [
        {name: sample.get(name) for name in INSPECT}
        for sample in (samples if isinstance(samples, list) else [])
        if isinstance(sample, dict)
    ]
    return pd.DataFrame(rows, dtype=object)


def _array(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON array, numbered from 1."""
    number = 0
    try:
        for number, value in enumerate(parse_json(text), start=1):
            yield number, _json_object(value)
    except InputError as error:
        place = f"{path}, record {number}" if number else path
        raise InputError(f"{place}: {error}") from error


def _table(objects: Iterable[tuple[int, dict[str, Any]]]) -> tuple[pd.DataFrame, list[int]]:
    # Not pandas.read_json: it changes ids such as "007", and its errors do not name the line.
    numbers: list[int] = []
    columns: dict[str, list[Any]] = {}
    for number, row in objects:
        columns |= {name: [math.nan] * len(numbers) for name in row if name not in columns}
        for name, values in columns.items():
            values.append(_shared(row.get(name, math.nan)))
        numbers.append(number)
    return pd.DataFrame(columns, dtype=object), numbers


def _json_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError("is not a JSON object; write one per line")
    return value


def _read_csv(path: Path, text: str) -> tuple[pd.DataFrame, list[int]]:
    # Not pandas.read_csv: it fills short rows, and does not know the line of a row after a text
    # with line breaks.
    csv.field_size_limit(2**31 - 1)  # a response may be longer than the default limit
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(cells)]
    except csv.Error as error:
        raise InputError(
            f"{path}, line {reader.line_num}: invalid CSV: {error}; fix the quotation marks"
        ) from error
    (first, names), *rows = lines or [(1, [])]
    header = [name.strip() for name in names]
    if duplicates := [name for name in header if header.count(name) > 1]:
        raise InputError(f"{path}, line {first}: duplicate column: {duplicates[0]}; rename it")
    for number, cells in rows:
        if len(cells) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(cells)} cells under {len(header)} column names; "
                "quote texts that contain a comma"
            )
    table = pd.DataFrame([cells for _, cells in rows], columns=header, dtype=object)
    return table, [number for number, _ in rows]
