"""Logs of other tools as rows of question_id, correct, response, gold and question.

A format is one function: file, choice of its marks (None: the first) and whether marks are wanted →
the rows, each with the position of its record in the file, what its marks are ("" if there is no
choice), and notes; a row with the list `responses` stands for as many rows. `FORMATS` says by which
columns a format is recognised.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from zerogap.errors import InputError
from zerogap.scoring.response_file import FLAGS, ResponseFile, describe, is_missing

Row = dict[Any, Any]
Converted = tuple[list[tuple[int, Row]], str, list[str]]
# What Inspect's scorers write: correct, incorrect, no answer; 1, 1.0 and true are equal.
INSPECT_MARKS: dict[Any, bool] = {"C": True, "I": False, "N": False, 1: True, 0: False}
LM_EVAL_METRICS = ("exact_match", "acc")  # the 0/1 metrics, for logs that do not list theirs
NO_FILTER = "none"
QUESTION_IDS = ("id", "question_id")  # of one of several responses, they are its own
INVALID = "[invalid]"  # what lm_eval's filters give where they find nothing


def convert(
    file: ResponseFile, choice: str | None, *, marked: bool
) -> tuple[ResponseFile, str, list[str]]:
    """Bring a log of another tool into the form of other files, with the log's marks if `marked`.

    Returns:
        The file, what its marks are ("" if there is no choice of them), and notes.

    Raises:
        InputError: a record is not valid, or has no such marks.
    """
    if {"n_correct", "n_samples"} <= set(file.rows):  # counts, whatever else there is
        return file, "", []
    for columns, read in FORMATS:
        if columns <= set(file.rows):
            converted, marks, notes = read(file, choice, marked)
            numbers = [file.numbers[record] for record, _ in converted]
            rows = pd.DataFrame([row for _, row in converted], numbers, dtype=object)
            if "responses" in rows:
                rows = rows.explode("responses").rename(columns={"responses": "response"})
            numbers, rows = rows.index.tolist(), rows.reset_index(drop=True)
            return ResponseFile(file.path, rows, numbers, file.unit), marks, notes
    return file, "", []


def _lm_eval(file: ResponseFile, choice: str | None, marked: bool) -> Converted:
    """One record per document and filter, of lm-evaluation-harness (`--log_samples`).

    With `repeats` a record contains every raw response, but filters and metrics use only one of
    them (or their majority), so the responses are scored here instead. On several GPUs, the last
    document of some has further responses, which only kept the others company: they are left out.
    """
    records = _records(file)
    responses = [_responses(file, k, record["resps"]) for k, record in records]
    number = min(map(len, responses))
    repeated = number > 1
    filters, notes = _filters(file, records)
    names = list(dict.fromkeys(filters))
    if repeated:
        ignored = f", so --filter {choice} has no effect (use --extraction)" if choice else ""
        notes = [f"lm_eval's own filters use only one of the repeats{ignored}", *notes]
        choice = None
    numbered = {str(k): name for k, name in enumerate(names, start=1)}
    chosen, others = _chosen(file, names, choice and numbered.get(choice, choice))
    selected = [(k, record) for k, record in records if filters[k] == chosen]
    metric = _metric(file, *selected[0]) if marked and not repeated else ""
    rows: list[tuple[int, Row]] = []
    for k, record in selected:
        for name in ("doc_id",) if metric else ("doc_id", "target"):
            if record[name] is None:
                raise file.error(k, f"{name} is empty; run lm_eval again")
        row = {
            "question_id": record["doc_id"],
            "gold": record["target"],
            "question": _part(record, "doc").get("question"),
            "doc_hash": _text(file, k, record, "doc_hash"),
            "responses": responses[k][:number],
        }
        if metric:
            mark = FLAGS.get(str(record.get(metric)).lower())
            if mark is None:
                document, value = describe(str(record["doc_id"])), describe(record.get(metric))
                raise file.error(
                    k,
                    f"{metric} of question {document} is {value}; it is 1 for a correct response, "
                    "else 0",
                )
            row["correct"] = mark
            row["answer"] = None if record.get("filtered_resps") == [INVALID] else "given"
        rows.append((k, row))
    file.check_duplicates(
        {"document": file.rows["doc_id"].astype(str), "filter": pd.Series(filters)},
        "lm_eval appends to an existing log: keep the records of one run",
    )
    return rows, f"{metric} under the filter {chosen!r}{others}", notes


def _responses(file: ResponseFile, k: int, resps: Any) -> list[Any]:
    """The responses to a document; only one if it has several requests (multiple choice)."""
    if not (isinstance(resps, list) and resps and all(isinstance(r, list) and r for r in resps)):
        raise file.error(k, "resps must be a list of lists of responses; run lm_eval again")
    return list(resps[0]) if len(resps) == 1 else resps[:1]


def _filters(file: ResponseFile, records: list[tuple[int, Row]]) -> tuple[list[str], list[str]]:
    """The filter of each record, and a note on a log without their names.

    Old versions of lm_eval wrote one record per document and filter, but not which filter. Where
    all documents occur equally often, each time with the same responses, the filters are numbered.
    """
    if "filter" in file.rows:
        return [_text(file, k, record, "filter") or NO_FILTER for k, record in records], []
    ids = file.rows["doc_id"].astype(str)
    sizes = ids.value_counts()
    passes = int(sizes.iloc[0])
    different = file.rows["resps"].map(repr).groupby(ids).nunique().max() > 1
    if sizes.nunique() > 1 or passes == 1 or different:
        return [NO_FILTER] * len(records), []
    note = f"an old log with {passes} passes per document, whose filters have no names"
    return list((ids.groupby(ids).cumcount() + 1).astype(str)), [note]


def _metric(file: ResponseFile, k: int, record: Row) -> str:
    """The metric that says whether a response is correct."""
    known = [name for name, value in record.items() if not is_missing(value)]
    listed = record["metrics"] if "metrics" in known else list(LM_EVAL_METRICS)
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise file.error(k, f"metrics is {describe(listed)}; give a list of names")
    names = [name for name in listed if name in known]
    preferred = [name for name in LM_EVAL_METRICS if name in names][:1] or names
    if len(preferred) == 1:
        return str(preferred[0])
    raise file.error(
        k,
        f"no metric says whether a response is correct (found: {', '.join(names) or 'none'}); "
        f"log {' or '.join(LM_EVAL_METRICS)}",
    )


def _inspect(file: ResponseFile, choice: str | None, marked: bool) -> Converted:
    """One sample per question and epoch, without those that the scorer left unscored."""
    records = _records(file)
    scores = [_part(sample, "scores") for _, sample in records]
    scorer, others = _chosen(file, itertools.chain(*scores), choice)
    rows: list[tuple[int, Row]] = []
    for (k, sample), marks in zip(records, scores, strict=True):
        score, metadata = marks.get(scorer), _part(sample, "metadata")
        invalidated, failed = _part(sample, "invalidation"), _part(sample, "error")
        if invalidated or (not isinstance(score, dict) and (marked or failed)):
            problem = "is invalidated" if invalidated else "has no score"
            remedy = "" if invalidated or failed else " or inspect score"
            raise file.error(
                k,
                f"sample {describe(sample['id'])} {problem}; finish the log with "
                f"inspect eval-retry{remedy}",
            )
        value = _part(marks, scorer).get("value")
        if marked and is_missing(value):
            continue
        if marked and (not isinstance(value, str | int | float) or value not in INSPECT_MARKS):
            raise file.error(
                k,
                f"the score {scorer} of sample {describe(sample['id'])} is {describe(value)}; "
                'give a log whose scores are "C" or "I", 1 or 0',
            )
        row = {
            "question_id": sample["id"],
            "sample_id": sample["epoch"],
            **({"correct": INSPECT_MARKS[value]} if marked else {}),
            "response": _completion(_part(sample, "output")),
            "gold": _only(sample.get("target")),
            "question": sample.get("input"),
        }
        if "cluster" in metadata:
            row["cluster"] = metadata["cluster"]
        rows.append((k, row))
    if not rows:
        raise InputError(f"{file.path}: the scorer {scorer} scored no sample; choose another")
    unscored = len(records) - len(rows)
    notes = [f"{unscored} samples that {scorer} did not score are left out"] if unscored else []
    return rows, f"{scorer} of the Inspect log{others}", notes


def _completion(output: Row) -> Any:
    """The text of a model's output; many logs have it only in the message of its first choice."""
    if output.get("completion") is not None:
        return output["completion"]
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    content = _part(first, "message").get("content")
    if isinstance(content, list):  # of parts, some of which are texts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    return "" if content is None else content


def _every_eval_ever(file: ResponseFile, choice: str | None, marked: bool) -> Converted:
    """One record per response, or several responses in a record, which are scored here."""
    records = _records(file)
    names = [str(r.get("evaluation_result_id") or r.get("evaluation_name")) for _, r in records]
    chosen, others = _chosen(file, names, choice)
    records = [record for record, name in zip(records, names, strict=True) if name == chosen]
    raw = [_part(record, "output").get("raw") or None for _, record in records]
    outputs = [texts if isinstance(texts, list) else [texts] for texts in raw]
    repeated = any(len(texts) > 1 for texts in outputs)
    rows: list[tuple[int, Row]] = []
    for (k, record), texts in zip(records, outputs, strict=True):
        asked, marks = _part(record, "input"), _part(record, "evaluation")
        mark = marks.get("is_correct")
        if marked and "is_correct" not in marks:
            raise file.error(k, "evaluation.is_correct is missing; give true or false")
        score = marks.get("score")
        if marked and not repeated and not is_missing(score) and score != mark:
            raise file.error(
                k,
                f"evaluation.score is {describe(score)}, so is_correct marks no single response; "
                f"give the log that the file was made from{others}",
            )
        row = {
            "question_id": record["sample_id"],
            "gold": _only(asked.get("reference")),
            "question": asked.get("raw"),
            "doc_hash": record.get("sample_hash"),
            "responses": texts,
        }
        if marked and not repeated:
            row["correct"] = mark
        rows.append((k, row))
    return rows, f"{chosen} of the Every Eval Ever file{others}", []


def _lighteval(file: ResponseFile, _: str | None, __: bool) -> Converted:
    """One document with all of its responses; its metrics are means over them.

    Ids restart in each split of a task, so one with several queries says nothing.
    """
    docs = [_part(record, "doc") for _, record in _records(file)]
    queries = Counter(name for name, _ in {(doc.get("id"), str(doc.get("query"))) for doc in docs})
    rows: list[tuple[int, Row]] = []
    for k, record in _records(file):
        doc, texts = _part(record, "doc"), _part(record, "model_response").get("text")
        index, choices = _only(doc.get("gold_index")), doc.get("choices")
        if not isinstance(index, int) or not isinstance(choices, list) or not texts:
            raise file.error(
                k,
                "needs doc.choices, one doc.gold_index and model_response.text; give details of a "
                "task whose answers are generated, not chosen",
            )
        if not 0 <= index < len(choices):
            raise file.error(k, f"doc.gold_index is {index} of {len(choices)} choices")
        query = str(doc.get("query"))
        key = doc.get("id") if queries[doc.get("id")] == 1 else None
        key = key or hashlib.sha256(query.encode()).hexdigest()[:16]
        row = {"question_id": key, "gold": choices[index], "question": query}
        rows.append((k, row | {"responses": texts}))
    return rows, "", []


def _nested(file: ResponseFile, _: str | None, __: bool) -> Converted:
    """One question with a list of texts, or of objects with text and mark."""
    rows: list[tuple[int, Row]] = []
    for k, record in _records(file):
        responses = record.pop("responses")
        if not isinstance(responses, list) or not responses:
            raise file.error(k, f"responses is {describe(responses)}; give a list of texts")
        for each in responses:
            part = each if isinstance(each, dict) else {"response": each}
            own = {name: value for name, value in part.items() if name not in QUESTION_IDS}
            rows.append((k, record | own))
    return rows, "", []


def _records(file: ResponseFile) -> list[tuple[int, Row]]:
    """Position and values of each record."""
    return list(enumerate(file.rows.to_dict("records")))


def _chosen(file: ResponseFile, names: Iterable[str], choice: str | None) -> tuple[str, str]:
    """The marks that count, chosen or the first, and how to choose others."""
    names = list(dict.fromkeys(names))
    if choice not in (None, *names):
        raise InputError(f"{file.path}: no filter or scorer {choice!r}; it has {', '.join(names)}")
    chosen = choice or (names[0] if names else "")
    others = ", ".join(name for name in names if name != chosen)
    return chosen, f" (others: {others}; choose with --filter)" if others else ""


def _text(file: ResponseFile, k: int, record: Row, name: str) -> str | None:
    """A text of a record; None if it is missing."""
    value = record.get(name)
    if not isinstance(value, str) and describe(value) != "empty":
        raise file.error(k, f"{name} is {describe(value)}; give a text")
    return value if isinstance(value, str) else None


def _part(record: Any, name: str) -> Row:
    """An object in a record; empty if it is missing."""
    part = record.get(name) if isinstance(record, dict) else None
    return part if isinstance(part, dict) else {}


def _only(value: Any) -> Any:
    """The one value of a list; the list as a text if it has several."""
    if not isinstance(value, list):
        return value
    return value[0] if len(value) == 1 else str(value)


# Columns that a log of the format has, and its reader.
FORMATS: tuple[tuple[set[str], Callable[[ResponseFile, str | None, bool], Converted]], ...] = (
    ({"doc_id", "target", "resps"}, _lm_eval),
    ({"id", "epoch", "scores"}, _inspect),
    ({"sample_id", "evaluation", "evaluation_name"}, _every_eval_ever),
    ({"doc", "model_response"}, _lighteval),
    ({"responses"}, _nested),
)
