"""The registered families, Llama, Gemma 4 and GPT-NeoX, and the sizes of models on the hub.

For every family here, tests compare the shared-prompt decoder with the model's own forward pass.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zerogap.families.family import Family, ModelSize, SpecialTokens, ToyArchitecture, ToySize

if TYPE_CHECKING:  # the registry must import without torch
    from transformers import PreTrainedConfig

_GATED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_END = "<|endoftext|>"  # of GPT-NeoX
_PER_LAYER_WIDTH = 16  # of Gemma's per-layer embeddings in the toy model


def _llama(size: ToySize, shared: Mapping[str, Any]) -> "PreTrainedConfig":
    """Grouped-query attention with two key/value heads."""
    from transformers import LlamaConfig

    return LlamaConfig(**shared, num_key_value_heads=2, tie_word_embeddings=True)


def _llama_parameters(size: ToySize) -> int:
    block = 3 * size.hidden_size**2 + 3 * size.hidden_size * size.intermediate_size
    return size.num_layers * block + size.vocab_size * size.hidden_size


def _gemma4(size: ToySize, shared: Mapping[str, Any]) -> "PreTrainedConfig":
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


def _gemma4_parameters(size: ToySize) -> int:
    """A Llama with per-layer embeddings."""
    per_layer = _PER_LAYER_WIDTH * (size.vocab_size + 3 * size.hidden_size)
    return _llama_parameters(size) + size.num_layers * per_layer


def _gpt_neox(size: ToySize, shared: Mapping[str, Any]) -> "PreTrainedConfig":
    """Rotary embeddings on half of each head, and parallel residuals."""
    from transformers import GPTNeoXConfig

    rope = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}
    return GPTNeoXConfig(
        **shared, rope_parameters=rope, use_parallel_residual=True, tie_word_embeddings=False
    )


def _gpt_neox_parameters(size: ToySize) -> int:
    """No gate, no grouped queries and no tied embeddings."""
    block = 4 * size.hidden_size**2 + 2 * size.hidden_size * size.intermediate_size
    return size.num_layers * block + 2 * size.vocab_size * size.hidden_size


_FAMILIES = (
    Family(
        name="llama",
        model_types=("llama",),
        lora_targets=_GATED,
        down_projection="mlp.down_proj",
        toy=ToyArchitecture(
            SpecialTokens(("<unk>", "<s>", "</s>"), "<s>", "</s>", "</s>", adds_bos=True),
            _llama,
            _llama_parameters,
        ),
    ),
    Family(
        name="gemma4",
        model_types=("gemma4", "gemma4_text"),
        # Not the `per_layer_*` projections, which feed the per-layer embeddings into a block.
        lora_targets=_GATED,
        down_projection="mlp.down_proj",
        toy=ToyArchitecture(
            SpecialTokens(("<pad>", "<eos>", "<bos>"), "<bos>", "<eos>", "<pad>", adds_bos=True),
            _gemma4,
            _gemma4_parameters,
        ),
    ),
    Family(
        name="gpt_neox",  # Pythia
        model_types=("gpt_neox",),
        # Not the language-model head, which is called `embed_out` and which LLaMA-Factory's `all`
        # would include.
        lora_targets=("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
        down_projection="mlp.dense_4h_to_h",
        toy=ToyArchitecture(
            SpecialTokens((_END, "<|padding|>"), _END, _END, _END, adds_bos=False),
            _gpt_neox,
            _gpt_neox_parameters,
        ),
    ),
)
FAMILIES = {family.name: family for family in _FAMILIES}

# Repository → size, so that planning needs no network; counted on the published configurations.
HUB_SIZES = {
    "meta-llama/Llama-2-7b-hf": ModelSize(
        6_738_415_616, 13_476_831_232, (11_008,) * 32, kv_elements=2 * 32 * 4096
    ),
    "google/gemma-4-E2B": ModelSize(  # as far as it is public
        5_100_000_000, 10_200_000_000, (6_144,) * 15 + (12_288,) * 20, kv_elements=9_216
    ),
    "EleutherAI/pythia-12b": ModelSize(
        11_846_072_320, 23_692_144_640, (20_480,) * 36, kv_elements=2 * 36 * 5120
    ),
    "EleutherAI/pythia-1b": ModelSize(
        1_011_781_632, 2_090_741_928, (8_192,) * 16, kv_elements=2 * 16 * 2048
    ),
    "HuggingFaceTB/SmolLM2-135M-Instruct": ModelSize(
        134_515_008, 269_060_552, (1_536,) * 30, kv_elements=2 * 30 * 3 * 64
    ),
    "Qwen/Qwen2.5-0.5B": ModelSize(
        494_032_768, 988_097_824, (4_864,) * 24, kv_elements=2 * 24 * 2 * 64
    ),
    "allenai/OLMo-2-0425-1B": ModelSize(  # stored in float32
        1_484_916_736, 5_939_690_000, (8_192,) * 16, kv_elements=2 * 16 * 2048
    ),
}
