"""Packages that some commands need and that an installation without extras lacks."""

from collections.abc import Iterator
from contextlib import contextmanager

from zerogap.errors import InputError


@contextmanager
def needed_packages(extras: str, user: str = "this command") -> Iterator[None]:
    """Turn a missing package into one line that says what to install.

    Args:
        extras: of this package, separated by commas.
        user: what needs the packages.

    Raises:
        InputError: a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(
            f"{user} needs {error.name}, which is not installed; install it with pip install "
            f"'/path/to/zerogap[{extras}]'"
        ) from error
