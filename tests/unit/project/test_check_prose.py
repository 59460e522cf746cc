"""The prose checker finds listed phrases in text, comments and strings, and nothing else."""

import check_prose
import pytest

RULES = check_prose.read_rules(check_prose.TABLE.read_text())


def found(text: str) -> list[tuple[int, str]]:
    """Line and phrase of each violation."""
    return [(violation.line, violation.phrase) for violation in check_prose.violations(text, RULES)]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("A killed job goes on where it was.", "goes on"),
        ("the file is no YAML", "is no"),
        ("one row a response", "one row a response"),
        ("a model of yours", "of yours"),
        ("x = f()  # computed anew", "anew"),
    ],
)
def test_listed_phrase_is_reported(text: str, phrase: str) -> None:
    assert found(text) == [(1, phrase)]


@pytest.mark.parametrize(
    "text",
    [
        "There is no GPU on this machine. This is no longer needed.",
        "Zero Gap Is Not Restoration; SA-PPG stands for gaps",
        "recommended, amended, blest, besides, one row per response",
        "put the model on the device; it should go on the first GPU",
        'QUOTE = "mend"  # prose: ok',
    ],
)
def test_natural_text_longer_words_and_quotations_pass(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "the job goes\non where it was",
        "    # the job goes\n    # on where it was",
        '    "the job goes "\n    f"on where it was"',
        "> the job goes\n> on where it was",
    ],
)
def test_phrase_across_a_line_break_is_reported_at_its_first_line(text: str) -> None:
    ((line, _),) = found("first line\n" + text)
    assert line == 2


@pytest.mark.parametrize(
    ("path", "checked"),
    [
        ("README.md", True),
        ("workflow/rules/train.smk", True),
        ("Makefile", True),
        ("docs/smollm2-gsm8k/tables.md", False),
        ("requirements.lock", False),
    ],
)
def test_generated_files_are_not_checked(path: str, checked: bool) -> None:
    assert check_prose.is_checked(path) is checked
