"""Instruction data in the form of OpenOrca: {"system", "question", "response"}."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

from zerogap.data.question_sources import hub_errors
from zerogap.errors import InputError
from zerogap.io.text_files import json_lines, read_text

KEYS = ("system", "question", "response")
SHUFFLE_BUFFER = 20_000  # rows of the stream among which the seed chooses
_SPARE_ROWS = 100  # Parquet rows drawn in addition, to replace incomplete ones


def load(path: str | Path, num_examples: int, seed: int) -> list[dict[str, str]]:
    """Draw examples from a JSON Lines or Parquet file.

    The system text may be missing, or be called `system_prompt` as in OpenOrca. Of a Parquet file,
    OpenOrca's own format, only the drawn rows are kept in memory, and rows without a question or a
    response are skipped.

    Raises:
        InputError: the file does not exist, has too few examples, or a line is invalid.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"{path}: does not exist; pass JSON Lines or Parquet with {', '.join(KEYS)}"
        )
    if path.suffix == ".parquet":
        examples = _parquet_examples(path, num_examples, seed)
        _check_number(len(examples), num_examples, str(path))
        return examples[:num_examples]
    examples = [example for _, example in json_lines(path, read_text(path), _example)]
    _check_number(len(examples), num_examples, str(path))
    return Random(f"instructions/{seed}").sample(examples, num_examples)


def from_hub(repository: str, revision: str, num_examples: int, seed: int) -> list[dict[str, str]]:
    """Draw examples from a data set on the hub, read as a stream.

    The seed orders the files of the data set and chooses among the first rows of that order, so
    that only a few parts of one file are downloaded. Rows without a question or a response are
    skipped.

    Raises:
        InputError: the data set cannot be read or has too few examples.
    """
    import datasets  # takes seconds to import, and the other sources do not need it

    examples: list[dict[str, str]] = []
    with hub_errors(repository, revision):
        stream = datasets.load_dataset(repository, revision=revision, split="train", streaming=True)
        for row in stream.shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER):
            if _is_complete(row):
                examples.append(_example(row))
            if len(examples) == num_examples:
                break
    _check_number(len(examples), num_examples, repository)
    return examples


def _parquet_examples(path: Path, num_examples: int, seed: int) -> list[dict[str, str]]:
    """Drawn rows that are complete, some more than needed if there are so many."""
    import pyarrow as pa
    import pyarrow.dataset

    try:
        file = pyarrow.dataset.dataset(path)
        num_rows, columns = file.count_rows(), [*KEYS, "system_prompt"]
        columns = [column for column in columns if column in file.schema.names]
        scanner = file.scanner(columns=columns, batch_size=8192, batch_readahead=2)  # less memory
        for num_drawn in (num_examples + _SPARE_ROWS, num_rows):
            random = Random(f"instructions/{seed}")
            order = random.sample(range(num_rows), min(num_rows, num_drawn))
            drawn = scanner.take(pa.array(order, pa.int64())).to_pylist()
            rows = [row for row in drawn if _is_complete(row)]
            if len(rows) >= num_examples:
                break
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: is not a readable Parquet file ({error}); download it again"
        ) from error
    if missing := [key for key in ("question", "response") if key not in columns]:
        raise InputError(f"{path}: has no column {', '.join(missing)}; add {', '.join(KEYS)}")
    return list(map(_example, rows))


def _is_complete(row: Mapping[str, object]) -> bool:
    return all(str(row.get(key, "?") or "").strip() for key in ("question", "response"))


def _check_number(available: int, num_examples: int, source: str) -> None:
    if available < num_examples:
        raise InputError(
            f"{source}: has only {available} examples; lower instructions.num_examples "
            f"(got {num_examples})"
        )


def _example(entry: object) -> dict[str, str]:
    if not isinstance(entry, dict):
        raise InputError(f"is not a JSON object; write one per line, with {', '.join(KEYS)}")
    named = {**entry, "system": entry.get("system") or entry.get("system_prompt")}
    example = {key: named.get(key) or "" for key in KEYS}
    for key, text in example.items():
        if not isinstance(text, str) or (key != "system" and not text.strip()):
            raise InputError(f"'{key}' is missing or empty; it must be a text")
    # Line breaks where prompt and response meet would be tokenised differently together and apart.
    return {key: text.strip() for key, text in example.items()}
