"""The Python code of the documentation runs."""

import re
from collections.abc import Iterator

import pytest
from _pytest.mark.structures import ParameterSet

from helpers.paths import ROOT


def python_blocks() -> Iterator[ParameterSet]:
    """The `python` blocks of each page, which share their names; `py` marks an excerpt."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        if blocks:
            yield pytest.param(blocks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("blocks", list(python_blocks()))
def test_python_blocks_run(blocks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    namespace = {"__name__": "documentation"}
    for block in blocks:
        exec(compile(block, "documentation", "exec"), namespace)
