"""A model of an unregistered family, GPT-2 with its Conv1D layers, trained and merged as a job."""

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from helpers.paths import ROOT
from helpers.scripts import run_script
from helpers.training import RECIPE
from zerogap.training.llamafactory import write_datasets

pytestmark = pytest.mark.slow

TRAINING = RECIPE | {
    "learning_rate": 1e-2, "per_device_batch_size": 4, "lr_scheduler": "constant",
    "warmup_ratio": 0.0,
}  # fmt: skip
ADAPTED = {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}


def test_an_unregistered_model_is_trained_and_merged_with_family_auto(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "workflow/resources/bases/llama2")
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=256)
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    examples = [
        {"prompt": "<s>Q: How many?\nA:", "response": f" The answer is {i}."} for i in range(8)
    ]
    write_datasets(tmp_path / "data", {"questions": examples})

    base, adapter = tmp_path / "base", tmp_path / "adapter"
    metadata = {"model": "gpt2", "variant": "clean_gsm8k"}
    parameters = {"family": "auto", "training": TRAINING, "metadata": metadata}
    files = {"settings": tmp_path / "train.yaml", "loss": tmp_path / "loss.tsv"}
    offline = {"HF_HUB_OFFLINE": "1"}
    job = run_script(
        "train_lora", tmp_path, parameters, env=offline, base=base, data=tmp_path / "data",
        adapter=adapter, **files,
    )  # fmt: skip
    assert job.returncode == 0, job.stderr
    job = run_script(
        "merge_lora", tmp_path, {"dtype": "float32"}, env=offline, base=base, adapter=adapter,
        output=tmp_path / "model",
    )  # fmt: skip
    assert job.returncode == 0, job.stderr

    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("base", "model"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {
        f"transformer.h.{layer}.{name}.weight" for layer in range(2) for name in ADAPTED
    }
