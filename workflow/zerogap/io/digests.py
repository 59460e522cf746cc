"""Digests of values, files and folders: what tells the inputs of one job from those of another."""

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from zerogap.errors import InputError
from zerogap.io import atomic

# Files of a model, without and with weights; other formats of weights can run code.
SMALL_FILES = ("*.json", "*.jinja", "*.model", "tokenizer*", "*.txt")
WEIGHTS = ("*.safetensors",)
FILES = [*SMALL_FILES, *WEIGHTS]
OTHER_COPIES = ["consolidated*.safetensors"]  # the same weights in Mistral's own format


def value_digest(value: Any) -> str:
    """A digest of any JSON-serialisable value."""
    return bytes_digest(json.dumps(value, sort_keys=True).encode())


def bytes_digest(data: bytes | memoryview) -> str:
    """A digest of bytes."""
    return hashlib.sha256(data).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """A digest of a file's content; the same process reads an unchanged file only once."""
    return _file_digest(path.resolve(), *_state(path))


def folder_digest(folder: Path, cache: Path | None = None) -> str:
    """A digest of the names and contents of a model's files, without those in further folders.

    Args:
        folder: the model's folder.
        cache: a JSON file that keeps digests between processes: only files whose size or times have
            changed are read again.
    """
    paths = sorted(
        path
        for path in folder.iterdir()
        if matches(path.name, FILES) and not matches(path.name, OTHER_COPIES) and path.is_file()
    )
    known = read_cache(cache) if cache else {}
    keys = [json.dumps([str(path.resolve()), *_state(path)]) for path in paths]
    missing = {key: path for key, path in zip(keys, paths, strict=True) if key not in known}
    with ThreadPoolExecutor() as pool:
        known |= zip(missing, pool.map(file_digest, missing.values()), strict=True)
    if cache and missing:
        write_cache(cache, known)
    return value_digest([[path.name, known[key]] for path, key in zip(paths, keys, strict=True)])


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a file's name, or its path in a repository, is one of the patterns."""
    return any(fnmatch(name, pattern) for pattern in patterns)


def read_cache(path: Path) -> dict[str, Any]:
    """A file of one JSON object; empty if it is absent or damaged."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def write_cache(path: Path, known: Mapping[str, Any]) -> None:
    """Keep values between processes, unless the disk is full or cannot be written."""
    with contextlib.suppress(InputError):
        atomic.write_text(path, json.dumps(known, indent=0))


def _state(path: Path) -> tuple[int, int, int]:
    """Size and times of a file; a copy that keeps the time of its content has another of change."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


@functools.cache
def _file_digest(path: Path, *_state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
