"""A base is trained in the precision of the training, whatever it is stored in."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from helpers.paths import ROOT
from helpers.training import RECIPE
from zerogap.training import llamafactory

TOY = ROOT / "workflow/resources/bases"
TRAINING = RECIPE | {"device": "cpu", "global_batch_size": 2}
STORED = ("float16", "bfloat16", "float32")


@pytest.fixture(scope="module", params=["llama2", "pythia"])
def stored(request, tmp_path_factory):
    """A toy base, whose weights have 16 bits, stored in three types."""
    folders = {}
    for dtype in STORED:
        model = AutoModelForCausalLM.from_pretrained(TOY / request.param, dtype=torch.float16)
        folders[dtype] = tmp_path_factory.mktemp(dtype)
        model.to(getattr(torch, dtype)).save_pretrained(folders[dtype])
        AutoTokenizer.from_pretrained(TOY / request.param).save_pretrained(folders[dtype])
    return folders


@pytest.mark.parametrize("bf16", [True, False])
def test_a_base_is_loaded_in_the_precision_of_the_training(stored, tmp_path, monkeypatch, bf16):
    monkeypatch.setattr("zerogap.precision.slowdown", lambda dtype: 1.0)
    precision = "bfloat16" if bf16 else "float32"
    for dtype in ("float16", precision):
        for _ in range(2):  # again after an interruption
            folder = llamafactory.base_to_load(
                stored[dtype], TRAINING | {"bf16": bf16}, tmp_path / dtype
            )
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
        assert str(model.dtype) == f"torch.{precision}"
        weights = AutoModelForCausalLM.from_pretrained(stored[precision], dtype="auto").state_dict()
        assert all(torch.equal(weights[name], w) for name, w in model.state_dict().items())
    assert folder == stored[precision]  # stored as it is trained


def test_towers_are_loaded_in_float32_too(tmp_path):
    (tmp_path / "config.json").write_text(
        '{"torch_dtype": "bfloat16", "text_config": {"dtype": "bfloat16", "hidden_size": 8}}'
    )
    folder = llamafactory.base_to_load(tmp_path, TRAINING, tmp_path.with_suffix(".base"))
    assert json.loads((folder / "config.json").read_text()) == {
        "dtype": "float32",
        "torch_dtype": "float32",
        "text_config": {"dtype": "float32", "hidden_size": 8},
    }
