"""What `zerogap` itself offers, and what it says where an extra is not installed."""

import importlib

import pytest

import zerogap


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(zerogap, name) for name in zerogap.__all__)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_torch(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(importlib, "import_module", without_torch)
    message = r"zerogap\.sample needs torch; .*'/path/to/zerogap\[decoding\]'"
    with pytest.raises(ImportError, match=message):
        _ = zerogap.sample
