"""Every byte of a part file, changed: the part is sampled again, and nothing else happens."""

import pandas as pd
import pytest

from helpers.fuzzing import ACCEPTED, CLEAR_ERROR, TRACEBACK
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.sealed import find_sealed
from zerogap.sampling.checkpoint import Checkpoint

NAMES = ["a", "b"]


@pytest.fixture
def part(tmp_path):
    rows = [
        (name, j, [5, j], f"{j}", "2", "numeric", j == 2, 2, "eos")
        for name in NAMES
        for j in range(3)
    ]
    table = pd.DataFrame(rows, columns=parquet.CONTRACTS["samples"].names)
    Checkpoint(tmp_path).save(0, table, batch_size=7)
    return find_sealed(tmp_path / "chunk-00000.parquet")


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
        table = Checkpoint(part.parent).load(0, NAMES, 3)
    except Exception as error:  # the point of the test
        return f"{TRACEBACK}: {type(error).__name__}: {error}"
    return CLEAR_ERROR if table is None else ACCEPTED


@pytest.mark.parametrize("mask", [0x01, 0xFF], ids=hex)
def test_a_final_table_with_a_changed_byte_is_read_or_a_clear_error(part, mask) -> None:
    """Of other people's tables not every byte is checked, but no damage is a traceback."""
    content = part.read_bytes()
    path = part.with_name("samples.parquet")
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
