"""Anyone's responses as counts: Parquet, JSON Lines, CSV and lm-evaluation-harness sample logs.

A file is recognised by what is in it, never by its name. Whatever it holds becomes the first
columns of a `solve` table (see `zerogap.io.parquet`): ``question_id`` (str), ``n_correct`` and
``n_samples`` (int), then ``first_correct`` (bool) and ``leaked`` (bool) where the file knows them;
from lm_eval logs ``doc_hash`` (str), which tells documents of the same number apart.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from zerogap.data.extraction import RULES, ExtractionRule, extraction_rule
from zerogap.errors import InputError

# A column's name, then the other one it may go by.
ALIASES = {"question_id": "id", "correct": "is_correct", "response": "text", "gold": "target"}
ACCEPTED = (
    "question_id with correct (a row a response), with n_correct and n_samples, or with response "
    "and gold; or a sample log of lm_eval (doc_id, target, resps)"
)
LM_EVAL = "lm_eval sample log"  # the `kind` of such a file
_COLUMNS = [*ALIASES, "sample_id", "n_correct", "n_samples", "first_correct", "leaked"]
_LM_EVAL_COLUMNS = {"doc_id", "target", "resps"}
_LM_EVAL_METRICS = ("exact_match", "acc")  # the 0/1 ones that logs without a list of them have
_FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_EMPTY = ("", "none", "null", "nan")


@dataclass(frozen=True)
class Loaded:
    """A file's counts, a row a question in the file's order.

    `kind` says what the file was taken for; `notes` what its reader should know.
    """

    path: Path
    counts: pd.DataFrame
    kind: str
    notes: tuple[str, ...] = ()


class _Row(NamedTuple):
    place: str  # "clean.jsonl, line 3"
    values: Mapping[str, Any]


class _Response(NamedTuple):
    place: str
    question_id: str
    sample_id: int | None
    correct: bool
    leaked: bool | None


def load(
    path: str | Path, lm_eval_filter: str | None = None, extraction: str = "numeric"
) -> Loaded:
    """Read a file of responses or counts.

    Args:
        path: the file, of any of the kinds in docs/score.md.
        lm_eval_filter: whose records of an lm_eval log to read; the first seen if None.
        extraction: the rule that scores responses, see :mod:`zerogap.data.extraction`.

    Raises:
        InputError: the file is missing, empty, malformed or of no known kind; a question or
            response is there twice; correctness is missing or not 0/1; a gold answer is no number
            or changes within a question; counts are no counts. The message names file and line.
    """
    path = Path(path)
    judge = _Judge(path, extraction_rule(extraction))
    rows = _rows(path)
    if not rows:
        raise InputError(f"{path}: no rows in it; give {ACCEPTED}")
    found = list(dict.fromkeys(name for row in rows for name in row.values))
    if set(found) >= _LM_EVAL_COLUMNS:
        return _lm_eval(path, rows, lm_eval_filter, judge)
    if "question_id" not in found and "id" not in found:
        raise _unknown(path, found)
    rows = [_Row(row.place, _named(row.values, found)) for row in rows]
    columns = {name for name in _COLUMNS if name in found or ALIASES.get(name) in found}
    if columns >= {"n_correct", "n_samples"}:
        return Loaded(path, _counts(rows, columns), "counts a question")
    if "correct" in columns:
        marks = [_flag(row, "correct", "give true or false for every response") for row in rows]
        kind, notes = "correctness of each response", ()
    elif columns >= {"response", "gold"}:
        golds = _golds(rows, judge)
        marks = [judge(row, row.values.get("response"), golds[_question(row)]) for row in rows]
        kind, notes = "responses with gold answers", judge.notes()
    else:
        raise _unknown(path, found)
    responses = [
        _Response(
            row.place,
            _question(row),
            _whole(row, "sample_id") if "sample_id" in columns else None,
            mark,
            _flag(row, "leaked") if "leaked" in columns else None,
        )
        for row, mark in zip(rows, marks, strict=True)
    ]
    return Loaded(path, _counted(responses), kind, notes)


def leaked_questions(path: str | Path) -> list[str]:
    """The question ids of a text file, one a line.

    Raises:
        InputError: no such file, no text, or no id in it.
    """
    ids = [line.strip() for line in _text(Path(path)).splitlines() if line.strip()]
    if not ids:
        raise InputError(f"{path}: no question ids in it; give one a line")
    return ids


# Files to rows.


def _rows(path: Path) -> list[_Row]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a file of responses or counts")
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return _parquet(path)
    text = _text(path)
    if text.lstrip().startswith("["):
        raise InputError(f"{path}: a JSON array; write one object a line (JSON Lines)")
    return list(_json_lines(path, text) if text.lstrip().startswith("{") else _csv(path, text))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: not readable ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: neither Parquet nor UTF-8 text; convert it") from error


def _parquet(path: Path) -> list[_Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        known = {*_COLUMNS, *ALIASES.values()}
        # Without the long columns that are not needed, such as the tokens.
        table = pq.read_table(
            path,
            columns=[name for name in names if name in known],
            page_checksum_verification=True,
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); make it again") from error
    if not table.num_columns:
        raise _unknown(path, names)
    return [_Row(f"{path}, row {k}", row) for k, row in enumerate(table.to_pylist(), start=1)]


def _json_lines(path: Path, text: str) -> Iterator[_Row]:
    # Not splitlines: JSON strings may hold the other line separators of Unicode.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            values = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{place}: not JSON ({error.msg}); one object a line") from error
        if not isinstance(values, dict):
            raise InputError(f"{place}: not a JSON object; write one a line")
        yield _Row(place, values)


def _csv(path: Path, text: str) -> Iterator[_Row]:
    csv.field_size_limit(2**31 - 1)  # a response may be longer than the default allows
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    heading: list[str] = []
    try:
        for cells in reader:
            place = f"{path}, line {reader.line_num}"
            if not any(cells):
                continue
            if not heading:
                heading = [cell.strip() for cell in cells]
                if len(set(heading)) < len(heading):
                    raise InputError(f"{place}: a column name is there twice; rename one of them")
            elif len(cells) != len(heading):
                raise InputError(
                    f"{place}: {len(cells)} cells under {len(heading)} column names; "
                    "quote texts that hold a comma"
                )
            else:
                yield _Row(place, dict(zip(heading, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not CSV ({error}); mend it") from error


def _named(values: Mapping[str, Any], found: list[str]) -> Mapping[str, Any]:
    """The row with the aliases resolved; where a file has both names, the first one counts."""
    other = {alias: name for name, alias in ALIASES.items() if name not in found}
    return {other.get(name, name): value for name, value in values.items()}


# Rows to counts.


def _counts(rows: list[_Row], columns: set[str]) -> pd.DataFrame:
    table = []
    places: dict[str, str] = {}
    for row in rows:
        question = _question(row)
        if question in places:
            raise InputError(
                f"{row.place}: question {question!r} again (first: {places[question]}); "
                "give one row a question"
            )
        places[question] = row.place
        correct, samples = _whole(row, "n_correct"), _whole(row, "n_samples")
        if correct > samples:
            raise InputError(
                f"{row.place}: question {question!r} has {correct} correct of {samples} samples"
            )
        entry = {"question_id": question, "n_correct": correct, "n_samples": samples}
        for name in ("first_correct", "leaked"):
            if name in columns:
                entry[name] = _flag(row, name)
        table.append(entry)
    return pd.DataFrame(table)


def _counted(responses: Iterable[_Response]) -> pd.DataFrame:
    """Counts from responses; the first response is the lowest sample_id, or the first row."""
    by_question: dict[str, list[_Response]] = {}
    for response in responses:
        by_question.setdefault(response.question_id, []).append(response)
    table = []
    for question, own in by_question.items():
        if own[0].sample_id is not None:
            own = sorted(own, key=lambda response: response.sample_id)
            for one, other in zip(own, own[1:], strict=False):
                if one.sample_id == other.sample_id:
                    raise InputError(
                        f"{other.place}: question {question!r} has sample {other.sample_id} twice "
                        f"(first: {one.place}); remove one of the two"
                    )
        if odd := [response for response in own if response.leaked != own[0].leaked]:
            raise InputError(
                f"{odd[0].place}: question {question!r} is leaked in one row and not in another"
            )
        table.append(
            {
                "question_id": question,
                "n_correct": sum(response.correct for response in own),
                "n_samples": len(own),
                "first_correct": own[0].correct,
                "leaked": own[0].leaked,
            }
        )
    counts = pd.DataFrame(table)
    return counts if counts["leaked"].notna().all() else counts.drop(columns="leaked")


def _lm_eval(path: Path, rows: list[_Row], wanted: str | None, judge: "_Judge") -> Loaded:
    """A log of `lm_eval --log_samples`: a record a document and filter.

    With `repeats` a record holds every raw response, but filters and metrics look at one of them
    (or at their majority): the responses are scored here instead.
    """
    by_filter: dict[str, list[_Row]] = {}
    for row in rows:
        by_filter.setdefault(str(row.values.get("filter", "none")), []).append(row)
    chosen = next(iter(by_filter)) if wanted is None else wanted
    if chosen not in by_filter:
        raise InputError(f"{path}: no filter {chosen!r}; it has {', '.join(by_filter)}")
    rows = by_filter[chosen]
    places: dict[str, str] = {}
    for row in rows:
        question = _question(row, "doc_id")
        if question in places:
            raise InputError(
                f"{row.place}: document {question} again (first: {places[question]}); lm_eval "
                "appends to a log that is there: keep the records of one run"
            )
        places[question] = row.place

    if any(len(_repeats(row)) > 1 for row in rows):
        responses = [
            _Response(row.place, question, k, judge(row, text, judge.gold(row, "target")), None)
            for row, question in zip(rows, places, strict=True)
            for k, text in enumerate(_repeats(row))
        ]
        notes = (*judge.notes(), f"{path}: lm_eval's filters look at one of the repeats")
    else:
        metric = _lm_eval_metric(rows[0])
        others = [name for name in by_filter if name != chosen]
        choice = f" (others: {', '.join(others)}; choose with --filter)" if others else ""
        notes = (
            f"{path}: correct is {metric} under the filter {chosen!r}{choice}",
            f"{path}: one response a question; a solve probability needs several, "
            "sample with lm_eval's `repeats`",
        )
        mend = f"{metric} is 1 for a correct response, else 0"
        responses = [
            _Response(row.place, question, 0, _flag(row, metric, mend), None)
            for row, question in zip(rows, places, strict=True)
        ]
    counts = _counted(responses).assign(doc_hash=[row.values.get("doc_hash") for row in rows])
    return Loaded(path, counts, LM_EVAL, notes)


def _repeats(row: _Row) -> list[Any]:
    """The responses to a document; [one] where it was asked several things (multiple choice)."""
    resps = row.values["resps"]
    if not isinstance(resps, list) or not resps or not all(isinstance(r, list) for r in resps):
        raise InputError(f"{row.place}: resps is no list of lists of responses; log the run again")
    return resps[0] if len(resps) == 1 else resps[:1]


def _lm_eval_metric(row: _Row) -> str:
    names = row.values.get("metrics") or [n for n in _LM_EVAL_METRICS if n in row.values]
    known = [name for name in _LM_EVAL_METRICS if name in names] or names
    if len(known) == 1 or (known and known[0] in _LM_EVAL_METRICS):
        return known[0]
    raise InputError(
        f"{row.place}: no metric that says whether a response is correct "
        f"({', '.join(names) or 'none'} found); {' or '.join(_LM_EVAL_METRICS)} is expected"
    )


# Values of a row.


def _question(row: _Row, column: str = "question_id") -> str:
    value = row.values.get(column)
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{row.place}: {column} is {value!r}; a text or a whole number is expected")


def _whole(row: _Row, column: str) -> int:
    value = row.values.get(column)
    text = "" if isinstance(value, bool) else str(value).strip()
    if not re.fullmatch(r"[0-9]+(\.0*)?", text):
        raise InputError(
            f"{row.place}: {column} of question {_question(row)!r} is {_shown(value)}; "
            "a count is 0, 1, 2, …"
        )
    return int(text.partition(".")[0])


def _flag(row: _Row, column: str, mend: str = "give true or false") -> bool:
    value = row.values.get(column)
    flag = _FLAGS.get(str(value).strip().lower())
    if flag is None:
        question = _question(row, "doc_id" if "doc_id" in row.values else "question_id")
        raise InputError(
            f"{row.place}: {column} of question {question!r} is {_shown(value)}; {mend}"
        )
    return flag


class _Judge:
    """Scores a file's responses by one rule, and counts how often the others agree with it."""

    def __init__(self, path: Path, own: ExtractionRule) -> None:
        self._path = path
        self._own = own
        self._others = [one for one in RULES.values() if one.name != own.name]
        self._agreed = dict.fromkeys((one.name for one in self._others), 0)
        self._judged = 0

    def gold(self, row: _Row, column: str = "gold") -> str:
        value = row.values.get(column)
        text = str(value).rpartition("####")[2]
        self._others = [one for one in self._others if one.accepts_gold(text)]
        try:
            return self._own.parse_gold(text)
        except InputError as error:
            raise InputError(
                f"{row.place}: the gold answer is {_shown(value)}, which the rule "
                f"'{self._own.name}' cannot take ({error}); where answers are no numbers, name a "
                "rule of yours with --extraction, or score the responses and give correct"
            ) from error

    def __call__(self, row: _Row, response: Any, gold: str) -> bool:
        if not isinstance(response, str):
            raise InputError(f"{row.place}: a response is {_shown(response)}; a text is expected")
        right = bool(self._own.grade(response, gold)[2])
        self._judged += 1
        for other in self._others:
            self._agreed[other.name] += other.grade(response, gold)[2] == right
        return right

    def notes(self) -> tuple[str, ...]:
        alike = [
            f"{one.name} judges {100 * self._agreed[one.name] / self._judged:.1f}% of them alike"
            for one in self._others
        ]
        by = f"{self._path}: responses scored by the rule {self._own.name}"
        return ("; ".join([by, ", ".join(alike)]) if alike else by,)


def _golds(rows: list[_Row], judge: _Judge) -> dict[str, str]:
    """The gold answer of each question; one whose rows disagree is refused."""
    golds: dict[str, str] = {}
    for row in rows:
        question, gold = _question(row), judge.gold(row)
        if golds.setdefault(question, gold) != gold:
            raise InputError(
                f"{row.place}: question {question!r} has gold {gold} here and {golds[question]} "
                "before; a question has one"
            )
    return golds


def _shown(value: Any) -> str:
    """A value as an error shows it: short, and 'empty' for all that is nothing."""
    missing = isinstance(value, float) and math.isnan(value)
    text = repr(value)
    if missing or str(value).strip().lower() in _EMPTY:
        return "empty"
    return text if len(text) <= 60 else f"{text[:57]}…"


def _unknown(path: Path, found: Iterable[str]) -> InputError:
    names = [str(name) for name in found]
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return InputError(f"{path}: not a known kind of file (columns {shown}); give {ACCEPTED}")
