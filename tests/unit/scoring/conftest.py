import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, where its files are."""
    monkeypatch.chdir(tmp_path)
