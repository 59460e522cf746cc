"""Digests of values, files and folders: what tells the inputs of one job from those of another."""

import functools
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def value_digest(value: Any) -> str:
    """A digest of any JSON-serialisable value."""
    return bytes_digest(json.dumps(value, sort_keys=True).encode())


def bytes_digest(data: bytes | memoryview) -> str:
    """A digest of bytes."""
    return hashlib.sha256(data).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """A digest of a file's content; the same process reads an unchanged file only once."""
    state = path.stat()
    return _file_digest(path.resolve(), state.st_size, state.st_mtime_ns)


def folder_digest(folder: Path) -> str:
    """A digest of the names and contents of all files in a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    with ThreadPoolExecutor() as pool:
        digests = list(pool.map(file_digest, paths))
    names = [path.relative_to(folder).as_posix() for path in paths]
    return value_digest(list(zip(names, digests, strict=True)))


@functools.cache
def _file_digest(path: Path, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
