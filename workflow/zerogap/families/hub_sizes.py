"""Sizes of models on the hub that have no family of their own, so that planning needs no network.

The parameters are those of the published configurations, counted with `transformers`.
"""

from zerogap.families.family import ModelSize

HUB_SIZES = {
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
