"""GPT-NeoX, the architecture of Pythia."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zerogap.families.family import Family, ModelSize, SpecialTokens, ToyArchitecture, ToySize

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


def _toy_config(size: ToySize, shared: Mapping[str, Any]) -> "PreTrainedConfig":
    """Rotary embeddings on half of each head, and parallel residuals."""
    from transformers import GPTNeoXConfig

    return GPTNeoXConfig(
        **shared,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.5,
        },
        use_parallel_residual=True,
        tie_word_embeddings=False,
    )


def _toy_parameters(size: ToySize) -> int:
    """No gate, no grouped queries and no tied embeddings."""
    block = 4 * size.hidden_size**2 + 2 * size.hidden_size * size.intermediate_size
    return size.num_layers * block + 2 * size.vocab_size * size.hidden_size


GPT_NEOX = Family(
    name="gpt_neox",
    model_types=("gpt_neox",),
    # Not the language-model head, which is called `embed_out` and which LLaMA-Factory's `all`
    # would include.
    lora_targets=("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
    down_projection="mlp.dense_4h_to_h",
    fits_shared_prompt_decoder=True,
    published_sizes={
        "EleutherAI/pythia-12b": ModelSize(
            11_846_072_320, 23_692_144_640, (20_480,) * 36, kv_elements=2 * 36 * 5120
        ),
        "EleutherAI/pythia-1b": ModelSize(
            1_011_781_632, 2_090_741_928, (8_192,) * 16, kv_elements=2 * 16 * 2048
        ),
    },
    toy=ToyArchitecture(
        SpecialTokens(
            ("<|endoftext|>", "<|padding|>"),
            bos="<|endoftext|>",
            eos="<|endoftext|>",
            pad="<|endoftext|>",
            adds_bos=False,
        ),
        _toy_config,
        _toy_parameters,
    ),
)
