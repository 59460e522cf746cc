"""The Python code of the documentation runs as shown; its site builds and loads nothing else."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")  # the builder writes next to its settings
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "zensical.toml", folder)
    (folder / "workflow").symlink_to(ROOT / "workflow")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder / "site"


def test_site_builds_strictly_with_the_python_api(site: Path) -> None:
    assert (site / "index.html").exists()
    reference = (site / "api.html").read_text()
    assert 'id="zerogap.metrics.definitions.sa_ppg"' in reference


def test_pages_load_no_fonts_scripts_or_styles_from_other_hosts(site: Path) -> None:
    loaded = r'<(?:script|link|img)[^>]*(?:src|href)="?(https?://[^" >]+)'
    for page in site.rglob("*.html"):
        assert re.findall(loaded, page.read_text()) == [], page.name
