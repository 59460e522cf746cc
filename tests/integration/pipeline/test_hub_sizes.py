"""The sizes in the table are those of the architectures, counted without weights."""

import pytest
import torch
from transformers import AutoModelForCausalLM, GPTNeoXConfig, LlamaConfig, Olmo2Config, Qwen2Config

from zerogap.families import HUB_SIZES


def neox(vocab_size, hidden_size, num_layers, num_heads):
    return GPTNeoXConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        intermediate_size=4 * hidden_size,
    )


CONFIGS = {
    "meta-llama/Llama-2-7b-hf": LlamaConfig(),
    "EleutherAI/pythia-12b": neox(50688, 5120, 36, 40),
    "EleutherAI/pythia-1b": neox(50304, 2048, 16, 8),
    "Qwen/Qwen2.5-0.5B": Qwen2Config(
        vocab_size=151936, hidden_size=896, num_hidden_layers=24, num_attention_heads=14,
        num_key_value_heads=2, intermediate_size=4864, tie_word_embeddings=True,
    ),
    "allenai/OLMo-2-0425-1B": Olmo2Config(
        vocab_size=100352, hidden_size=2048, num_hidden_layers=16, num_attention_heads=16,
        num_key_value_heads=16, intermediate_size=8192,
    ),
}  # fmt: skip


@pytest.mark.parametrize("repository", CONFIGS)
def test_a_size_in_the_table_is_that_of_the_architecture(repository):
    size, config = HUB_SIZES[repository], CONFIGS[repository]
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    assert size.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert size.widths == (config.intermediate_size,) * config.num_hidden_layers
