"""The GSM8K file format: JSON Lines of {"question", "answer"}, each answer ending in '#### N'.

Questions from every source (generator, local files, hub) are brought into this format. Parsing an
entry gives its rationale and its gold answer.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from zerogap.data.answers import canonical
from zerogap.data.questions import Question
from zerogap.errors import InputError
from zerogap.io import atomic
from zerogap.io.text_files import json_lines, read_text

Entry = dict[str, str]  # question, answer
SPLITS = ("train", "test")
_KEYS = ("question", "answer")
_REMEDY = "give it as 'gold', end 'answer' with '#### N', or name another rule with --extraction"
_CALCULATOR_ANNOTATION = re.compile(r"<<[^<>]*>>")


def load(
    path: str | Path,
    parse_gold: Callable[[str], str] = canonical,
    *,
    rationales: bool = True,
) -> list[Question]:
    """Read the questions of a file.

    Args:
        path: the file.
        parse_gold: reads the gold answer from the text after '####'; a number by default.
        rationales: whether an answer must have a rationale. Otherwise it may be the gold answer
            alone, under `answer` or `gold`, and the questions have none.

    Raises:
        InputError: the file does not exist, or a line is not a JSON object, lacks a key, has an
            empty text, an invalid gold answer, or the question of an earlier line. The message
            names file and line.
    """
    return [question for _, question in _read(Path(path), parse_gold, rationales=rationales)]


def load_entries(path: str | Path, parse_gold: Callable[[str], str] = canonical) -> list[Entry]:
    """Read the entries of a file unchanged, with the checks of :func:`load`."""
    return [{key: str(entry[key]) for key in _KEYS} for entry, _ in _read(Path(path), parse_gold)]


def parse(
    entry: Mapping[str, object],
    parse_gold: Callable[[str], str] = canonical,
    *,
    rationales: bool = True,
) -> Question:
    """Parse one entry, as :func:`load` does.

    Calculator annotations (`<<…>>`) and the '#### N' are removed from the rationale. Lines are
    joined by spaces, in the rationale and in the question.

    Raises:
        InputError: a key is missing, a text is empty, or the gold answer is invalid.
    """
    for key in _KEYS if rationales else _KEYS[:1]:
        if not isinstance(entry.get(key), str) or not str(entry[key]).strip():
            raise InputError(f"'{key}' is missing or empty; it must be a text")
    answer = entry["answer"] if rationales else entry.get("gold", entry.get("answer"))
    reasoning, mark, gold = ("" if answer is None else str(answer)).rpartition("####")
    if rationales and not mark:
        raise InputError("the answer has no '#### N'; end it with the gold answer")
    if not rationales and not gold.strip():
        raise InputError("the question has no gold answer; give it as 'gold', or in 'answer'")
    try:
        parsed_gold = parse_gold(gold.strip())
    except InputError as error:
        remedy = "fix it" if rationales else _REMEDY
        raise InputError(f"invalid gold answer: {error}; {remedy}") from error
    rationale = _on_one_line(_CALCULATOR_ANNOTATION.sub("", reasoning)) if rationales else ""
    if rationales and not rationale:
        raise InputError("the answer has no reasoning before '####'; add it")
    return Question(_on_one_line(str(entry["question"])), rationale, parsed_gold)


def write(
    path: str | Path,
    entries: Iterable[Mapping[str, str]],
    parse_gold: Callable[[str], str] = canonical,
) -> None:
    """Check the entries and write them atomically.

    Raises:
        InputError: an entry is invalid; the message has its number.
    """
    with atomic.replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for number, entry in enumerate(entries, start=1):
            try:
                parse(entry, parse_gold)
            except InputError as error:
                raise InputError(f"entry {number} for {path}: {error}") from error
            file.write(json.dumps({key: entry[key] for key in _KEYS}, ensure_ascii=False) + "\n")


def with_few_calculations(entries: Sequence[Entry], maximum: int | None) -> list[int]:
    """Positions of the entries whose answer has at most so many calculator annotations; None: all.

    Raises:
        InputError: no answer has an annotation, so that they cannot be counted.
    """
    counts = [len(_CALCULATOR_ANNOTATION.findall(entry["answer"])) for entry in entries]
    if maximum is not None and not any(counts):
        raise InputError(
            "max_calculations: no answer of the test questions marks its calculations as <<…>>; "
            "set it to null"
        )
    return [at for at, count in enumerate(counts) if maximum is None or count <= maximum]


def fingerprint(splits: Mapping[str, Iterable[Mapping[str, str]]]) -> str:
    """SHA-256 of the training and test entries, the same from the hub and from files.

    Hashed are JSON lines of [split, question, answer] in UTF-8.
    """
    digest = hashlib.sha256()
    for split in SPLITS:
        for entry in splits[split]:
            line = json.dumps([split, entry["question"], entry["answer"]], ensure_ascii=False)
            digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _read(
    path: Path,
    parse_gold: Callable[[str], str],
    *,
    rationales: bool = True,
) -> Iterator[tuple[Mapping[str, object], Question]]:
    if not path.is_file():
        raise InputError(f"{path}: does not exist; pass JSON Lines with question and answer")

    def parse_line(value: object) -> tuple[Mapping[str, object], Question]:
        if not isinstance(value, dict):
            raise InputError("is not a JSON object; write an object with question and answer")
        return value, parse(value, parse_gold, rationales=rationales)

    line_numbers: dict[str, int] = {}
    for number, (entry, question) in json_lines(path, read_text(path), parse_line):
        if question.question in line_numbers:
            raise InputError(
                f"{path}, line {number}: duplicate question, also on line "
                f"{line_numbers[question.question]}; remove one of them"
            )
        line_numbers[question.question] = number
        yield entry, question
    if not line_numbers:
        raise InputError(f"{path}: contains no questions; add at least one")


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
