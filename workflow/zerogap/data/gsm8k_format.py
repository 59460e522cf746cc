"""The GSM8K file format: JSON Lines of {"question", "answer"}, each answer ending in '#### N'.

Questions from every source (generator, local files, hub) are brought into this format. Parsing an
entry gives its rationale and its gold answer.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from zerogap.data.answers import canonical
from zerogap.data.questions import Question
from zerogap.errors import InputError
from zerogap.io.text_files import json_lines, read_text, write_json_lines

Entry = dict[str, str]  # question, answer
ParseGold = Callable[[str], str]  # the text after '####' → the gold answer; a number by default
SPLITS = ("train", "test")
KEYS = ("question", "answer")
_REMEDY = "give it as 'gold', end 'answer' with '#### N', or name another rule with --extraction"
_CALCULATOR_ANNOTATION = re.compile(r"<<[^<>]*>>")


def read(
    path: str | Path, parse_gold: ParseGold = canonical, *, rationales: bool = True
) -> dict[int, tuple[Mapping[str, object], Question]]:
    """Read the entries of a file by the number of their line, each with what it says.

    `rationales` is whether an answer must have a rationale. Otherwise it may be the gold answer
    alone, under `answer` or `gold`.

    Raises:
        InputError: the file does not exist or has no questions, or a line is not valid or has the
            question of an earlier line. The message names file and line.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: does not exist; pass JSON Lines with question and answer")
    line_numbers: dict[str, int] = {}

    def parse_line(entry: object) -> tuple[Mapping[str, object], Question]:
        if not isinstance(entry, dict):
            raise InputError("is not a JSON object; write one per line, with question and answer")
        question = parse(entry, parse_gold, rationales=rationales)
        if earlier := line_numbers.get(question.question):
            raise InputError(f"duplicate question, also on line {earlier}; remove one of them")
        return entry, question

    found = {}
    for number, (entry, question) in json_lines(Path(path), read_text(Path(path)), parse_line):
        line_numbers[question.question] = number
        found[number] = entry, question
    if not found:
        raise InputError(f"{path}: contains no questions; add at least one")
    return found


def load(path: str | Path, parse_gold: ParseGold = canonical) -> list[Question]:
    """Read the questions of a file; see :func:`read`."""
    return [question for _, question in read(path, parse_gold).values()]


def load_entries(path: str | Path, parse_gold: ParseGold = canonical) -> list[Entry]:
    """Read the entries of a file unchanged; see :func:`read`."""
    entries = read(path, parse_gold)
    return [{key: str(entry[key]) for key in KEYS} for entry, _ in entries.values()]


def parse(
    entry: Mapping[str, object], parse_gold: ParseGold = canonical, *, rationales: bool = True
) -> Question:
    """Parse one entry, as :func:`read` does.

    Calculator annotations (`<<…>>`) and the '#### N' are removed from the rationale, and its lines
    are joined by spaces. A question keeps its lines.

    Raises:
        InputError: a key is missing, a text is empty, or the gold answer is invalid.
    """
    for key in KEYS if rationales else KEYS[:1]:
        if not isinstance(entry.get(key), str) or not str(entry[key]).strip():
            raise InputError(f"'{key}' is missing or empty; it must be a text")
    gold, answer = None if rationales else entry.get("gold"), entry.get("answer")
    reasoning, mark, final = ("" if answer is None else str(answer)).rpartition("####")
    solution = final.strip()
    if gold is not None:
        final = str(gold).rpartition("####")[2]
    if rationales and not mark:
        raise InputError("the answer has no '#### N'; end it with the gold answer")
    if not rationales and not final.strip():
        raise InputError("the question has no gold answer; give it as 'gold', or in 'answer'")
    try:
        parsed_gold = parse_gold(final.strip())
    except InputError as error:
        remedy = "fix it" if rationales else _REMEDY
        raise InputError(f"invalid gold answer: {error}; {remedy}") from error
    if gold is not None and mark and parse_gold(solution) != parsed_gold:
        raise InputError(f"'gold' is {gold!r}, but 'answer' ends in {solution!r}; fix one of them")
    rationale = _on_one_line(_CALCULATOR_ANNOTATION.sub("", reasoning))
    if rationales and not rationale:
        raise InputError("the answer has no reasoning before '####'; add it")
    text = "\n".join(map(_on_one_line, str(entry["question"]).strip().split("\n")))
    return Question(text, rationale, parsed_gold)


def write(
    path: str | Path, entries: Sequence[Mapping[str, str]], parse_gold: ParseGold = canonical
) -> None:
    """Check the entries and write them atomically.

    Raises:
        InputError: an entry is invalid; the message has its number.
    """
    for number, entry in enumerate(entries, start=1):
        try:
            parse(entry, parse_gold)
        except InputError as error:
            raise InputError(f"entry {number} for {path}: {error}") from error
    write_json_lines(path, ({key: entry[key] for key in KEYS} for entry in entries))


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
    """SHA-256 of JSON lines of [split, question, answer], the same from the hub and from files."""
    digest = hashlib.sha256()
    for split in SPLITS:
        for entry in splits[split]:
            line = json.dumps([split, entry["question"], entry["answer"]], ensure_ascii=False)
            digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
