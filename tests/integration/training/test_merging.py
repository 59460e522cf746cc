"""Merging a LoRA adapter, which weights change and by how much; precisions of base and training."""

import json
import shutil

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel

from helpers import tiny_models
from helpers.paths import ROOT
from helpers.scripts import run_script
from helpers.toy_tokenizers import TOKENIZERS
from helpers.training import RECIPE
from zerogap.families import family_of_folder
from zerogap.training import llamafactory
from zerogap.training.llamafactory import write_datasets
from zerogap.training.merging import merge_adapter

RANK, ALPHA = 4, 6
ARCHITECTURES = {"llama": "llama_mha", "gpt_neox": "gpt_neox", "gemma4": "gemma4_with_towers"}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def folder(request, tmp_path_factory):
    """A base model stored in float16 and an adapter with random weights."""
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = TOKENIZERS[request.param]()
    model = tiny_models.model(ARCHITECTURES[request.param], vocab_size=len(tokenizer))
    model.half().save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    adapted(model, folder).save_pretrained(folder / "adapter")
    return folder


def adapted(model, folder) -> PeftModel:
    """The model with a LoRA adapter on its family's targets, none of it zero."""
    targets = list(family_of_folder(folder / "base", "auto").lora_targets)
    lora = LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=targets, exclude_modules=".*tower.*",
        init_lora_weights=False,
    )  # fmt: skip
    return get_peft_model(model, lora)


def weights(folder):
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_merged_weight_is_that_of_the_base_plus_the_product_of_the_adapter(folder, dtype):
    merge_adapter(folder / "base", folder / "adapter", folder / dtype, dtype)
    base, merged = weights(folder / "base"), weights(folder / dtype)
    adapter = load_file(folder / "adapter/adapter_model.safetensors")
    precision, expected = getattr(torch, dtype), dict(base)
    for name in adapter:
        if "lora_A" not in name:
            continue
        target = name.removeprefix("base_model.model.").replace(".lora_A", "")
        product = adapter[name.replace("lora_A", "lora_B")] @ adapter[name]
        expected[target] = base[target].to(precision).float() + product * (ALPHA / RANK)
    assert set(merged) == set(base)
    for name, weight in merged.items():
        assert weight.dtype == precision
        torch.testing.assert_close(weight, expected[name].to(precision))
    changed = [name for name in base if not torch.equal(merged[name], base[name].to(precision))]
    assert len(changed) == len(adapter) / 2


@pytest.mark.parametrize("named", [None, ["LLaMAForCausalLM"]])
def test_a_base_may_name_no_class_or_an_unknown_one(named, tmp_path):
    model = tiny_models.model("llama")
    model.save_pretrained(tmp_path / "base")
    TOKENIZERS["llama"]().save_pretrained(tmp_path / "base")
    adapted(model, tmp_path).save_pretrained(tmp_path / "adapter")
    path = tmp_path / "base/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": named}))
    merge_adapter(tmp_path / "base", tmp_path / "adapter", tmp_path / "model", "float32")
    assert set(weights(tmp_path / "model")) == set(weights(tmp_path / "base"))


def test_a_base_may_give_a_temperature_without_sampling(folder, tmp_path):
    base = shutil.copytree(folder / "base", tmp_path / "base")
    (base / "generation_config.json").write_text('{"temperature": 0.9, "top_p": 0.6}')
    merge_adapter(base, folder / "adapter", tmp_path / "model", "float32")
    assert set(weights(tmp_path / "model")) == set(weights(base))


def test_a_merged_model_has_the_configuration_and_the_tokenizer_of_its_base(folder):
    merge_adapter(folder / "base", folder / "adapter", folder / "model", "bfloat16")
    before, after = (
        AutoConfig.from_pretrained(folder / name).to_dict() for name in ("base", "model")
    )
    assert after["dtype"] == "bfloat16"
    parts = {"text_config", "vision_config", "audio_config"}  # have the precision, too
    changed = {key for key in before if before[key] != after[key]}
    assert changed <= {"_name_or_path", "dtype", *parts}
    before, after = (AutoTokenizer.from_pretrained(folder / name) for name in ("base", "model"))
    text = "Q: How many?\n\nA: 12 + 3"
    assert before(text)["input_ids"] == after(text)["input_ids"]
    assert before.special_tokens_map == after.special_tokens_map


def test_an_adapter_without_all_its_weights_is_refused(folder, tmp_path):
    shutil.copytree(folder / "adapter", tmp_path / "adapter")
    path = tmp_path / "adapter/adapter_model.safetensors"
    incomplete = load_file(path)
    incomplete.popitem()
    save_file(incomplete, path)
    with pytest.raises(UserWarning, match="missing adapter keys"):
        merge_adapter(folder / "base", tmp_path / "adapter", tmp_path / "model", "float32")


GPT2_TRAINING = RECIPE | {
    "learning_rate": 1e-2, "per_device_batch_size": 4, "lr_scheduler": "constant",
    "warmup_ratio": 0.0,
}  # fmt: skip
ADAPTED = {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}


@pytest.mark.slow  # GPT-2 with its Conv1D layers
def test_an_unregistered_model_is_trained_and_merged_with_family_auto(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(ROOT / "workflow/resources/bases/llama2")
    size = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
    config = AutoConfig.for_model("gpt2", vocab_size=len(tokenizer), **size)
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    examples = [
        {"prompt": "<s>Q: How many?\nA:", "response": f" The answer is {i}."} for i in range(8)
    ]
    write_datasets(tmp_path / "data", {"questions": examples})

    metadata = {"model": "gpt2", "variant": "clean_gsm8k"}
    training = {"family": "auto", "training": GPT2_TRAINING, "metadata": metadata}
    for script, parameters, names in (
        ("train_lora", training, ("base", "adapter", "data", "settings.yaml", "loss")),
        ("merge_lora", {"dtype": "float32"}, ("base", "adapter", "output")),
    ):
        paths = {name.removesuffix(".yaml"): tmp_path / name for name in names}
        job = run_script(script, tmp_path, parameters, env={"HF_HUB_OFFLINE": "1"}, **paths)
        assert job.returncode == 0, job.stderr

    before, after = weights(tmp_path / "base"), weights(tmp_path / "output")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {
        f"transformer.h.{layer}.{name}.weight" for layer in range(2) for name in ADAPTED
    }


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
