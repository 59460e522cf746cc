"""What the documentation shows runs."""

import re

import pytest

from helpers.paths import ROOT

PAGES = ["docs/bring-your-own.md", "docs/sampler.md", "docs/score.md", "README.md"]


def blocks():
    for page in PAGES:
        text = (ROOT / page).read_text()
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.S)):
            yield pytest.param(code, id=f"{page}-{number}")


@pytest.mark.parametrize("code", list(blocks()))
def test_python_blocks_run(code, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(code, "documentation", "exec"), {"__name__": "documentation"})


def test_links_lead_somewhere():
    for page in [*PAGES, *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"
