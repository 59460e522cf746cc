"""Sizes and families of models, without torch."""

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors import safe_open

from zerogap.errors import InputError
from zerogap.families import FAMILIES, family_of_folder
from zerogap.pipeline import targets
from zerogap.pipeline.models import base_files, model_size, size_on_hub

ENDS = re.compile(r"(down_proj|dense_4h_to_h)\.weight$")
pytestmark = pytest.mark.usefixtures("in_checkout")


def test_the_size_of_a_folder_is_that_of_its_tensors(quick):
    config = quick()
    for model, entry in config.models.items():
        size = model_size(config, model)
        path = Path(entry.base, "model.safetensors")
        with safe_open(path, "numpy") as file:
            shapes = {
                name: file.get_slice(name).get_shape()
                for name in file.keys()  # noqa: SIM118
            }
        assert size.parameters == sum(map(math.prod, shapes.values()))
        assert size.stored == 2 * size.parameters < path.stat().st_size
        widths = [shape[1] for name, shape in shapes.items() if ENDS.search(name)]
        assert size.widths == tuple(widths)


def test_a_base_in_gguf_is_converted_before_it_is_read(paper, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gguf = {"package": "some-package", "file": "model.gguf", "end_token": "</s>"}
    with pytest.raises(InputError, match=r"convert it first with snakemake results/bases/llama2/"):
        base_files(paper(models__llama2__gguf=gguf), "llama2")


def test_a_base_of_an_earlier_configuration_is_not_taken(paper, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = paper()
    entry, folder = config.models["llama2"], Path(config.results, "llama2/base")
    folder.mkdir(parents=True)
    assert targets.base_folder(config, "llama2") is None
    for repository, expected in ((entry.base, folder), ("another/model", None)):
        origin = {"repository": repository, "revision": entry.revision, "commit": "abc"}
        (folder / "origin.json").write_text(json.dumps(origin))
        assert targets.base_folder(config, "llama2") == expected


def test_the_family_of_a_model_on_the_hub_is_the_given_one_or_that_of_its_config(
    monkeypatch, tmp_path
):
    import huggingface_hub

    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama"}')
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *_, **__: str(path))
    header = {"model.layers.0.mlp.down_proj.weight": SimpleNamespace(
        dtype="BF16", shape=[4, 6], parameter_count=24, data_offsets=(0, 48)
    )}  # fmt: skip
    metadata = SimpleNamespace(
        parameter_count={"BF16": 24}, files_metadata={"f": SimpleNamespace(tensors=header)}
    )
    monkeypatch.setattr(
        huggingface_hub.HfApi, "get_safetensors_metadata", lambda *_, **__: metadata
    )
    given, found = (size_on_hub("some/model", None, family) for family in ("llama", "auto"))
    assert given == found
    assert given.widths == (6,)


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
    assert family_of_folder(tmp_path) is family_of_folder(tmp_path, name) is FAMILIES[name]


@pytest.mark.parametrize("model_type", ["gpt_neox", "of_no_library"])
def test_a_named_family_must_be_that_of_the_folder(tmp_path, model_type):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    message = rf"config.json: model_type is '{model_type}', .* set family: auto"
    with pytest.raises(InputError, match=message):
        family_of_folder(tmp_path, "llama")
