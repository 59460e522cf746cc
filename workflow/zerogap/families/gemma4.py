"""Gemma 4, the text model of Gemma-4-E2B."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zerogap.families.family import Family, ModelSize, SpecialTokens, ToyArchitecture, ToySize

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_PER_LAYER_WIDTH = 16  # of the toy model's per-layer embeddings


def _toy_config(size: ToySize, shared: Mapping[str, Any]) -> "PreTrainedConfig":
    """A sliding window, layers that share keys and values, two head sizes, per-layer embeddings."""
    from transformers import Gemma4TextConfig

    return Gemma4TextConfig(
        **shared,
        num_key_value_heads=1,
        head_dim=size.hidden_size // 4,
        global_head_dim=size.hidden_size // 2,
        layer_types=["sliding_attention", "full_attention"] * (size.num_layers // 2),
        sliding_window=64,
        num_kv_shared_layers=size.num_layers // 2,
        hidden_size_per_layer_input=_PER_LAYER_WIDTH,
        vocab_size_per_layer_input=shared["vocab_size"],
        tie_word_embeddings=True,
    )


def _toy_parameters(size: ToySize) -> int:
    block = 3 * size.hidden_size**2 + 3 * size.hidden_size * size.intermediate_size
    per_layer = _PER_LAYER_WIDTH * (size.vocab_size + 3 * size.hidden_size)
    return size.num_layers * (block + per_layer) + size.vocab_size * size.hidden_size


GEMMA4 = Family(
    name="gemma4",
    model_types=("gemma4", "gemma4_text"),
    # Not the `per_layer_*` projections, which feed the per-layer embeddings into a block.
    lora_targets=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    down_projection="mlp.down_proj",
    fits_shared_prompt_decoder=True,
    published_sizes={  # as far as it is public
        "google/gemma-4-E2B": ModelSize(
            5_100_000_000, 10_200_000_000, (6_144,) * 15 + (12_288,) * 20, kv_elements=9_216
        )
    },
    toy=ToyArchitecture(
        SpecialTokens(
            ("<pad>", "<eos>", "<bos>"), bos="<bos>", eos="<eos>", pad="<pad>", adds_bos=True
        ),
        _toy_config,
        _toy_parameters,
    ),
)
