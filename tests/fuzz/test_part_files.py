"""Every byte of a part file, changed: the part is sampled again, and nothing else happens."""

import pandas as pd
import pytest

from helpers.fuzzing import ACCEPTED, CLEAR_ERROR, TRACEBACK
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.resume import Journal

ROWS = [
    [name, j, [5, j], f"{j}", "2", "numeric", j == 2, 2, "eos"] for name in "ab" for j in range(3)
]


@pytest.fixture
def part(tmp_path):
    Journal(tmp_path / "parts.jsonl", {}).add("chunk", [ROWS, 7])
    return tmp_path / "parts.jsonl"


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF], ids=hex)
def test_a_part_with_any_changed_byte_is_sampled_again(part, judge, mask) -> None:
    content = part.read_bytes()
    outcomes = {}
    for position, byte in enumerate(content):
        part.write_bytes(content[:position] + bytes([byte ^ mask]) + content[position + 1 :])
        outcomes[f"byte {position}"] = _outcome(part)
    judge(f"part files, bits {mask:#04x}", outcomes)


def test_a_part_cut_at_any_length_is_sampled_again(part, judge) -> None:
    content = part.read_bytes()
    outcomes = {}
    for length in range(len(content)):
        part.write_bytes(content[:length])
        outcomes[f"{length} bytes"] = _outcome(part)
    judge("part files, cut", outcomes)


def _outcome(part) -> str:
    try:
        rows = Journal(part, {}).get("chunk")
    except Exception as error:  # the point of the test
        return f"{TRACEBACK}: {type(error).__name__}: {error}"
    return CLEAR_ERROR if rows is None else ACCEPTED


@pytest.mark.parametrize("mask", [0x01, 0xFF], ids=hex)
def test_a_final_table_with_a_changed_byte_is_read_or_a_clear_error(tmp_path, mask) -> None:
    """Of other people's tables not every byte is checked, but no damage is a traceback."""
    path = tmp_path / "samples.parquet"
    table = pd.DataFrame(ROWS, columns=parquet.CONTRACTS["samples"].names)
    parquet.write(path, table, "samples", {})
    content = path.read_bytes()
    tracebacks = {}
    for position, byte in enumerate(content):
        path.write_bytes(content[:position] + bytes([byte ^ mask]) + content[position + 1 :])
        try:
            parquet.read(path, "samples")
            parquet.provenance(path)
        except InputError:
            pass
        except Exception as error:  # the point of the test
            tracebacks[position] = repr(error)
    assert not tracebacks
