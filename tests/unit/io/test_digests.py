import os

import pytest

from zerogap.io import digests
from zerogap.io.digests import folder_digest, value_digest


def test_values_differ_where_their_json_does() -> None:
    assert value_digest({"a": [1, 2], "b": 0}) == value_digest({"b": 0, "a": (1, 2)})
    assert value_digest([1, 2]) != value_digest([1, 3])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def test_a_copied_folder_has_the_same_digest(folder, tmp_path) -> None:
    before = folder_digest(folder)
    folder.rename(tmp_path / "moved")
    for path in (tmp_path / "moved").iterdir():
        os.utime(path, (0, 0))
    assert folder_digest(tmp_path / "moved") == before


@pytest.mark.parametrize("change", ["content", "name", "additional"])
@pytest.mark.parametrize("cached", [False, True])
def test_a_folder_digest_changes_with_names_and_contents(folder, change, cached) -> None:
    cache = folder.with_name("digests.json") if cached else None
    before = folder_digest(folder, cache)
    weights = folder / "model.safetensors"
    if change == "content":
        weights.write_bytes(b"Weights")
    elif change == "name":
        weights.rename(folder / "other.safetensors")
    else:
        (folder / "tokenizer.json").write_text("{}")
    assert folder_digest(folder, cache) != before


@pytest.mark.parametrize("damage", ["", "[]", "{", "5"])
def test_kept_digests_save_reading_and_may_be_damaged(folder, monkeypatch, damage) -> None:
    cache = folder.with_name("digests.json")
    before = folder_digest(folder, cache)
    assert before == folder_digest(folder)
    with monkeypatch.context() as patch:
        patch.setattr(digests, "file_digest", None)
        assert folder_digest(folder, cache) == before
    cache.write_text(damage)
    assert folder_digest(folder, cache) == before
