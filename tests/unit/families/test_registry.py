"""The registry of model families, without torch."""

import json

import pytest

from helpers.scripts import python
from zerogap.errors import InputError
from zerogap.families import FAMILIES, family_of_folder


@pytest.mark.parametrize("module", ["zerogap.families", "zerogap.strategies.registry"])
def test_importing_a_registry_does_not_import_torch(module):
    program = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert python("-c", program).returncode == 0


def test_every_family_is_registered_under_its_name_with_its_own_model_types():
    assert all(family.name == name for name, family in FAMILIES.items())
    model_types = [kind for family in FAMILIES.values() for kind in family.model_types]
    assert len(model_types) == len(set(model_types))


@pytest.mark.parametrize(
    ("model_type", "name"),
    [("llama", "llama"), ("gemma4", "gemma4"), ("gemma4_text", "gemma4"), ("gpt_neox", "gpt_neox")],
)
def test_auto_takes_the_registered_family_of_the_model_type(tmp_path, model_type, name):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    assert family_of_folder(tmp_path) is FAMILIES[name]


def test_a_named_family_must_be_that_of_the_folder(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt_neox"}')
    assert family_of_folder(tmp_path, "gpt_neox") is FAMILIES["gpt_neox"]
    with pytest.raises(InputError, match=r"model_type is 'gpt_neox', .* set family: auto"):
        family_of_folder(tmp_path, "llama")
