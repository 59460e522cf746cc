"""The generic family, on tiny models of the exact classes, without weights (meta device)."""

import json
from itertools import pairwise

import pytest
import torch
import transformers as t
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.pytorch_utils import Conv1D

from helpers import published_models, tiny_models
from zerogap.errors import InputError
from zerogap.families import FAMILIES, family_of_folder, structure
from zerogap.pipeline.rehearse import shrunk

HIDDEN, WIDTH, LAYERS = 32, 48, 3
COMMON = {
    "vocab_size": 64, "hidden_size": HIDDEN, "intermediate_size": WIDTH,
    "num_hidden_layers": LAYERS, "num_attention_heads": 4,
}  # fmt: skip
GROUPED = COMMON | {"num_key_value_heads": 2}
GATED = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

TEXT = {key: value for key, value in COMMON.items() if key != "num_hidden_layers"}
MODELS = {
    **{
        name: shrunk(published_models.config(name))
        for name in published_models.CONFIGS
        if name not in ("gemma4", "qwen3_5")
    },
    "gemma4": tiny_models.gemma4_text(**TEXT),
    "phi": t.PhiConfig(**COMMON),
    "opt": t.OPTConfig(
        vocab_size=64, hidden_size=HIDDEN, word_embed_proj_dim=HIDDEN, ffn_dim=WIDTH,
        num_hidden_layers=LAYERS, num_attention_heads=4,
    ),
}  # fmt: skip
# LoRA targets and down projection of the others than gated networks
UNGATED = {
    "pythia": ({"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}, "mlp.dense_4h_to_h"),
    "gpt2": ({"c_attn", "c_proj", "c_fc"}, "mlp.c_proj"),
    "phi": ({"q_proj", "k_proj", "v_proj", "dense", "fc1", "fc2"}, "mlp.fc2"),
    "phi3": ({"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}, "mlp.down_proj"),
    "opt": ({"q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"}, "fc2"),
}
REGISTERED = {"llama": "llama2", "gemma4": "gemma4", "gpt_neox": "pythia"}
models = pytest.mark.parametrize("name", MODELS)


def on_meta(config):
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def adapted_modules(model, targets):
    """What peft adapts: the linear layers whose name is a target or ends in one."""
    return {
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D)
        and any(name == target or name.endswith(f".{target}") for target in targets)
    }


@models
def test_lora_adapts_all_linear_layers_of_the_blocks_and_no_others(name):
    config, (targets, down_projection) = MODELS[name], UNGATED.get(name, (GATED, "mlp.down_proj"))
    model = on_meta(config)
    every = [module.rpartition(".")[2] for module, _ in model.named_modules()]
    linear = adapted_modules(model, every)
    in_blocks = {
        module
        for module in linear
        if any(part.isdigit() for part in module.split(".")) and "per_layer" not in module
    }
    family = structure.family_from_config(config.to_dict())
    assert set(family.lora_targets) == targets
    assert family.down_projection == down_projection
    assert adapted_modules(model, family.lora_targets) == in_blocks < linear


@models
def test_every_layer_has_its_down_projection(name):
    model = on_meta(MODELS[name])
    modules = structure.down_projections(model)
    config = model.config.get_text_config()
    assert len(modules) == config.num_hidden_layers
    for module in modules:
        written, read = module.weight.shape[:: -1 if isinstance(module, Conv1D) else 1]
        assert written == config.hidden_size < read
    names = {id(module): name for name, module in model.named_modules()}
    layers = [
        [int(part) for part in names[id(module)].split(".") if part.isdigit()] for module in modules
    ]
    assert all(first < second for first, second in pairwise(layers))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_generic_family_agrees_with_the_registered_ones(name):
    derived = structure.family_from_config(MODELS[REGISTERED[name]].to_dict())
    assert set(derived.lora_targets) == set(FAMILIES[name].lora_targets)
    assert derived.down_projection == FAMILIES[name].down_projection
    assert set(derived.model_types) <= set(FAMILIES[name].model_types)


def test_a_network_as_wide_as_the_model_still_has_its_down_projection():
    config = t.LlamaConfig(**GROUPED | {"intermediate_size": HIDDEN})
    assert structure.family_from_config(config.to_dict()).down_projection == "mlp.down_proj"


def test_towers_of_other_modalities_are_neither_adapted_nor_searched():
    text = tiny_models.gemma4_text(**TEXT)
    model = on_meta(tiny_models.gemma4(text))
    family = structure.family_of(model)
    adapted = adapted_modules(model, family.lora_targets)
    assert adapted
    assert all(".language_model.layers." in name for name in adapted)
    names = {id(module): name for name, module in model.named_modules()}
    down_projections = [names[id(module)] for module in structure.down_projections(model)]
    assert len(down_projections) == text.num_hidden_layers
    assert all(".language_model.layers." in name for name in down_projections)


def test_auto_derives_the_family_of_an_unregistered_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(MODELS["gpt2"].to_dict()))
    assert family_of_folder(tmp_path).down_projection == "mlp.c_proj"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (t.MixtralConfig(**GROUPED, num_local_experts=4), "mixture-of-experts models are not supp"),
        (t.Qwen3MoeConfig(**GROUPED, num_experts=4, moe_intermediate_size=16), "mixture-of-exper"),
        (
            t.MambaConfig(vocab_size=64, hidden_size=HIDDEN, num_hidden_layers=2),
            "no feed-forward down projection in MambaBlock; use a",
        ),
        (t.T5Config(), "is not a causal language model of transformers"),
        ({"model_type": "nonsense"}, "is not a causal language model of transformers"),
        ({}, "is not a causal language model of transformers"),
    ],
    ids=["mixtral", "qwen3_moe", "mamba", "t5", "nonsense", "none"],
)
def test_what_is_not_supported_is_an_error(config, message):
    with pytest.raises(InputError, match=message):
        structure.family_from_config(config if isinstance(config, dict) else config.to_dict())
