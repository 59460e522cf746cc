"""File systems of a test's own, full after a few writes."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system of this size; skips the test where the machine does not allow one.

    Args:
        folder: where; made if it does not exist.
        size: as the option of tmpfs, such as "64k".
    """
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root mounts a small file system")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
