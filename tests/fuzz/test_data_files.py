"""Files with damage: of questions and instructions, parts of jobs, tables."""

import json
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from helpers.fuzzing import judge, outcome_of_call
from zerogap.data import gsm8k_format, openorca
from zerogap.errors import InputError
from zerogap.io import parquet

QUESTION = {"question": "How many?", "answer": "It is 2 + 3 = 5.\n#### 5"}
INSTRUCTION = {"system": "", "question": "Say hello.", "response": "Hello."}
READERS: dict[str, tuple[dict[str, str], Callable]] = {
    "questions": (QUESTION, gsm8k_format.load),
    "instructions": (INSTRUCTION, lambda path: openorca.load(path, 1, seed=0)),
}
WRONG_TEXTS = [None, "", "   ", 5, True, ["a"], {"a": "b"}, float("nan")]
WRONG_ANSWERS = ["no number", "5", "#### 5", "reasons ####", "reasons #### five", "reasons #### -"]
DEEP = b"[" * 100_000 + b"]" * 100_000


def damaged(record: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    required = [key for key in record if record[key]]
    for key in required:
        for value in WRONG_TEXTS:
            yield f"{key} is {value!r}", json.dumps({**record, key: value}).encode()
        yield f"without {key}", json.dumps({k: v for k, v in record.items() if k != key}).encode()
    if "answer" in record:
        for answer in WRONG_ANSWERS:
            yield f"answer is {answer!r}", json.dumps({**record, "answer": answer}).encode()
    good = json.dumps(record).encode()
    yield from {
        "empty": b"",
        "blank lines": b"\n\n",
        "cut": good[:-3],
        "two objects in a line": good + good,
        "an array": b"[" + good + b"]",
        "a number": b"5",
        "not UTF-8": good + b"\n\xff\xfe",
        "UTF-16": good.decode().encode("utf-16"),
        "nested 100,000 deep": b'{"question": ' + DEEP + b"}",
        "5,000 digits": b'{"question": ' + b"9" * 5000 + b"}",
        "half a surrogate pair": good.replace(b"H", b"\\ud800", 1).replace(b"S", b"\\ud800", 1),
        "NUL": b"\x00" * 50,
        "a good line, then damage": good + b"\n{",
    }.items()


@pytest.mark.parametrize("kind", READERS)
def test_every_damaged_file_is_a_clear_error(kind, tmp_path) -> None:
    record, load = READERS[kind]
    outcomes = {}
    for name, content in damaged(record):
        path = tmp_path / "data.jsonl"
        path.write_bytes(content)
        outcomes[name] = outcome_of_call(lambda: load(path))  # noqa: B023
    outcomes["missing"] = outcome_of_call(lambda: load(tmp_path / "none.jsonl"))
    outcomes["a folder"] = outcome_of_call(lambda: load(tmp_path))
    judge(f"data files, {kind}", outcomes)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_a_good_file_is_read_with_and_without_a_byte_order_mark(kind, mark, tmp_path) -> None:
    record, load = READERS[kind]
    path = tmp_path / "data.jsonl"
    path.write_bytes(mark + json.dumps(record).encode())
    assert len(load(path)) == 1


ROWS = [
    [name, j, [5, j], f"{j}", "2", "numeric", j == 2, 2, "eos"] for name in "ab" for j in range(3)
]


def changed(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Every byte changed in two ways, and every length."""
    for at, byte in enumerate(content):
        yield f"{at} bytes", content[:at]
        for mask in (0x01, 0xFF):
            yield (
                f"byte {at}, bits {mask:#04x}",
                (content[:at] + bytes([byte ^ mask]) + content[at + 1 :]),
            )


def test_a_final_table_with_a_changed_byte_is_read_or_a_clear_error(tmp_path) -> None:
    """Of other people's tables not every byte is checked, but no damage is a traceback."""
    path, tracebacks = tmp_path / "samples.parquet", {}
    table = pd.DataFrame(ROWS, columns=parquet.CONTRACTS["samples"].names)
    parquet.write(path, table, "samples", {})
    for name, content in changed(path.read_bytes()):
        path.write_bytes(content)
        try:
            parquet.read(path, "samples")
            parquet.provenance(path)
        except InputError:
            pass
        except Exception as error:  # the point of the test
            tracebacks[name] = repr(error)
    assert not tracebacks
