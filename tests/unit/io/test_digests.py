import os

import pytest

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
def test_a_folder_digest_changes_with_names_and_contents(folder, change) -> None:
    before = folder_digest(folder)
    weights = folder / "model.safetensors"
    if change == "content":
        weights.write_bytes(b"Weights")
    elif change == "name":
        weights.rename(folder / "other.safetensors")
    else:
        (folder / "tokenizer.json").write_text("{}")
    assert folder_digest(folder) != before
