"""Instruction data: JSON Lines of {"system", "question", "response"}, whatever the source."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

from zerogap.errors import InputError
from zerogap.io import parquet

KEYS = ("system", "question", "response")
_BUFFER = 20_000  # rows of the stream among which the seed chooses
_SPARE = 100  # Parquet rows drawn beside the wanted ones, in place of empty ones


def load(path: str | Path, n: int, seed: int) -> list[dict[str, str]]:
    """`n` examples of a JSON Lines or Parquet file, drawn by the seed.

    The system text may be missing, or be called `system_prompt` as in OpenOrca. Of a Parquet file,
    OpenOrca's own form, only the rows that are drawn are kept in memory, and those without a
    question or a response are passed over.

    Raises:
        InputError: no such file, a line that is not of the format, or fewer than `n` examples.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; give JSON Lines or Parquet of {', '.join(KEYS)}")
    if path.suffix == ".parquet":
        return _load_parquet(path, n, seed)
    examples = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            examples.append(_example(json.loads(line)))
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {number}: not JSON ({error.msg})") from error
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    _enough(len(examples), n, str(path))
    return Random(f"instructions/{seed}").sample(examples, n)


def from_hub(repository: str, revision: str, n: int, seed: int) -> list[dict[str, str]]:
    """`n` examples of the hub's data set, read as a stream and drawn by the seed.

    The seed puts the data set's files in an order and chooses among the first rows of that order:
    what is downloaded are a few parts of one file. Rows without a question or a response are
    passed over.

    Raises:
        InputError: the data set cannot be read, or has fewer than `n` examples.
    """
    import datasets  # takes seconds to import, and other sources do without

    examples: list[dict[str, str]] = []
    try:
        stream = datasets.load_dataset(repository, revision=revision, split="train", streaming=True)
        for row in stream.shuffle(seed=seed, buffer_size=_BUFFER):
            if _complete(row):
                examples.append(_example(row))
            if len(examples) == n:
                break
    except InputError as error:
        raise InputError(f"{repository}@{revision}: {error}") from error
    except Exception as error:  # whatever the hub's libraries raise: offline, not found, …
        raise InputError(
            f"{repository}@{revision}: not loaded from the hub ({error}); check the name, the "
            "revision and the network, or give a local file"
        ) from error
    _enough(len(examples), n, repository)
    return examples


def write(path: str | Path, examples: Iterable[Mapping[str, str]]) -> None:
    """Write the examples, atomically."""
    with parquet.atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for example in examples:
            file.write(json.dumps(dict(example), ensure_ascii=False) + "\n")


def _load_parquet(path: Path, n: int, seed: int) -> list[dict[str, str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        columns = [c for c in (*KEYS, "system_prompt") if c in file.schema_arrow.names]
        total = file.metadata.num_rows
        order = Random(f"instructions/{seed}").sample(range(total), min(total, n + _SPARE))
        wanted, start, taken = sorted(order), 0, {}
        for batch in file.iter_batches(columns=columns):
            here = [i for i in wanted if start <= i < start + len(batch)]
            rows = batch.take(pa.array([i - start for i in here], pa.int64())).to_pylist()
            taken.update(zip(here, rows, strict=True))
            start += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); get it again") from error
    missing = [key for key in ("question", "response") if key not in columns]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; it must have {', '.join(KEYS)}")
    examples = [_example(taken[i]) for i in order if _complete(taken[i])]
    _enough(len(examples), n, str(path))
    return examples[:n]


def _complete(row: Mapping[str, object]) -> bool:
    return all(str(row.get(key, "?") or "").strip() for key in ("question", "response"))


def _enough(found: int, n: int, where: str) -> None:
    if found < n:
        raise InputError(f"data.instructions.n is {n}; {where} has {found} examples")


def _example(entry: object) -> dict[str, str]:
    if not isinstance(entry, dict):
        raise InputError(f"not an object with {', '.join(KEYS)}")
    named = {**entry, "system": entry.get("system") or entry.get("system_prompt")}
    example = {key: named.get(key) or "" for key in KEYS}
    for key, text in example.items():
        if not isinstance(text, str) or (key != "system" and not text.strip()):
            raise InputError(f"'{key}' is missing or empty; it must be a text")
    # Line breaks at the seam of prompt and response would be other tokens together than apart.
    return {key: text.strip() for key, text in example.items()}
