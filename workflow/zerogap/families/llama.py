"""Llama and Llama 2."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zerogap.families.family import Family, ModelSize, SpecialTokens, ToyArchitecture, ToySize

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


def _toy_config(size: ToySize, shared: Mapping[str, Any]) -> "PreTrainedConfig":
    """Grouped-query attention with two key/value heads."""
    from transformers import LlamaConfig

    return LlamaConfig(**shared, num_key_value_heads=2, tie_word_embeddings=True)


def _toy_parameters(size: ToySize) -> int:
    block = 3 * size.hidden_size**2 + 3 * size.hidden_size * size.intermediate_size
    return size.num_layers * block + size.vocab_size * size.hidden_size


LLAMA = Family(
    name="llama",
    model_types=("llama",),
    lora_targets=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    down_projection="mlp.down_proj",
    fits_shared_prompt_decoder=True,
    published_sizes={
        "meta-llama/Llama-2-7b-hf": ModelSize(
            6_738_415_616, 13_476_831_232, (11_008,) * 32, kv_elements=2 * 32 * 4096
        )
    },
    toy=ToyArchitecture(
        SpecialTokens(("<unk>", "<s>", "</s>"), bos="<s>", eos="</s>", pad="</s>", adds_bos=True),
        _toy_config,
        _toy_parameters,
    ),
)
