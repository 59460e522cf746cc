"""GSM8K in OpenAI's format: JSON Lines of {"question", "answer"}, the answer ending '#### N'.

Every source of questions (generator, local files, hub) is brought into this one format; a row's
rationale and gold number are read from it here.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerogap.data.answers import canonical
from zerogap.errors import InputError
from zerogap.io import parquet

_CALCULATOR = re.compile(r"<<[^<>]*>>")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Row:
    """A question with its cleaned rationale (one line) and its gold answer, a canonical number."""

    question: str
    rationale: str
    gold: str


def load(path: str | Path, read_gold: Callable[[str], str] = canonical) -> list[Row]:
    """Read a file of OpenAI's format.

    Args:
        read_gold: what stands after '####' as the gold answer; a number unless told otherwise.

    Raises:
        InputError: no such file, or a line that is no JSON object, lacks a key, has an empty
            text, a gold answer that is no number, or a question that an earlier line has; the
            message names file and line.
    """
    return [row for _, row in _read(Path(path), read_gold)]


def load_entries(
    path: str | Path, read_gold: Callable[[str], str] = canonical
) -> list[dict[str, str]]:
    """The same file's entries as they stand there, checked in the same way."""
    return [
        {key: str(found[key]) for key in ("question", "answer")}
        for found, _ in _read(Path(path), read_gold)
    ]


def _read(
    path: Path, read_gold: Callable[[str], str]
) -> Iterator[tuple[Mapping[str, object], Row]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give JSON Lines of question and answer")
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 ({error.reason}); convert it") from error
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = _object(line)
            row = parse(found, read_gold)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        if row.question in seen:
            raise InputError(
                f"{path}, line {number}: the question of line {seen[row.question]} again; "
                "remove one of the two"
            )
        seen[row.question] = number
        yield found, row
    if not seen:
        raise InputError(f"{path}: no questions in it")


def parse(entry: Mapping[str, object], read_gold: Callable[[str], str] = canonical) -> Row:
    """One entry of OpenAI's format as a row.

    Calculator annotations (`<<…>>`) and the '#### N' are taken off the rationale, whose lines are
    joined by a space; so are those of the question.

    Raises:
        InputError: a key is missing, a text is empty, or the gold answer is no number.
    """
    for key in ("question", "answer"):
        if not isinstance(entry.get(key), str) or not str(entry[key]).strip():
            raise InputError(f"'{key}' is missing or empty; it must be a text")
    reasoning, mark, gold = str(entry["answer"]).rpartition("####")
    if not mark:
        raise InputError("the answer has no '#### N'; end it with the gold number")
    try:
        right = read_gold(gold.strip())
    except InputError as error:
        raise InputError(f"the gold answer: {error}; mend it") from error
    rationale = _one_line(_CALCULATOR.sub("", reasoning))
    if not rationale:
        raise InputError("the answer has no reasoning before '####'; add it")
    return Row(_one_line(str(entry["question"])), rationale, right)


def write(
    path: str | Path,
    entries: Iterable[Mapping[str, str]],
    read_gold: Callable[[str], str] = canonical,
) -> None:
    """Write entries of OpenAI's format, atomically, having checked each of them.

    Raises:
        InputError: an entry is not of the format; the message names its number.
    """
    with parquet.atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for number, entry in enumerate(entries, start=1):
            try:
                parse(entry, read_gold)
            except InputError as error:
                raise InputError(f"entry {number} for {path}: {error}") from error
            kept = {key: entry[key] for key in ("question", "answer")}
            file.write(json.dumps(kept, ensure_ascii=False) + "\n")


def entry(question: str, rationale: str, gold: str) -> dict[str, str]:
    """A question as an entry of OpenAI's format."""
    return {"question": question, "answer": f"{rationale}\n#### {gold}"}


def fingerprint(splits: Mapping[str, Iterable[Mapping[str, str]]]) -> str:
    """SHA-256 of the training and the test entries: the same from the hub and from files.

    Hashed are lines of JSON, [split, question, answer], as UTF-8.
    """
    digest = hashlib.sha256()
    for split in ("train", "test"):
        for one in splits[split]:
            line = json.dumps([split, one["question"], one["answer"]], ensure_ascii=False)
            digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def check_original(
    splits: Mapping[str, list[Mapping[str, str]]], original: Mapping[str, Any]
) -> None:
    """Check that the entries are those of the original data set.

    Args:
        original: what is known of it: rows (split → number) and sha256 (see `fingerprint`).

    Raises:
        InputError: a number of rows or the hash differs.
    """
    for split, wanted in original["rows"].items():
        if len(splits[split]) != wanted:
            raise InputError(
                f"{len(splits[split])} {split} questions where data.hub.rows has {wanted}: another "
                "or an incomplete data set; mend data.hub"
            )
    found = fingerprint(splits)
    if found != original["sha256"]:
        raise InputError(
            f"the questions' sha256 is {found}, not the {original['sha256']} of data.hub: their "
            "text was changed; pin another revision, or set the hash (null: unchecked)"
        )


def commit(repository: str, revision: str) -> str:
    """The commit that a revision of the hub's data set stands for today.

    Raises:
        InputError: the hub does not know it or is not reached.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    import huggingface_hub

    try:
        info = huggingface_hub.HfApi().dataset_info(repository, revision=revision)
    except Exception as error:  # offline, not found, not allowed: the mend is the same
        raise _not_loaded(f"{repository}@{revision}", error) from error
    return str(info.sha)


def from_hub(repository: str, revision: str, split: str) -> list[dict[str, str]]:
    """The entries of a split of the hub's data set, configuration "main".

    Raises:
        InputError: it cannot be loaded.
    """
    import datasets  # takes seconds to import, and other sources do without

    try:
        table = datasets.load_dataset(repository, "main", revision=revision, split=split)
    except Exception as error:  # as above
        raise _not_loaded(f"{repository}@{revision}, split {split}", error) from error
    try:
        return [{"question": row["question"], "answer": row["answer"]} for row in table]
    except KeyError as error:
        raise InputError(
            f"{repository}@{revision}: no column {error}; it must have question and answer"
        ) from error


def _not_loaded(what: str, error: Exception) -> InputError:
    return InputError(
        f"{what}: not loaded from the hub ({error}); check the name, the revision and the network, "
        "or give local files"
    )


def _object(line: str) -> Mapping[str, object]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON ({error.msg}); one object a line is expected") from error
    if not isinstance(found, dict):
        raise InputError("not a JSON object; expected question and answer")
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())
