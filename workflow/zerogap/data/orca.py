"""Instruction data: JSON Lines of {"system", "question", "response"}, whatever the source."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

from zerogap import store
from zerogap.errors import InputError

KEYS = ("system", "question", "response")


def load(path: str | Path, n: int, seed: int) -> list[dict[str, str]]:
    """`n` examples of a file, drawn by the seed; a missing system text is an empty one.

    Raises:
        InputError: no such file, a line that is not of the format, or fewer than `n` examples.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; give JSON Lines of {', '.join(KEYS)}")
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
    if n > len(examples):
        raise InputError(f"data.instructions.n is {n}; {path} has {len(examples)} examples")
    return Random(f"instructions/{seed}").sample(examples, n)


def from_hub(repository: str, revision: str, n: int, seed: int) -> list[dict[str, str]]:
    """`n` examples of the hub's data set, read as a stream and drawn by the seed.

    Raises:
        InputError: the data set cannot be read, or has fewer than `n` examples.
    """
    import datasets  # takes seconds to import, and other sources do without

    try:
        stream = datasets.load_dataset(repository, revision=revision, split="train", streaming=True)
        rows = list(stream.shuffle(seed=seed, buffer_size=20_000).take(n))
    except Exception as error:  # whatever the hub's libraries raise: offline, not found, …
        raise InputError(
            f"{repository}@{revision}: not loaded from the hub ({error}); check the name, the "
            "revision and the network, or give a local file"
        ) from error
    if len(rows) < n:
        raise InputError(f"data.instructions.n is {n}; {repository} has {len(rows)} examples")
    return [_example({**row, "system": row.get("system_prompt", "")}) for row in rows]


def write(path: str | Path, examples: Iterable[Mapping[str, str]]) -> None:
    """Write the examples, atomically."""
    with store.atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for example in examples:
            file.write(json.dumps(dict(example), ensure_ascii=False) + "\n")


def _example(entry: object) -> dict[str, str]:
    if not isinstance(entry, dict):
        raise InputError(f"not an object with {', '.join(KEYS)}")
    example = {key: entry.get(key) or "" for key in KEYS}
    for key, text in example.items():
        if not isinstance(text, str) or (key != "system" and not text.strip()):
            raise InputError(f"'{key}' is missing or empty; it must be a text")
    return example
