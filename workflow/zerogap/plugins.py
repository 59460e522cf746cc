"""What other packages bring along: objects, as `package.module:name` or a name, and files."""

import functools
import importlib
import importlib.metadata
import sys
from pathlib import Path
from typing import Any

from zerogap.errors import InputError, first_line


def import_object(target: str, key: str, built_in_names: tuple[str, ...]) -> Any:
    """Import an object, `package.module:name`, also from the working directory.

    `key` is the configuration key that holds it, and `built_in_names` what the key accepts too.

    Raises:
        InputError: the name does not have that form, or it cannot be imported.
    """
    module, _, name = target.partition(":")
    if not name:
        raise InputError(
            f"{key}: {target!r:.100} must be one of {', '.join(built_in_names)} "
            "or have the form package.module:name"
        )
    if "" not in sys.path:  # a program that is installed, as `zerogap` is, does not have it
        sys.path.append("")
    try:
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # importing runs code that may be anybody's
        raise InputError(
            f"{key}: cannot import {target!r:.100}: {first_line(error)}; is the folder above "
            f"'{module}' on PYTHONPATH?"
        ) from error


@functools.cache
def installed(group: str) -> dict[str, str]:
    """The entry points of a group, name → `package.module:name`; none of them is imported.

    Raises:
        InputError: two packages use the same name.
    """
    points = importlib.metadata.entry_points(group=group)
    targets = {point.name: point.value for point in points}
    for point in points:
        if targets[point.name] != point.value:
            raise InputError(
                f"two packages have a '{point.name}' of {group}: {point.value} and "
                f"{targets[point.name]}; uninstall one of them"
            )
    return targets


def package_file(package: str, path: str) -> Path:
    """A file or folder of an installed package, such as `lm_eval/tasks` of the package `lm_eval`.

    Raises:
        InputError: the package is not installed or has no such file.
    """
    try:
        location = Path(str(importlib.metadata.distribution(package).locate_file(path)))
    except importlib.metadata.PackageNotFoundError as error:
        raise InputError(
            f"the package {package} is not installed; install it (make .venv/smollm2 for SmolLM2 "
            "and its questions, make .venv/gemma3 for Gemma-3-270M)"
        ) from error
    if not location.exists():
        raise InputError(f"the package {package} has no {path}; correct the path")
    return location
