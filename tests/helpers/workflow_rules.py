"""The rules of the workflow as text."""

import re
from collections.abc import Iterator

from helpers.paths import ROOT

_START = re.compile(r"(?m)^ *(?=(?:use )?rule \w+)")
_RUNS = re.compile(r"(?m)^ +(shell|script):")


def rule_texts() -> dict[str, str]:
    """Rule → its text, for the rules that run something; a `use rule` inherits what it runs."""
    return {
        re.match(r"rule (\w+)", block)[1]: block
        for block in _blocks()
        if block.startswith("rule") and _RUNS.search(block)
    }


def derived_rule_texts() -> dict[str, str]:
    """Rule → its text, for the rules that another one is used as."""
    matches = ((re.match(r"use rule \w+ as (\w+)", block), block) for block in _blocks())
    return {match[1]: block for match, block in matches if match}


def _blocks() -> Iterator[str]:
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        yield from _START.split(path.read_text())[1:]
