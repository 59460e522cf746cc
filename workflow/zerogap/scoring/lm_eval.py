"""Sample logs of lm-evaluation-harness (`--log_samples`): one record per document and filter."""

import pandas as pd

from zerogap.errors import InputError
from zerogap.scoring.grader import Grader
from zerogap.scoring.response_file import ResponseFile
from zerogap.strategies.filtering import DROPPED

COLUMNS = {"doc_id", "target", "resps"}
# The 0/1 metrics, for logs that do not list theirs.
METRICS = ("exact_match", "acc")
NO_FILTER = "none"


def read_log(
    file: ResponseFile, grader: Grader, filter_name: str | None
) -> tuple[pd.DataFrame, "pd.Series[str]", tuple[str, ...]]:
    """The responses of a log.

    With `repeats` a record contains every raw response, but filters and metrics use only one of
    them (or their majority), so the responses are scored here instead.

    Args:
        file: The log.
        grader: Scores the responses of a log with repeats.
        filter_name: The filter whose records are read; None for the first in the file.

    Returns:
        One row per response that counts, with `question_id`, `sample_id` and `correct`, indexed as
        the file; the `doc_hash` by question, also of those without responses; and notes.

    Raises:
        InputError: No such filter, duplicate documents, or values that are not valid.
    """
    filters = (
        file.rows["filter"].fillna(NO_FILTER).astype(str)
        if "filter" in file.rows
        else pd.Series(NO_FILTER, file.rows.index)
    )
    names = list(filters.unique())
    selected = names[0] if filter_name is None else filter_name
    if selected not in names:
        raise InputError(f"{file.path}: no filter {selected!r}; it has {', '.join(names)}")
    log = file.where(filters == selected)
    ids = log.question_ids("doc_id")
    log.check_duplicates(
        {"document": ids}, "lm_eval appends to an existing log: keep the records of one run"
    )
    doc_hash = pd.Series(log.rows.get("doc_hash", pd.Series(None, log.rows.index, dtype=object)))
    doc_hash.index = pd.Index(ids)

    responses = {number: _responses(log, number) for number in log.numbers}
    if any(len(texts) > 1 for texts in responses.values()):
        gold = grader.gold_answers(log, "target")
        rows = [
            (number, ids[number], k, grader.grade(log, number, ids[number], text, gold[number]))
            for number, texts in responses.items()
            for k, text in enumerate(texts)
            if text != DROPPED
        ]
        num_dropped = sum(texts.count(DROPPED) for texts in responses.values())
        dropped = (f"{file.path}: {num_dropped} responses were dropped by the strategy",)
        ignored = f", so --filter {filter_name} has no effect" if filter_name else ""
        notes: tuple[str, ...] = (
            grader.note(file.path),
            f"{file.path}: lm_eval's own filters use only one of the repeats{ignored}",
            *(dropped if num_dropped else ()),
        )
    else:
        metric = _metric(log)
        marks = log.flags(metric, ids, f"{metric} is 1 for a correct response, else 0")
        rows = [(number, ids[number], 0, marks[number]) for number in log.numbers]
        others = [name for name in names if name != selected]
        choice = f" (others: {', '.join(others)}; choose with --filter)" if others else ""
        notes = (f"{file.path}: correct is {metric} under the filter {selected!r}{choice}",)
    table = pd.DataFrame(rows, columns=["number", "question_id", "sample_id", "correct"])
    return table.set_index("number"), doc_hash, notes


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
    listed = record.get("metrics")
    names = [m for m in (listed if isinstance(listed, list) else METRICS) if m in record]
    preferred = [name for name in METRICS if name in names] or names
    if len(preferred) == 1 or (preferred and preferred[0] in METRICS):
        return str(preferred[0])
    raise log.error(
        number,
        f"no metric says whether a response is correct (found: {', '.join(names) or 'none'}); "
        f"log {' or '.join(METRICS)}",
    )
