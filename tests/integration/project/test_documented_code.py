"""The Python code of the documentation runs and prints what the pages show."""

import re
from collections.abc import Iterator

import pytest
from _pytest.mark.structures import ParameterSet

from helpers.paths import ROOT

BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def python_blocks() -> Iterator[ParameterSet]:
    """The `python` blocks of each page with the `text` block that follows, if any.

    The blocks of a page share their names; `py` marks an excerpt.
    """
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if blocks := BLOCK.findall(page.read_text()):
            yield pytest.param(blocks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("blocks", list(python_blocks()))
def test_python_blocks_print_the_text_that_follows_them(
    blocks: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    namespace = {"__name__": "documentation"}
    for code, output in blocks:
        capsys.readouterr()
        exec(compile(code, "documentation", "exec"), namespace)
        if output:
            assert capsys.readouterr().out == output
