"""Packages that some commands need and that an installation without extras lacks."""

from collections.abc import Iterator
from contextlib import contextmanager

from zerogap.errors import InputError


@contextmanager
def needed_packages(command: str, extras: str) -> Iterator[None]:
    """Turn a missing package into one line that says what to install.

    Args:
        command: the command that needs it.
        extras: of this package, separated by commas.

    Raises:
        InputError: a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(
            f"zerogap {command} needs {error.name}, which is not installed; install it with pip "
            f"install '/path/to/zerogap[{extras}]'"
        ) from error
