"""The rules of the workflow as text."""

import re

from helpers.paths import ROOT

_START = re.compile(r"(?m)^ *(?=(?:use )?rule \w+)")
_RUNS = re.compile(r"(?m)^ +(shell|script|template_engine):")


def rule_texts() -> dict[str, str]:
    """Rule → its text, for the rules that run something; a `use rule` inherits what it runs."""
    texts = {}
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        for block in _START.split(path.read_text())[1:]:
            if block.startswith("rule") and _RUNS.search(block):
                texts[re.match(r"rule (\w+)", block)[1]] = block
    return texts
