"""Data files of installed Python packages."""

import importlib.metadata
from pathlib import Path

from zerogap.errors import InputError


def package_file(package: str, path: str) -> Path:
    """A file or folder that an installed package has brought along.

    Args:
        package: the package's name, as it is installed by.
        path: where it is next to the package's own folder, e.g. `lm_eval/tasks`.

    Raises:
        InputError: the package is not installed or has no such file.
    """
    try:
        location = Path(str(importlib.metadata.distribution(package).locate_file(path)))
    except importlib.metadata.PackageNotFoundError as error:
        raise InputError(
            f"the package {package} is not installed; install it (make .venv/smollm2 for SmolLM2 "
            "and its questions)"
        ) from error
    if not location.exists():
        raise InputError(f"the package {package} has no {path}; correct the path")
    return location
