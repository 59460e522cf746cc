"""The targets on the command line; Snakemake takes every unknown one for a file."""

import difflib
from collections.abc import Collection, Iterable

from zerogap.errors import InputError


def check_targets(requested: Iterable[str], targets: Collection[str]) -> None:
    """Check that every requested target exists, or may be a file.

    Args:
        requested: names of targets, and files; all files of a run are in folders.
        targets: the names of all targets.

    Raises:
        InputError: one of them is neither; the message has the nearest names.
    """
    for name in requested:
        if "/" not in name and name not in targets:
            nearest = difflib.get_close_matches(name, targets)
            hint = f"did you mean {', '.join(nearest)}? " if nearest else ""
            raise InputError(f"'{name}' is not a target; {hint}docs/workflow.md#targets lists all")
