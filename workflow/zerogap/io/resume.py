"""Where a long job keeps what it goes on from after it was killed: a folder beside its output.

Snakemake removes the outputs of a job that failed and nothing else, hence beside.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from zerogap.errors import InputError
from zerogap.io import parquet


@contextlib.contextmanager
def resumable_dir(output: Path, origin: Mapping[str, Any]) -> Iterator[Path]:
    """The folder `<output>.work`, locked while in use and removed when the block succeeds.

    What it holds was begun from the same origin: else it is emptied, and a line says why.

    Args:
        output: the file or folder that the job makes.
        origin: everything the result depends on, as JSON can hold it.

    Raises:
        InputError: another process is making the same output.
    """
    folder = output.with_name(f"{output.name}.work")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{output}: another process is making it; wait for that one or stop it"
            ) from None
        os.set_inheritable(lock.fileno(), True)  # a child that outlives this process holds it on
        _begin(folder, json.loads(json.dumps(origin)))
        yield folder
        shutil.rmtree(folder)


def _begin(folder: Path, origin: dict[str, Any]) -> None:
    note = folder / "origin.json"
    try:
        before = json.loads(note.read_text())
    except FileNotFoundError:
        before = None
    except json.JSONDecodeError:
        before = {"": "unreadable"}
    if before not in (None, origin):
        differing = [key for key in origin if before.get(key) != origin[key]]
        print(
            f"{folder}: begun from something else ({', '.join(differing)}); the work begins anew",
            flush=True,
        )
    if before != origin:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
        with parquet.atomic(note) as temporary:
            temporary.write_text(json.dumps(origin, indent=1) + "\n")
    for leftover in folder.glob(".*.part"):  # of a write that was killed
        leftover.unlink()


def fingerprint(facts: Any) -> str:
    """A digest of facts that JSON can hold."""
    text = json.dumps(facts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def folder_state(folder: Path) -> list[tuple[str, int, int]]:
    """What tells a model folder from another without reading gigabytes: names, sizes, times."""
    return sorted(
        (str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    )
