"""The sizes in the table are those of the architectures, counted without weights."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from helpers import published_models
from zerogap.families import HUB_SIZES

# Repository → a published configuration, and what is another value there
CONFIGS = {
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


@pytest.mark.parametrize("repository", CONFIGS)
def test_a_size_in_the_table_is_that_of_the_architecture(repository):
    name, values = CONFIGS[repository]
    size, config = HUB_SIZES[repository], published_models.config(name, **values)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert size.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert size.widths == (config.intermediate_size,) * config.num_hidden_layers
