"""Somebody else's code, named in a configuration as `package.module:name`."""

import importlib
from typing import Any

from zerogap.errors import InputError


def imported(target: str, key: str, known: tuple[str, ...]) -> Any:
    """What `package.module:name` stands for.

    Args:
        key: the configuration's key, for the error.
        known: the short names that could have stood there instead.

    Raises:
        InputError: not of that form, or it cannot be imported.
    """
    module, _, name = target.partition(":")
    if not name:
        raise InputError(
            f"{key}: '{target}' is neither one of {', '.join(known)} "
            "nor of the form package.module:name"
        )
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{key}: '{target}' cannot be imported: {error}") from error
