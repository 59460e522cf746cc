"""The generic family and the small copies of published models, without weights (meta device)."""

import json
from itertools import pairwise

import peft
import pytest
import torch
import transformers as t
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.pytorch_utils import Conv1D

from helpers import published_models, tiny_models
from zerogap.errors import InputError
from zerogap.families import HUB_SIZES, family_from_config, family_of_folder, structure
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
def test_lora_adapts_all_linear_layers_of_the_blocks_and_no_others(name, tmp_path):
    config, (targets, down_projection) = MODELS[name], UNGATED.get(name, (GATED, "mlp.down_proj"))
    model = on_meta(config)
    every = [module.rpartition(".")[2] for module, _ in model.named_modules()]
    linear = adapted_modules(model, every)
    in_blocks = {
        module
        for module in linear
        if any(part.isdigit() for part in module.split(".")) and "per_layer" not in module
    }
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    found = structure.family_from_config(config.to_dict())
    for family in (found, family_of_folder(tmp_path)):  # which is a registered one, if there is one
        assert set(family.lora_targets) == targets
        assert family.down_projection == down_projection
    assert adapted_modules(model, found.lora_targets) == in_blocks < linear


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


def test_a_network_as_wide_as_the_model_still_has_its_down_projection():
    config = t.LlamaConfig(**GROUPED | {"intermediate_size": HIDDEN})
    assert structure.family_from_config(config.to_dict()).down_projection == "mlp.down_proj"


def test_the_text_decoder_of_a_model_of_images_is_found_where_transformers_takes_it_alone():
    vision = {"depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2}
    text = GROUPED | {"layer_types": ["linear_attention", "full_attention"], "head_dim": 8}
    config = t.AutoConfig.for_model(
        "qwen3_5",
        text_config=text | {"num_hidden_layers": 2},
        vision_config=vision | {"out_hidden_size": HIDDEN},
    )
    family = structure.family_from_config(config.to_dict())
    assert family.down_projection == "mlp.down_proj"
    assert {"q_proj", "down_proj"} <= set(family.lora_targets)


def test_a_low_rank_pair_of_layers_is_no_feed_forward_network():
    config = t.Gemma3nTextConfig(
        **GROUPED | {"num_hidden_layers": 4, "head_dim": 8},
        **{"num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"] * 2},
        **{"laurel_rank": 8, "activation_sparsity_pattern": [0.0] * 4},
    )
    assert structure.family_from_config(config.to_dict()).down_projection == "mlp.down_proj"


@pytest.mark.parametrize("model_type", ["falcon_h1", "ctrl"])
def test_peft_takes_the_targets_of_models_with_modules_of_ambiguous_names(model_type):
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    values = sizes | {"vocab_size": 300, "num_attention_heads": 4, "num_key_value_heads": 2}
    if model_type == "falcon_h1":
        values |= {"head_dim": 8, "mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8}
        values |= {"mamba_d_state": 8}
    else:
        values = {"vocab_size": 300, "n_embd": 32, "dff": 48, "n_layer": 2, "n_head": 4}
    model = t.AutoModelForCausalLM.from_config(t.AutoConfig.for_model(model_type, **values))
    targets = list(structure.family_of(model).lora_targets)
    assert peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=targets))


@pytest.mark.parametrize(
    "config",
    [
        tiny_models.gemma4(tiny_models.gemma4_text(**TEXT)),
        t.Gemma3Config(text_config=t.Gemma3TextConfig(**GROUPED)),
    ],
    ids=["own names", "names of the blocks"],
)
def test_towers_of_other_modalities_are_neither_adapted_nor_searched(config):
    model = on_meta(config)
    adapted = adapted_modules(model, structure.family_of(model).lora_targets)
    assert adapted
    assert all(".language_model.layers." in name for name in adapted)
    names = {id(module): name for name, module in model.named_modules()}
    down_projections = [names[id(module)] for module in structure.down_projections(model)]
    assert len(down_projections) == config.text_config.num_hidden_layers
    assert all(".language_model.layers." in name for name in down_projections)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (t.MixtralConfig(**GROUPED, num_local_experts=4), "mixture-of-experts models are not supp"),
        (t.Qwen3MoeConfig(**GROUPED, num_experts=4, moe_intermediate_size=16), "mixture-of-exper"),
        (
            t.MambaConfig(vocab_size=64, hidden_size=HIDDEN, num_hidden_layers=2),
            "no feed-forward down projection in MambaBlock; use a",
        ),
        (
            tiny_models.gemma4_text(**TEXT).to_dict() | {"enable_moe_block": True},
            "'gemma4_text' with enable_moe_block: mixture-of-experts models are not supported",
        ),
        (t.T5Config(), "is not a causal language model of transformers"),
        # Its text part is one, but is not what from_pretrained would load.
        (t.Mistral3Config(), "is not a causal language model of transformers"),
        ({"model_type": "nonsense"}, "is not a causal language model of transformers"),
        ({}, "is not a causal language model of transformers"),
    ],
    ids=["mixtral", "qwen3_moe", "mamba", "gemma4", "t5", "mistral3", "nonsense", "none"],
)
def test_what_is_not_supported_is_an_error(config, message):
    with pytest.raises(InputError, match=message):
        family_from_config(config if isinstance(config, dict) else config.to_dict())


def text(config):
    return config.get_text_config()


def head_size(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def heads_per_group(config):
    heads = config.num_attention_heads
    return heads // (getattr(config, "num_key_value_heads", None) or heads)


def attention_width(config):
    """Width of all heads together, relative to the hidden size."""
    return config.num_attention_heads * head_size(config) / config.hidden_size


@pytest.mark.parametrize("name", published_models.CONFIGS)
def test_a_small_model_keeps_proportions_kinds_of_layers_and_vocabulary(name):
    config = published_models.config(name)
    assert shrunk(config).dtype == config.dtype
    real, small = text(config), text(shrunk(config))
    assert 2 <= small.num_hidden_layers <= 4
    assert small.hidden_size <= 320
    assert heads_per_group(small) == heads_per_group(real)
    assert attention_width(small) == pytest.approx(attention_width(real), rel=0.05)
    for key in ("vocab_size", "sliding_window", "tie_word_embeddings", "max_position_embeddings"):
        assert getattr(small, key, None) == getattr(real, key, None)
    if width := getattr(real, "intermediate_size", None):
        ratio = small.intermediate_size / small.hidden_size
        assert ratio == pytest.approx(width / real.hidden_size, rel=0.05)
    if kinds := getattr(real, "layer_types", None):
        assert set(small.layer_types) == set(kinds)
        assert len(small.layer_types) == small.num_hidden_layers
        assert [small.layer_types[end] for end in (0, -1)] == [kinds[end] for end in (0, -1)]


@pytest.mark.parametrize("name", published_models.CONFIGS)
def test_a_small_model_has_the_modules_of_the_real_one(name):
    config = published_models.config(name)
    with torch.device("meta"):
        models = [AutoModelForCausalLM.from_config(entry) for entry in (config, shrunk(config))]
    real, small = map(structure.family_of, models)
    assert small.down_projection == real.down_projection
    names = [{name.rpartition(".")[2] for name in family.lora_targets} for family in (real, small)]
    assert names[0] == names[1]


def test_shared_keys_and_values_and_both_head_sizes_of_gemma_4_are_kept():
    small = text(shrunk(published_models.config("gemma4")))
    assert 0 < small.num_kv_shared_layers < small.num_hidden_layers
    assert small.global_head_dim == 2 * small.head_dim


def test_long_context_rotary_factors_fit_the_smaller_heads():
    rope = {
        "rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 4096,
        "short_factor": [1.0] * 48, "long_factor": [2.0] * 48,
    }  # fmt: skip
    config = published_models.config("phi3", rope_parameters=rope)
    small = shrunk(config)
    half = head_size(small) // 2
    assert small.rope_parameters["short_factor"] == [1.0] * half
    assert small.rope_parameters["long_factor"] == [2.0] * half


# Repository → a published configuration, and what is another value there
ON_HUB = {
    "meta-llama/Llama-2-7b-hf": ("llama2", {}),
    "EleutherAI/pythia-12b": ("pythia", {"vocab_size": 50688}),
    "EleutherAI/pythia-1b": (
        "pythia",
        {"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 8192}
        | {"num_hidden_layers": 16, "num_attention_heads": 8},
    ),
    "Qwen/Qwen2.5-0.5B": ("qwen2", {"vocab_size": 151936}),
    "allenai/OLMo-2-0425-1B": ("olmo2", {"vocab_size": 100352}),
}


@pytest.mark.parametrize("repository", ON_HUB)
def test_a_size_in_the_table_is_that_of_the_architecture(repository):
    name, values = ON_HUB[repository]
    size, config = HUB_SIZES[repository], published_models.config(name, **values)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert size.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert size.widths == (config.intermediate_size,) * config.num_hidden_layers
