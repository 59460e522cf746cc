"""What invalid input leads to."""

import re
from collections.abc import Callable, Mapping

from zerogap.errors import InputError

CLEAR_ERROR, TRACEBACK, ACCEPTED = "clear error", "traceback", "wrongly accepted"


def outcome_of_call(call: Callable[[], object]) -> str:
    """Return what a call with invalid arguments leads to."""
    try:
        call()
    except InputError as error:
        return CLEAR_ERROR if str(error).strip() else TRACEBACK
    except Exception as error:  # the point of the test
        return f"{TRACEBACK}: {type(error).__name__}: {error}"
    return ACCEPTED


def outcome_of_process(returncode: int, output: str) -> str:
    """Return what a command with invalid input has led to."""
    if "Traceback (most recent call last)" in output:
        return TRACEBACK
    if returncode == 0:
        return ACCEPTED
    return CLEAR_ERROR if re.search(r"^error: .+", output, re.MULTILINE) else TRACEBACK


def judge(category: str, outcomes: Mapping[str, str]) -> None:
    """Check that every case of a category, by name, is a clear error."""
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome != CLEAR_ERROR}
    assert not wrong, f"{category}: {len(wrong)} of {len(outcomes)}: {wrong}"
