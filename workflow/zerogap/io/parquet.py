"""The file contracts: every Parquet file between two stages, its columns, and how it was made.

A file is written whole under a temporary name and then renamed, so that a final name always holds
a complete file. Provenance travels in the Parquet metadata under the key ``zerogap``.
"""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from zerogap.errors import InputError

_TEXT, _FLAG = pa.string(), pa.bool_()
_TOKENS = pa.list_(pa.int32())

CONTRACTS: dict[str, pa.Schema] = {
    # A question of the benchmark; `paraphrase` (PQ) only where it is leaked.
    "questions": pa.schema(
        [
            ("question_id", _TEXT),
            ("question", _TEXT),
            ("rationale", _TEXT),
            ("gold", _TEXT),
            ("leaked", _FLAG),
            ("paraphrase", _TEXT),
        ]
    ),
    # A question's greedy trajectory; `entropy` in nats, one entry a generated token.
    "greedy": pa.schema(
        [
            ("question_id", _TEXT),
            ("token_ids", _TOKENS),
            ("text", _TEXT),
            ("answer", _TEXT),
            ("extractor", _TEXT),
            ("correct", _FLAG),
            ("entropy", pa.list_(pa.float32())),
            ("finish_reason", _TEXT),
        ]
    ),
    # A sampled response; `finish_reason` is eos, stop (a stop string) or length.
    "samples": pa.schema(
        [
            ("question_id", _TEXT),
            ("sample_id", pa.int32()),
            ("token_ids", _TOKENS),
            ("text", _TEXT),
            ("answer", _TEXT),
            ("extractor", _TEXT),
            ("correct", _FLAG),
            ("n_tokens", pa.int32()),
            ("finish_reason", _TEXT),
        ]
    ),
    # A question's counts; `first_correct` is the 0/1 readout of G-AP.
    "solve": pa.schema(
        [
            ("question_id", _TEXT),
            ("n_correct", pa.int32()),
            ("n_samples", pa.int32()),
            ("first_correct", _FLAG),
            ("leaked", _FLAG),
        ]
    ),
    # ROUGE-L F1 between a sampled response and the same model's greedy response.
    "overlap": pa.schema(
        [
            ("question_id", _TEXT),
            ("sample_id", pa.int32()),
            ("leaked", _FLAG),
            ("rouge_l", pa.float64()),
        ]
    ),
    # Rank of the clean model's greedy token under the contaminated model (1: they agree).
    "ranks": pa.schema(
        [
            ("question_id", _TEXT),
            ("leaked", _FLAG),
            ("step", pa.int32()),
            ("clean_token", pa.int32()),
            ("rank", pa.int32()),
        ]
    ),
    # One neuron: its layer, its index and whether the Shortcut strategy patches it.
    "neurons": pa.schema(
        [
            ("layer", pa.int32()),
            ("neuron", pa.int32()),
            ("comparative", pa.float64()),
            ("causal", pa.float64()),
            ("score", pa.float64()),
            ("selected", _FLAG),
        ]
    ),
    # One reading; the interval is NaN where a metric has none.
    "metrics": pa.schema(
        [
            ("model", _TEXT),
            ("benchmark", _TEXT),
            ("strategy", _TEXT),
            ("subset", _TEXT),
            ("metric", _TEXT),
            ("value", pa.float64()),
            ("ci_low", pa.float64()),
            ("ci_high", pa.float64()),
        ]
    ),
}

# What no two rows of a file may share.
KEYS: dict[str, list[str]] = {
    "questions": ["question_id"],
    "greedy": ["question_id"],
    "samples": ["question_id", "sample_id"],
    "solve": ["question_id"],
    "overlap": ["question_id", "sample_id"],
    "ranks": ["question_id", "step"],
    "neurons": ["layer", "neuron"],
    "metrics": ["model", "benchmark", "strategy", "subset", "metric"],
}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes the final name only if the block succeeds.

    Raises:
        InputError: the disk, the quota or the largest file that is allowed is full.
    """
    path = Path(path)
    with _room_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o644)  # mkstemp makes it private
            with temporary.open("rb") as written:
                os.fsync(written.fileno())  # before the name: after a power cut too it is whole
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _room_for(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        reason = os.strerror(error.errno)
        raise InputError(f"{path}: not written ({reason}); make room and run again") from error


def write(
    path: str | Path, table: pd.DataFrame, contract: str, provenance: Mapping[str, Any]
) -> None:
    """Write `table` under the named contract, with its provenance, atomically.

    Raises:
        InputError: a column is missing, superfluous or of another type, a row is there twice, or
            the disk is full.
    """
    schema = CONTRACTS[contract]
    _check_columns(table.columns, schema, f"{path} (to be written)", contract)
    _check_rows(table, f"{path} (to be written)", contract)
    try:
        arrow = pa.Table.from_pandas(table[schema.names], schema=schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{path}: does not fit the '{contract}' contract: {error}") from error
    metadata = {b"zerogap": json.dumps(dict(provenance), sort_keys=True, default=str).encode()}
    with atomic(path) as temporary:
        pq.write_table(
            arrow.replace_schema_metadata(metadata),
            temporary,
            compression="zstd",
            write_page_checksum=True,
        )


def read(path: str | Path, contract: str) -> pd.DataFrame:
    """Read a file of the named contract.

    Raises:
        InputError: the file is missing, is no Parquet file, lacks the contract's columns, or has
            a row twice.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file (a '{contract}' Parquet file is expected here)")
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); make it again") from error
    _check_columns(table.column_names, CONTRACTS[contract], path, contract)
    frame = table.select(CONTRACTS[contract].names).to_pandas()
    _check_rows(frame, path, contract)
    return frame


def provenance(path: str | Path) -> dict[str, Any]:
    """How the file was made: what its writer put into the metadata."""
    return json.loads((pq.read_schema(path).metadata or {}).get(b"zerogap", b"{}"))


def _check_columns(found: Any, schema: pa.Schema, place: str | Path, contract: str) -> None:
    missing = [name for name in schema.names if name not in list(found)]
    if missing:
        raise InputError(
            f"{place}: column(s) {', '.join(missing)} missing; "
            f"a '{contract}' file has {', '.join(schema.names)}"
        )


def _check_rows(table: pd.DataFrame, place: str | Path, contract: str) -> None:
    key = KEYS[contract]
    again = table.duplicated(key)
    if again.any():
        row = ", ".join(f"{name} {value}" for name, value in table.loc[again, key].iloc[0].items())
        raise InputError(f"{place}: {row} is there twice ({again.sum()} such rows); make it again")
