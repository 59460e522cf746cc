"""Sizes: of the real models, and of small ones, which keep what differs between architectures."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from helpers import published_models
from zerogap.families import HUB_SIZES, structure
from zerogap.pipeline.rehearse import shrunk

NAMES = list(published_models.CONFIGS)


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


@pytest.mark.parametrize("name", NAMES)
def test_a_small_model_keeps_proportions_windows_and_vocabulary(name):
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


@pytest.mark.parametrize("name", NAMES)
def test_a_small_model_has_the_modules_of_the_real_one(name):
    config = published_models.config(name)
    with torch.device("meta"):
        models = [AutoModelForCausalLM.from_config(entry) for entry in (config, shrunk(config))]
    real, small = map(structure.family_of, models)
    assert small.down_projection == real.down_projection
    names = [{name.rpartition(".")[2] for name in family.lora_targets} for family in (real, small)]
    assert names[0] == names[1]


@pytest.mark.parametrize("name", ["gemma2", "gemma3", "gemma4"])
def test_the_first_and_last_layer_of_each_kind_are_kept(name):
    config = published_models.config(name)
    real, small = text(config), text(shrunk(config))
    assert set(small.layer_types) == set(real.layer_types)
    assert small.layer_types[0] == real.layer_types[0]
    assert small.layer_types[-1] == real.layer_types[-1]
    assert len(small.layer_types) == small.num_hidden_layers


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
