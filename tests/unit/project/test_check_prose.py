"""The prose checker finds listed phrases in text, comments and strings, and nothing else."""

import check_prose
import pytest

RULES = check_prose.read_rules(check_prose.TABLE.read_text())


def found(text: str) -> list[tuple[int, str]]:
    """Line and phrase of each violation."""
    return [(violation.line, violation.phrase) for violation in check_prose.violations(text, RULES)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A killed job goes on where it was.", [(1, "goes on")]),
        ("one row a response", [(1, "one row a response")]),
        ("x = f()  # computed anew", [(1, "anew")]),
        # Longer words, natural text and quotations
        ("There is no GPU on this machine. This is no longer needed.", []),
        ("recommended, amended, blest, besides, one row per response", []),
        ('QUOTE = "mend"  # prose: ok', []),
        # Across a line break
        ("first line\nthe job goes\non where it was", [(2, "goes on")]),
        ("first line\n    # the job goes\n    # on where it was", [(2, "goes on")]),
        ('first line\n    "the job goes "\n    f"on where it was"', [(2, "goes on")]),
        ("first line\n> the job goes\n> on where it was", [(2, "goes on")]),
    ],
)
def test_listed_phrases_are_reported_with_their_line_and_nothing_else(text, expected) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("path", "checked"),
    [
        ("README.md", True),
        ("workflow/rules/train.smk", True),
        ("Makefile", True),
        ("docs/smollm2-gsm8k/claims.md", False),
        ("requirements.lock", False),
    ],
)
def test_generated_files_are_not_checked(path: str, checked: bool) -> None:
    assert check_prose.is_checked(path) is checked
