import pytest

from helpers.configurations import PAPER, QUICK, overlaid
from helpers.paths import ROOT


@pytest.fixture
def in_checkout(monkeypatch):
    """The working directory is the project's."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def in_empty_checkout(tmp_path, monkeypatch):
    """The working directory is empty except for the workflow; there is no GPU, key or login."""
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zerogap.pipeline.preflight.gpu_memories", list)
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    return tmp_path


def _of(base):
    return lambda **overlay: overlaid(base, {k.replace("__", "."): v for k, v in overlay.items()})


@pytest.fixture
def paper():
    """The paper's configuration, with an overlay."""
    return _of(PAPER)


@pytest.fixture
def quick():
    """The quick scale's configuration, with an overlay."""
    return _of(QUICK)
