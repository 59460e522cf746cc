"""The registered families, Llama, Gemma 4 and GPT-NeoX, and the sizes of models on the hub.

For every family here, tests compare the shared-prompt decoder with the model's own forward pass.
"""

from zerogap.families.family import Family, ModelSize

_GATED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

_FAMILIES = (
    Family(
        name="llama",
        model_types=("llama",),
        lora_targets=_GATED,
        down_projection="mlp.down_proj",
    ),
    Family(
        name="gemma4",
        model_types=("gemma4", "gemma4_text"),
        # Not the `per_layer_*` projections, which feed the per-layer embeddings into a block.
        lora_targets=_GATED,
        down_projection="mlp.down_proj",
    ),
    Family(
        name="gpt_neox",  # Pythia
        model_types=("gpt_neox",),
        # Not the language-model head, which is called `embed_out` and which LLaMA-Factory's `all`
        # would include.
        lora_targets=("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
        down_projection="mlp.dense_4h_to_h",
    ),
)
FAMILIES = {family.name: family for family in _FAMILIES}

# Repository → size, so that planning needs no network; counted on the published configurations.
HUB_SIZES = {
    "meta-llama/Llama-2-7b-hf": ModelSize(6_738_415_616, 13_476_831_232, (11_008,) * 32),
    "google/gemma-4-E2B": ModelSize(  # as far as it is public
        5_100_000_000, 10_200_000_000, (6_144,) * 15 + (12_288,) * 20
    ),
    "EleutherAI/pythia-12b": ModelSize(11_846_072_320, 23_692_144_640, (20_480,) * 36),
    "EleutherAI/pythia-1b": ModelSize(1_011_781_632, 2_090_741_928, (8_192,) * 16),
    "HuggingFaceTB/SmolLM2-135M-Instruct": ModelSize(134_515_008, 269_060_552, (1_536,) * 30),
    "Qwen/Qwen2.5-0.5B": ModelSize(494_032_768, 988_097_824, (4_864,) * 24),
    "allenai/OLMo-2-0425-1B": ModelSize(  # stored in float32
        1_484_916_736, 5_939_690_000, (8_192,) * 16
    ),
}
