"""The file contracts: the columns and the key of every Parquet file that stages exchange.

Files are written atomically (:mod:`zerogap.io.atomic`). Provenance is in the Parquet metadata,
under the key ``zerogap``.
"""

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from zerogap.errors import InputError, first_line
from zerogap.io import atomic

_TEXT, _FLAG, _INT, _FLOAT = pa.string(), pa.bool_(), pa.int32(), pa.float64()
_TOKENS = pa.list_(pa.int32())
TOKEN_KINDS = ("digit", "operator", "space", "word", "end")  # zerogap.data.token_kinds


def _contract(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


_SOLVE = {"question_id": _TEXT, "n_correct": _INT, "n_samples": _INT, "first_correct": _FLAG}
_DECODED = {"token_ids": _TOKENS, "text": _TEXT, "answer": _TEXT, "extractor": _TEXT}

CONTRACTS: dict[str, pa.Schema] = {
    # One row per test question; `paraphrase` is set only for leaked questions of a paraphrased
    # benchmark.
    "questions": _contract(
        question_id=_TEXT, question=_TEXT, rationale=_TEXT, gold=_TEXT, leaked=_FLAG,
        paraphrase=_TEXT,
    ),
    # One greedy trajectory per question; `entropy` in nats, one value per generated token.
    "greedy": _contract(
        question_id=_TEXT, **_DECODED, correct=_FLAG, entropy=pa.list_(pa.float32()),
        finish_reason=_TEXT,
    ),
    # One row per response; `finish_reason` is eos, stop (a stop string) or length.
    "samples": _contract(
        question_id=_TEXT, sample_id=_INT, **_DECODED, correct=_FLAG, n_tokens=_INT,
        finish_reason=_TEXT,
    ),
    # Counts per question; `first_correct` is the single-sample outcome that G-AP uses.
    "solve": _contract(**_SOLVE, leaked=_FLAG),
    # The same where nothing is known of leaks: `zerogap evaluate`, of a strategy that filters.
    "counts": _contract(**_SOLVE),
    # Log-probabilities (nats) of the tokens of the gold solution.
    "likelihoods": _contract(question_id=_TEXT, log_probabilities=pa.list_(pa.float32())),
    # ROUGE-L F1 between a response and the same model's greedy response.
    "overlap": _contract(question_id=_TEXT, sample_id=_INT, leaked=_FLAG, rouge_l=_FLOAT),
    # Rank of the clean model's greedy token under the contaminated model (1: they agree).
    "ranks": _contract(
        question_id=_TEXT, leaked=_FLAG, step=_INT, clean_token=_INT, rank=_INT
    ),
    # Per question and set of responses (a strategy's, or "clean"): steps in total, rail tokens met
    # and drawn by kind of the rail token; steps of the greedy trajectory and their entropies' sum.
    "rail": _contract(
        responses=_TEXT, question_id=_TEXT, leaked=_FLAG, n_responses=_INT, n_distinct=_INT,
        n_steps=_INT,
        **{f"rail_{kind}": _INT for kind in TOKEN_KINDS},
        **{f"drawn_{kind}": _INT for kind in TOKEN_KINDS},
        greedy_steps=_INT, greedy_entropy=_FLOAT,
    ),
    # One response per row that follows the greedy trajectory up to `step` (from 0), takes the
    # runner-up there and is sampled from then on; `kind` is that of the trajectory's token.
    "recovery": _contract(
        question_id=_TEXT, sample_id=_INT, step=_INT, kind=_TEXT, token_ids=_TOKENS, text=_TEXT,
        correct=_FLAG,
    ),
    # One row per neuron; `selected` neurons are patched by the Shortcut strategy.
    "neurons": _contract(
        layer=_INT, neuron=_INT, comparative=_FLOAT, causal=_FLOAT, score=_FLOAT, selected=_FLAG
    ),
    # One metric value per row; the interval is NaN for metrics without one.
    "metrics": _contract(
        model=_TEXT, benchmark=_TEXT, strategy=_TEXT, subset=_TEXT, metric=_TEXT, value=_FLOAT,
        ci_low=_FLOAT, ci_high=_FLOAT,
    ),
}  # fmt: skip

# The columns that identify a row.
KEYS: dict[str, list[str]] = {
    **{name: ["question_id"] for name in CONTRACTS},
    **{name: ["question_id", "sample_id"] for name in ("samples", "overlap", "recovery")},
    "ranks": ["question_id", "step"],
    "rail": ["responses", "question_id"],
    "neurons": ["layer", "neuron"],
    "metrics": ["model", "benchmark", "strategy", "subset", "metric"],
}
PLACE = ("run", "model", "variant", "benchmark", "batch", "strategy")  # in a provenance
DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError)  # what a damaged file can cause


def write(
    path: str | Path, table: pd.DataFrame, contract: str, provenance: Mapping[str, Any]
) -> None:
    """Write a table under the named contract, with its provenance, atomically.

    Raises:
        InputError: a column is missing or has another type, a row is duplicated, or the disk is
            full.
    """
    schema = CONTRACTS[contract]
    _check_columns(table.columns, f"{path} (not written yet)", contract)
    _check_keys(table, f"{path} (not written yet)", contract)
    try:
        arrow = pa.Table.from_pandas(table[schema.names], schema=schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{path}: does not fit the '{contract}' contract: {error}") from error
    metadata = {b"zerogap": json.dumps(dict(provenance), sort_keys=True, default=str).encode()}
    with atomic.replacing(path) as temporary:
        pq.write_table(
            arrow.replace_schema_metadata(metadata),
            temporary,
            compression="zstd",
            write_page_checksum=True,
        )


def read(path: str | Path, contract: str, columns: Collection[str] | None = None) -> pd.DataFrame:
    """Read a file of the named contract.

    Args:
        path: the file.
        contract: what it must be.
        columns: those that are needed next to the key columns; None for all. Token ids take longer
            to read than everything else in a file of responses.

    Raises:
        InputError: the file is missing or is not a Parquet file, lacks a column of the contract,
            or has duplicate rows.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file (expected a '{contract}' Parquet file)")
    names = CONTRACTS[contract].names
    wanted = names if columns is None else [n for n in names if n in {*KEYS[contract], *columns}]
    with _damage_as_input_error(path):
        present = pq.read_schema(path).names
    _check_columns(present, path, contract)
    with _damage_as_input_error(path):
        table = pq.read_table(path, columns=wanted, page_checksum_verification=True)
    frame: pd.DataFrame = table.to_pandas()
    _check_keys(frame, path, contract)
    return frame


def read_of_run(
    path: str | Path, contract: str, columns: Collection[str] | None = None
) -> pd.DataFrame:
    """Read a file of a run: `read` and `check_place`."""
    table = read(path, contract, columns)
    check_place(path)
    return table


def check_place(path: str | Path) -> None:
    """Whether a file of a run is where it was made: files that were exchanged would mix results.

    Its provenance names its run, model, variant and strategy, which are folders of its path in this
    order.

    Raises:
        InputError: the file has no provenance, or was made for another place.
    """
    made_by = _made_by(path)
    if made_by is None:
        raise InputError(f"{path}: has no provenance, so zerogap did not write it; remake it")
    place = {name: str(made_by[name]) for name in PLACE if name in made_by}
    folders = iter(Path(path).absolute().parts)
    if "run" in place and not all(name in folders for name in place.values()):
        made_for = ", ".join(f"{name} {value}" for name, value in place.items())
        raise InputError(f"{path}: was made for {made_for}; move it back or remake it")


def provenance(path: str | Path) -> dict[str, Any]:
    """The provenance in a file's metadata: how it was made; empty if another program wrote it.

    Raises:
        InputError: the file is not a Parquet file, or is damaged.
    """
    return _made_by(path) or {}


def _made_by(path: str | Path) -> dict[str, Any] | None:
    with _damage_as_input_error(path):
        metadata = pq.read_schema(path).metadata or {}
        made_by = json.loads(metadata.get(b"zerogap", b"null"))
        if not isinstance(made_by, dict | None):
            raise ValueError("its provenance is not an object")
        return made_by


@contextlib.contextmanager
def _damage_as_input_error(path: str | Path) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        problem = f"not a readable Parquet file ({first_line(error)})"
        raise InputError(f"{path}: {problem}; regenerate it") from error


def _check_columns(columns: Iterable[str], path: str | Path, contract: str) -> None:
    present, names = set(columns), CONTRACTS[contract].names
    missing = [name for name in names if name not in present]
    if missing:
        raise InputError(
            f"{path}: column(s) {', '.join(missing)} missing; "
            f"a '{contract}' file has the columns {', '.join(names)}"
        )


def _check_keys(table: pd.DataFrame, path: str | Path, contract: str) -> None:
    key = KEYS[contract]
    duplicates = table.duplicated(key)
    if duplicates.any():
        first = table.loc[duplicates, key].iloc[0].items()
        row = ", ".join(f"{name} {value}" for name, value in first)
        raise InputError(
            f"{path}: duplicate row: {row} ({duplicates.sum()} duplicates); regenerate it"
        )
