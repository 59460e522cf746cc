"""Digests: of values and folders, and of what code means."""

import itertools
import os

import pytest

from zerogap.io import digests, meaning
from zerogap.io.digests import folder_digest, value_digest

MODULE = '''"""A module."""
from typing import TYPE_CHECKING

import neighbour
from outside.helper import half
from . import sibling

if TYPE_CHECKING:
    from outside.types import Number


class Mine:
    """A strategy."""

    def keep(self, value: "Number") -> "Number":
        """Keep half."""
        from outside import lazy

        return half(value)  # of it
'''
FILES = {
    "__init__.py": "",
    "mine.py": MODULE,
    "helper.py": "def half(value):\n    return value / 2\n",
    "helper.yaml": "key: 1\n",
    "sibling.py": "",
    "lazy.py": "",
    "types.py": "Number = float\n",
    "unused.py": "",
    "../neighbour.py": "",
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """The digest of `outside.mine` after replacing a text in one of its package's files."""
    monkeypatch.chdir(tmp_path)
    counter = itertools.count()

    def digest_after(name="mine.py", old="", new="", **options):
        package = tmp_path / f"copy{next(counter)}" / "outside"
        package.mkdir(parents=True)
        for file, text in FILES.items():
            (package / file).write_text(text)
        text = (package / name).read_text()
        assert old in text
        (package / name).write_text(text.replace(old, new, 1))
        monkeypatch.chdir(package.parent)
        for cached in (meaning.digest, meaning._home, meaning._file):
            cached.cache_clear()
        return meaning.digest("outside.mine", **options)

    return digest_after


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mine.py", "# of it", "# half of it"),
        ("mine.py", "Keep half", "Keep one half"),
        ("mine.py", '"""A module."""', ""),
        ("mine.py", "half(value)", "half(\n            value\n        )"),
        ("types.py", "float", "int"),
        ("helper.yaml", "1", "1 # a comment"),
        ("unused.py", "", "x = 1"),
    ],
)
def test_comments_layout_types_and_other_modules_mean_nothing(digest, name, old, new):
    assert digest(name, old, new) == digest()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mine.py", "half(value)", "half(value) + 1"),
        ("helper.py", "/ 2", "/ 3"),
        ("helper.yaml", "1", "2"),
        ("sibling.py", "", "x = 1"),
        ("lazy.py", "", "x = 1"),
        ("__init__.py", "", "x = 1"),
        ("../neighbour.py", "", "x = 1"),
        ("helper.py", "return", "return return"),  # a job says what is wrong with it
    ],
)
def test_what_a_module_does_and_imports_counts(digest, name, old, new):
    assert digest(name, old, new) != digest()


@pytest.mark.parametrize("damage", [False, True])
def test_kept_meanings_are_those_of_the_same_content(digest, tmp_path, monkeypatch, damage):
    plain, edited = digest(), digest("helper.py", "/ 2", "/ 3")
    cache = tmp_path / "zerogap/meanings.json"
    monkeypatch.setattr(meaning, "CACHE", cache)
    for _ in range(2):
        meaning._known.cache_clear()
        assert (digest(), digest("helper.py", "/ 2", "/ 3")) == (plain, edited)
        assert cache.is_file()
        if damage:
            cache.write_text("{")


def test_a_module_that_is_not_run_can_be_left_out(digest):
    without = ("outside.helper",)
    assert digest("helper.py", "/ 2", "/ 3", without=without) == digest(without=without)


def test_a_script_counts_with_what_it_imports_of_the_package(tmp_path):
    script = tmp_path / "script.py"
    digests = set()
    for text in ("", "import zerogap.strategies.ted", "import torch"):
        script.write_text(text)
        for cached in (meaning.digest, meaning._file):
            cached.cache_clear()
        digests.add(meaning.digest(script))
    assert len(digests) == 3


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


OTHER = "consolidated.safetensors"


def test_other_files_in_a_models_folder_do_not_change_its_digest(folder) -> None:
    before = folder_digest(folder)
    for name in (
        "README.md",
        ".cache/tokenizer.json.metadata",
        "checkpoint-5/model.safetensors",
        OTHER,
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    assert folder_digest(folder) == before


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
