"""The documentation site builds without warnings, and its pages load nothing from other hosts."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT


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
