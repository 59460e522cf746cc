import math
import re
from pathlib import Path

import pytest
from safetensors import safe_open

from zerogap.errors import InputError
from zerogap.families import ModelSize
from zerogap.pipeline.models import model_size, size_on_hub

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


def test_a_folder_needs_no_family(quick):
    for model in ("llama2", "gemma", "pythia"):
        automatic = quick(**{f"models__{model}__family": "auto"})
        assert model_size(automatic, model) == model_size(quick(), model)


def test_an_unknown_size_is_an_error_with_its_remedy(monkeypatch):
    import huggingface_hub

    def offline(*arguments, **named):
        raise ConnectionError("no network\nat all")

    monkeypatch.setattr(huggingface_hub.HfApi, "get_safetensors_metadata", offline)
    with pytest.raises(InputError, match=r"some/model: its size .*\(no network\).*give a folder"):
        size_on_hub("some/model", None, "llama")
    assert isinstance(size_on_hub("EleutherAI/pythia-12b", None, "gpt_neox"), ModelSize)
