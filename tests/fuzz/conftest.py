"""`judge` checks that every case is a clear error; the counts of all categories end the session."""

from collections.abc import Callable, Mapping

import pytest

from helpers.fuzzing import CLEAR_ERROR, OUTCOMES, counts


@pytest.fixture
def judge(record_property) -> Callable[[str, Mapping[str, str]], None]:
    """Return a function that takes a category and the outcome of each of its cases by name."""

    def check(category: str, outcomes: Mapping[str, str]) -> None:
        number = counts(outcomes)
        record_property("fuzz", [category, len(outcomes), *(number[name] for name in OUTCOMES)])
        wrong = {name: outcome for name, outcome in outcomes.items() if outcome != CLEAR_ERROR}
        assert not wrong, f"{category}: {len(wrong)} of {len(outcomes)}: {wrong}"

    return check


def pytest_terminal_summary(terminalreporter) -> None:
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    rows = [
        value
        for report in reports
        for name, value in report.user_properties
        if report.when == "call" and name == "fuzz"
    ]
    if not rows:
        return
    terminalreporter.section("invalid input")
    header = ("category", "cases", *OUTCOMES)
    for row in (header, *sorted(rows)):
        terminalreporter.write_line(f"{row[0]:<28}" + "".join(f"{cell:>18}" for cell in row[1:]))
