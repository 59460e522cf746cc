"""Every byte of a part file, changed: the part is sampled again, and nothing else happens."""

from collections.abc import Iterator

import pandas as pd

from helpers.fuzzing import ACCEPTED, CLEAR_ERROR, TRACEBACK
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.resume import Journal

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


def test_a_changed_or_cut_part_is_sampled_again(tmp_path, judge) -> None:
    part, outcomes = tmp_path / "parts.jsonl", {}
    Journal(part, {}).add("chunk", [ROWS, 7])
    for name, content in changed(part.read_bytes()):
        part.write_bytes(content)
        try:
            rows = Journal(part, {}).get("chunk")
        except Exception as error:  # the point of the test
            outcomes[name] = f"{TRACEBACK}: {error!r}"
        else:
            outcomes[name] = CLEAR_ERROR if rows is None else ACCEPTED
    judge("part files", outcomes)


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
