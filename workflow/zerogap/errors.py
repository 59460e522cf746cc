"""The error for bad user input, how other errors become one, and lists of names in it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class InputError(ValueError):
    """Bad configuration, data or files: the message says where, what is wrong and how to fix it."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def listed(names: Sequence[str], at_most: int = 5) -> str:
    """The first names, and ", …" if there are more."""
    return ", ".join(names[:at_most]) + ", …" * (len(names) > at_most)


@contextmanager
def needed_packages(extras: str, user: str = "this command") -> Iterator[None]:
    """Turn a missing package into one line that says which extras of this package to install.

    Raises:
        InputError: a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(
            f"{user} needs {error.name}, which is not installed; pip install "
            f"'/path/to/zerogap[{extras}]' installs all that zerogap itself needs"
        ) from error
