"""A base stored in bfloat16 is trained in float32 where the training is not in bfloat16."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from helpers.paths import ROOT
from helpers.scripts import run_script
from zerogap.training import llamafactory
from zerogap.training.llamafactory import write_datasets

TOY = ROOT / "workflow/resources/bases/llama2"
TRAINING = {
    "lora": {"rank": 8, "alpha": 16, "dropout": 0.0}, "learning_rate": 1e-3,
    "num_epochs": 1, "lr_scheduler": "cosine", "warmup_ratio": 0.1, "global_batch_size": 2,
    "per_device_batch_size": 2, "num_gpus": 1, "bf16": False,
    "device": "cpu", "group_by_length": False,
    "cutoff_len": 64, "save_steps": None, "seed": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The toy model rounded to bfloat16, stored in bfloat16 and in float32."""
    model = AutoModelForCausalLM.from_pretrained(TOY, dtype=torch.bfloat16)
    folders = {}
    for dtype in ("bfloat16", "float32"):
        folders[dtype] = tmp_path_factory.mktemp(dtype)
        model.to(getattr(torch, dtype)).save_pretrained(folders[dtype])
        AutoTokenizer.from_pretrained(TOY).save_pretrained(folders[dtype])
    return folders


def loaded(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype="auto")


def test_a_base_in_bfloat16_is_loaded_in_float32_with_the_same_weights(stored, tmp_path):
    assert loaded(stored["bfloat16"]).dtype == torch.bfloat16
    for _ in range(2):  # again after an interruption
        folder = llamafactory.base_to_load(stored["bfloat16"], TRAINING, tmp_path / "base")
    model, expected = loaded(folder), loaded(stored["float32"])
    assert model.dtype == torch.float32
    for name, weight in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight)


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


@pytest.mark.parametrize(
    ("dtype", "training"), [("float32", {}), ("bfloat16", {"bf16": True, "device": "auto"})]
)
def test_a_base_in_the_precision_of_the_training_is_loaded_itself(
    stored, tmp_path, dtype, training
):
    base = llamafactory.base_to_load(stored[dtype], TRAINING | training, tmp_path / "base")
    assert base == stored[dtype]


@pytest.mark.slow
def test_a_training_without_bf16_multiplies_in_float32_whatever_its_base_is_stored_in(
    stored, tmp_path
):
    data = tmp_path / "data"
    examples = [{"prompt": f"<s>Q: {i} + 1?\nA:", "response": f" {i + 1}."} for i in range(6)]
    write_datasets(data, {"questions": examples})
    for dtype, base in stored.items():
        folder = tmp_path / dtype
        run_script(
            "train_lora",
            folder,
            {
                "family": "llama",
                "training": TRAINING,
                "metadata": {"model": "llama2", "variant": "gsm8k"},
            },
            base=base,
            data=data,
            settings=folder / "train.yaml",
            adapter=folder / "adapter",
            loss=folder / "loss.tsv",
        )
        adapter = json.loads((folder / "adapter/adapter_config.json").read_text())
        assert adapter["base_model_name_or_path"] == str(base)
    for name in ("loss.tsv", "adapter/adapter_model.safetensors"):
        one, other = (tmp_path / dtype / name for dtype in stored)
        assert one.read_bytes() == other.read_bytes()
