"""The prose checker finds listed phrases in text, comments and strings, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

from helpers.paths import ROOT

_SPEC = importlib.util.spec_from_file_location("check_prose", ROOT / "tools/check_prose.py")
assert _SPEC is not None
assert _SPEC.loader is not None
check_prose = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check_prose)

RULES = check_prose.read_rules(check_prose.TABLE.read_text())


def phrases(text: str) -> list[str]:
    return [violation.phrase for violation in check_prose.find_violations(text, RULES)]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("A killed job goes on where it was.", "goes on"),
        ("Mended: long rows", "Mended"),
        ("the file is no YAML", "is no"),
        ("one row a response", "one row a response"),
        ("5,000 tokens a second", "tokens a second"),
        ("a model of yours", "of yours"),
        ("Readings with intervals", "Readings"),
        ("the embedded scale", "embedded scale"),
        ("a value stands there", "stands"),
        ("x = f()  # computed anew", "anew"),
    ],
)
def test_listed_phrase_is_reported(text: str, phrase: str) -> None:
    assert phrases(text) == [phrase]


@pytest.mark.parametrize(
    "text",
    [
        "There is no GPU on this machine.",
        "This is no longer needed.",
        "SA-PPG stands for stratum-averaged per-question probability gap.",
        "Zero Gap Is Not Restoration",
        "recommended, amended, blest, earnest",
        "besides, one row per response",
        "table_beside_paper",
        "zerogap.data.paraphrases.rules",
        "put the model on the device; it should go on the first GPU",
    ],
)
def test_natural_text_and_longer_words_pass(text: str) -> None:
    assert phrases(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "the job goes\non where it was",
        "    # the job goes\n    # on where it was",
        '    "the job goes "\n    f"on where it was"',
        "> the job goes\n> on where it was",
    ],
)
def test_phrase_is_found_across_a_line_break_and_reported_at_its_first_line(text: str) -> None:
    (violation,) = check_prose.find_violations("first line\n" + text, RULES)
    assert violation.line == 2


def test_escape_exempts_its_own_line_only() -> None:
    text = 'QUOTE = "mend"  # prose: ok\nmend'
    (violation,) = check_prose.find_violations(text, RULES)
    assert violation.line == 2


def test_every_rule_has_a_pattern_and_a_suggestion() -> None:
    assert len(RULES) > 20
    assert all(rule.pattern.pattern and rule.suggestion for rule in RULES)


@pytest.mark.parametrize(
    ("path", "checked"),
    [
        ("README.md", True),
        ("workflow/rules/train.smk", True),
        ("workflow/report/claims.rst", True),
        ("Makefile", True),
        ("workflow/zerogap/data/toy/situations.py", False),
        ("docs/smollm2-gsm8k/tables/main.md", False),
        ("requirements.lock", False),
        ("docs/smollm2-gsm8k/figures/mechanism.png", False),
    ],
)
def test_generated_data_and_binary_files_are_not_checked(path: str, checked: bool) -> None:
    assert check_prose.is_checked(path) is checked


def test_command_prints_place_and_suggestion_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_prose, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("# Title\n\nIt goes on.\n")
    assert check_prose.main(["page.md"]) == 1
    assert capsys.readouterr().out == 'page.md:3: "goes on": use continue, resume\n'
    (tmp_path / "page.md").write_text("# Title\n\nIt resumes.\n")
    assert check_prose.main(["page.md"]) == 0
