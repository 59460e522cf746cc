"""Where a long job keeps the work that it resumes from: a locked folder next to its output.

Snakemake deletes the outputs of a failed job and nothing else, so the folder is not an output.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

from zerogap.errors import InputError
from zerogap.io import atomic

_SETTINGS = "settings.json"
_LOCK = "lock"


@contextlib.contextmanager
def resumable_dir(output: Path, settings: Mapping[str, Any]) -> Iterator[Path]:
    """The folder `<output>.work`, locked while in use and removed when the block succeeds.

    Work that an earlier process left there is kept if it was begun with the same settings.
    Otherwise the folder is emptied, and a log line names the settings that changed.

    Args:
        output: the file or folder that the job makes.
        settings: everything the result depends on; must be JSON-serialisable.

    Yields:
        The folder.

    Raises:
        InputError: another process is making the same output, or nothing can be written there.
    """
    folder = output.with_name(f"{output.name}.work")
    with atomic.write_errors_as_input_errors(output):
        folder.mkdir(parents=True, exist_ok=True)
    with exclusive(output, folder / _LOCK):
        _prepare(folder, json.loads(json.dumps(settings)))
        yield folder
        _empty(folder)
        (folder / _LOCK).unlink()
    # Only now: on NFS, an open file such as the lock stays in its folder when it is deleted.
    with contextlib.suppress(OSError):  # another process has begun to make the same output
        folder.rmdir()


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


def _prepare(folder: Path, settings: dict[str, Any]) -> None:
    """Empty the folder unless it was begun with these settings, and note them."""
    note = folder / _SETTINGS
    previous = _read_settings(note)
    if previous is not None and previous != settings:
        changed = [key for key in settings if previous.get(key) != settings[key]]
        print(
            f"{folder}: settings changed since the last run ({', '.join(changed)}); starting over",
            flush=True,
        )
    if previous != settings:
        _empty(folder)
        with atomic.replacing(note) as temporary:
            temporary.write_text(json.dumps(settings, indent=1) + "\n")
    atomic.remove_partial_writes(folder)


def _empty(folder: Path) -> None:
    """Delete everything but the lock."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def _read_settings(note: Path) -> dict[str, Any] | None:
    """The settings that the work was begun with; None for new work, {} if unreadable."""
    try:
        return dict(json.loads(note.read_text()))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError:
        return {}
