"""Load user-provided objects named in a configuration as `package.module:name`."""

import importlib
import sys
from typing import Any

from zerogap.errors import InputError


def import_object(target: str, key: str, built_in_names: tuple[str, ...]) -> Any:
    """Import the object that `target` names, also from the working directory.

    Args:
        target: `package.module:name`.
        key: the configuration key that holds the name, for the error message.
        built_in_names: the short names that the key accepts too, for the error message.

    Raises:
        InputError: the name does not have that form, or it cannot be imported.
    """
    module, _, name = target.partition(":")
    if not name:
        raise InputError(
            f"{key}: '{target}' must be one of {', '.join(built_in_names)} "
            "or have the form package.module:name"
        )
    if "" not in sys.path:  # a program that is installed, as `zerogap` is, does not have it
        sys.path.append("")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # importing runs code that may be anybody's
        raise InputError(
            f"{key}: cannot import '{target}': {error}; is the folder above '{module}' on "
            "PYTHONPATH?"
        ) from error
