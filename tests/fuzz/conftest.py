"""`judge` checks that every case of a category is a clear error."""

from collections.abc import Callable, Mapping

import pytest

from helpers.fuzzing import CLEAR_ERROR


@pytest.fixture
def judge() -> Callable[[str, Mapping[str, str]], None]:
    """Return a function that takes a category and the outcome of each of its cases by name."""

    def check(category: str, outcomes: Mapping[str, str]) -> None:
        wrong = {name: outcome for name, outcome in outcomes.items() if outcome != CLEAR_ERROR}
        assert not wrong, f"{category}: {len(wrong)} of {len(outcomes)}: {wrong}"

    return check
