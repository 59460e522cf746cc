"""Sample logs of lm-evaluation-harness (`--log_samples`): one record per document and filter."""

from typing import Any

import pandas as pd

from zerogap.errors import InputError
from zerogap.scoring.grader import Grader, count_note
from zerogap.scoring.response_file import ResponseFile, describe
from zerogap.strategies.filtering import DROPPED

COLUMNS = {"doc_id", "target", "resps"}
# The 0/1 metrics, for logs that do not list theirs.
METRICS = ("exact_match", "acc")
NO_FILTER = "none"
INVALID = "[invalid]"  # what lm_eval's filters give where they find nothing


def read_log(
    file: ResponseFile, grader: Grader, filter_name: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """The responses of a log.

    With `repeats` a record contains every raw response, but filters and metrics use only one of
    them (or their majority), so the responses are scored here instead.

    Args:
        file: The log.
        grader: Scores the responses of a log with repeats.
        filter_name: The filter whose records are read, or its number in the file; None for the
            first. It has no effect on a log with repeats.

    Returns:
        One row per response that counts, with `question_id`, `sample_id` and `correct`, indexed as
        the file; `gold` and `doc_hash` by question, also of those without responses; and notes.

    Raises:
        InputError: No such filter, duplicate documents, or values that are not valid.
    """
    filters, passes = _filters(file)
    selected = _selected(file, list(filters.unique()), filter_name)
    log = file.where(filters == selected)
    ids = log.question_ids("doc_id")
    log.check_duplicates(
        {"document": ids}, "lm_eval appends to an existing log: keep the records of one run"
    )

    responses = {number: _responses(log, number) for number in log.numbers}
    if any(len(texts) > 1 for texts in responses.values()):
        gold = grader.gold_answers(log, "target")
        rows = [
            (number, question, k, grader.grade(log, number, question, text, answer))
            for (number, texts), question, answer in zip(responses.items(), ids, gold, strict=True)
            for k, text in enumerate(texts)
            if text != DROPPED
        ]
        ignored = f", so --filter {filter_name} has no effect" if filter_name else ""
        notes = [grader.note(), f"lm_eval's own filters use only one of the repeats{ignored}"]
        if num_dropped := sum(texts.count(DROPPED) for texts in responses.values()):
            notes.append(f"{num_dropped} responses were dropped by the strategy")
    else:
        metric = _metric(log)
        marks = log.flags(metric, ids, f"{metric} is 1 for a correct response, else 0")
        rows = [(number, ids[number], 0, marks[number]) for number in log.numbers]
        others = [name for name in filters.unique() if name != selected]
        choice = f" (others: {', '.join(others)}; choose with --filter)" if others else ""
        notes = [f"correct is {metric} under the filter {selected!r}{choice}; {_counts(log)}"]
    if passes > 1:
        notes.append(f"an old log with {passes} passes per document, whose filters have no names")
    table = pd.DataFrame(rows, columns=["number", "question_id", "sample_id", "correct"])
    gold = grader.known_gold(log.rows["target"])
    documents = pd.DataFrame({"gold": gold, "doc_hash": _texts(log, "doc_hash")}, dtype=object)
    documents.index = pd.Index(ids)
    return table.set_index("number"), documents, tuple(f"{file.path}: {note}" for note in notes)


def _texts(log: ResponseFile, column: str) -> "pd.Series[Any]":
    """A column of texts, None where one is missing.

    Raises:
        InputError: A value is something else.
    """
    values = list(log.rows[column]) if column in log.rows else [None] * len(log.rows)
    for number, value in zip(log.numbers, values, strict=True):
        if not isinstance(value, str) and describe(value) != "empty":
            raise log.error(number, f"{column} is {describe(value)}; give a text")
    texts = [value if isinstance(value, str) else None for value in values]
    return pd.Series(texts, log.rows.index, dtype=object)


def _selected(file: ResponseFile, names: list[str], filter_name: str | None) -> str:
    """The filter of a name or number; the first one for a log with repeats, whatever is asked."""
    has_repeats = any(
        isinstance(each, list) and len(each) == 1 and isinstance(each[0], list) and len(each[0]) > 1
        for each in file.rows["resps"]
    )
    if filter_name in names:
        return filter_name
    numbers = {str(k): name for k, name in enumerate(names, start=1)}
    if selected := numbers.get(filter_name or "1", names[0] if has_repeats else None):
        return selected
    raise InputError(f"{file.path}: no filter {filter_name!r}; it has {', '.join(names)}")


def _filters(file: ResponseFile) -> tuple["pd.Series[str]", int]:
    """The filter of each record, and the passes over the documents in a log without their names.

    Old versions of lm_eval wrote one record per document and filter, but not which filter. Where
    all documents occur equally often, each time with the same responses, the filters are numbered.
    """
    if "filter" in file.rows:
        return _texts(file, "filter").map(lambda name: name or NO_FILTER), 1
    ids = file.question_ids("doc_id")
    sizes = ids.groupby(ids).size()
    different = file.rows["resps"].map(repr).groupby(ids).nunique().max() > 1
    if sizes.nunique() > 1 or sizes.iloc[0] == 1 or different:
        return pd.Series(NO_FILTER, file.rows.index), 1
    return (ids.groupby(ids).cumcount() + 1).astype(str), int(sizes.iloc[0])


def _counts(log: ResponseFile) -> str:
    """How many responses are empty, and from how many lm_eval's filter takes no answer."""
    texts = [responses[0][0] for responses in log.rows["resps"] if responses[0]]
    num_empty = sum(isinstance(text, str) and not text.strip() for text in texts)
    filtered = log.rows.get("filtered_resps", pd.Series(dtype=object))
    num_invalid = sum(isinstance(each, list) and each[:1] == [INVALID] for each in filtered)
    return count_note(len(log.rows), num_empty, {"the filter": num_invalid})


def _responses(log: ResponseFile, number: int) -> list[object]:
    """The responses to a document; only one if it has several requests (multiple choice)."""
    resps = log.rows.loc[number, "resps"]
    if not isinstance(resps, list) or not resps or not all(isinstance(r, list) for r in resps):
        raise log.error(number, "resps must be a list of lists of responses; run lm_eval again")
    return list(resps[0]) if len(resps) == 1 else list(resps[:1])


def _metric(log: ResponseFile) -> str:
    """The metric that says whether a response is correct."""
    number = log.numbers[0]
    record = log.rows.loc[number].dropna()
    listed = record.get("metrics", list(METRICS))
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise log.error(number, f"metrics is {describe(listed)}; give a list of names")
    names = [name for name in listed if name in record]
    preferred = [name for name in METRICS if name in names] or names
    if len(preferred) == 1 or (preferred and preferred[0] in METRICS):
        return str(preferred[0])
    raise log.error(
        number,
        f"no metric says whether a response is correct (found: {', '.join(names) or 'none'}); "
        f"log {' or '.join(METRICS)}",
    )
