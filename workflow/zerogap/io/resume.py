"""Where a long job keeps the work that it resumes from: a locked folder next to its output.

Snakemake deletes the outputs of a failed job and nothing else, so the folder is not an output. A
job that finishes many parts, such as questions or groups of neurons, keeps them in a journal there.
A part does not depend on where an earlier attempt stopped, so a resumed job writes the same bytes
as one that was never interrupted.
"""

import contextlib
import glob
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

from zerogap.errors import InputError
from zerogap.io import atomic
from zerogap.io.digests import bytes_digest, read_cache

_SETTINGS = "settings.json"
_LOCK = "zerogap.lock"  # also the mark of a folder that may be emptied


@contextlib.contextmanager
def resumable_dir(output: Path, settings: Mapping[str, Any]) -> Iterator[Path]:
    """The folder `<output>.work`, locked while in use and removed when the block succeeds.

    Work that an earlier process left there is kept if it was begun with the same settings.
    Otherwise the folder is emptied, and a log line names the settings that changed.

    Args:
        output: the file or folder that the job makes.
        settings: everything the result depends on; must be JSON-serialisable.

    Raises:
        InputError: another process is making the same output, nothing can be written there, or a
            folder of this name has something else in it.
    """
    folder = output.with_name(f"{output.name}.work")
    with atomic.write_errors_as_input_errors(output):
        _check_is_ours(folder)
        folder.mkdir(parents=True, exist_ok=True)
    with exclusive(output, folder / _LOCK):
        _prepare(folder, json.loads(json.dumps(settings)))
        # Of processes that were killed while they wrote the output; mkstemp adds eight characters.
        for path in output.parent.glob(f".{glob.escape(output.name)}.{'?' * 8}.part"):
            _delete(path)
        yield folder
        _empty(folder)
        (folder / _LOCK).unlink()
    # Only now: on NFS, an open file such as the lock stays in its folder when it is deleted.
    with contextlib.suppress(OSError):  # another process has begun to make the same output
        folder.rmdir()


class Journal:
    """The finished parts of a job, by key: JSON values that are on disk when `add` returns.

    A line of the file is a digest, of the part and of the job's JSON-serialisable settings, and a
    part. A line that is not what this job wrote is reported and dropped: its part is made again.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._settings = json.dumps(settings).encode()
        self._parts: dict[str, Any] = {}
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        intact = [line for line in lines if self._is_intact(line)]
        for line in intact:
            key, value = json.loads(line.partition(b" ")[2])
            self._parts[key] = value
        if len(intact) < len(lines):
            _log(f"{path}: not all of it is what this job wrote; making the rest again")
            with path.open("r+b") as file:  # in place, which a full disk allows
                file.write(b"".join(intact))
                file.truncate()

    def get(self, key: str) -> Any:
        """Return the value of a part, or None if it is not finished."""
        return self._parts.get(key)

    def add(self, key: str, value: Any) -> None:
        """Store a finished part; InputError if the disk is full."""
        text = json.dumps([key, value]).encode()
        with atomic.write_errors_as_input_errors(self._path), self._path.open("ab") as file:
            file.write(self._digest(text) + b" " + text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._parts[key] = value

    def _digest(self, text: bytes) -> bytes:
        return bytes_digest(self._settings + text).encode()

    def _is_intact(self, line: bytes) -> bool:
        digest, _, text = line.removesuffix(b"\n").partition(b" ")
        return line.endswith(b"\n") and digest == self._digest(text)


@contextlib.contextmanager
def resumable_parts(output: Path, settings: Mapping[str, Any]) -> Iterator[Journal]:
    """The journal of a job that makes its output in parts: see :func:`resumable_dir`."""
    with resumable_dir(output, settings) as folder:
        path = folder / "parts.jsonl"
        if path.is_symlink():  # the lines of another file are not dropped
            path.unlink()
        yield Journal(path, settings)


@contextlib.contextmanager
def exclusive(output: Path, lock: Path) -> Iterator[None]:
    """Hold a lock file while an output is being made.

    Child processes inherit the lock: if this process is killed while a training that it started
    lives on, nobody else can write to the same folder until that training has ended.

    Raises:
        InputError: another process holds the lock, or the lock file cannot be made or locked.
    """
    with atomic.write_errors_as_input_errors(output):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
    try:
        try:
            is_locked = filelock.lock_descriptor(descriptor, blocking=False)
        except OSError as error:
            raise InputError(
                f"{lock}: cannot be locked ({error.strerror}); use a file system with file locks "
                "(Lustre: mounted with the option flock)"
            ) from error
        if not is_locked:
            raise InputError(
                f"{output}: another process is making this file; wait until it ends, or stop it"
            )
        if not os.fstat(descriptor).st_nlink:  # who held the lock has deleted it
            raise InputError(f"{output}: another process has just made this file; run again")
        os.set_inheritable(descriptor, True)
        yield
    finally:
        os.close(descriptor)


def _check_is_ours(folder: Path) -> None:
    """Refuse what may not be emptied: a link, a file, or a folder without the lock of a job."""
    is_foreign = folder.is_dir() and not (folder / _LOCK).is_file() and any(folder.iterdir())
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()) or is_foreign:
        raise InputError(
            f"{folder}: unfinished work belongs in a folder of this name, which is something else; "
            "rename it, or choose another output"
        )


def _prepare(folder: Path, settings: dict[str, Any]) -> None:
    """Empty the folder unless it was begun with these settings, and note them."""
    note = folder / _SETTINGS
    previous = read_cache(note)
    if previous != settings:
        if any(path.name != _LOCK for path in folder.iterdir()):
            keys = settings | previous
            changed = ", ".join(key for key in keys if previous.get(key) != settings.get(key))
            reason = f"settings changed since the last run ({changed})"
            _log(f"{folder}: {reason if previous else 'no readable settings'}; starting over")
        _empty(folder)
        atomic.write_text(note, json.dumps(settings, indent=1) + "\n")
    for path in folder.glob(".*.part"):  # of processes that were killed while writing
        _delete(path)


def _empty(folder: Path) -> None:
    """Delete everything but the lock."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
