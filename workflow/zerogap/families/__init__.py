"""Model families: three registered ones, and a generic one.

The configuration names a family or says `auto`, the default. `auto` takes the registered family of
the model's `model_type`; for any other model :mod:`zerogap.families.structure` derives what
training and localisation need from the modules. Importing this package does not import torch.

For every registered family, Llama, Gemma 4 and GPT-NeoX, tests compare the shared-prompt decoder
with the model's own forward pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerogap.errors import InputError
from zerogap.families.folders import read_config, text_values

AUTO = "auto"


@dataclass(frozen=True)
class ModelSize:
    """The size of a model's weights.

    Attributes:
        parameters: number of parameters.
        stored: bytes of its files.
        widths: number of neurons in each layer's feed-forward block.
    """

    parameters: int
    stored: int
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """Everything the project needs to know about a model family.

    Attributes:
        name: the family's, as in `models.<name>.family`.
        model_types: values of `model_type` in a `config.json` that belong to the family.
        lora_targets: names of the linear layers inside the decoder blocks, to which LoRA is
            applied. Never the language-model head and never the towers of other modalities.
        down_projection: name of the feed-forward block's last linear layer, with its parent
            module; the neurons are its input.
    """

    name: str
    model_types: tuple[str, ...]
    lora_targets: tuple[str, ...]
    down_projection: str


_GATED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

FAMILIES = {
    family.name: family
    for family in (
        Family("llama", ("llama",), _GATED, "mlp.down_proj"),
        # Not the `per_layer_*` projections, which feed the per-layer embeddings into a block.
        Family("gemma4", ("gemma4", "gemma4_text"), _GATED, "mlp.down_proj"),
        # Pythia. Not the language-model head, which is called `embed_out` and which
        # LLaMA-Factory's `all` would include.
        Family(
            "gpt_neox",
            ("gpt_neox",),
            ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
            "mlp.dense_4h_to_h",
        ),
    )
}

# Repository → size of the paper's models and those of shipped overlays, so that planning needs no
# network; counted on the published configurations.
HUB_SIZES = {
    "meta-llama/Llama-2-7b-hf": ModelSize(6_738_415_616, 13_476_831_232, (11_008,) * 32),
    "google/gemma-4-E2B": ModelSize(  # as far as it is public
        5_100_000_000, 10_200_000_000, (6_144,) * 15 + (12_288,) * 20
    ),
    "EleutherAI/pythia-12b": ModelSize(11_846_072_320, 23_692_144_640, (20_480,) * 36),
    "EleutherAI/pythia-1b": ModelSize(1_011_781_632, 2_090_741_928, (8_192,) * 16),
    "HuggingFaceTB/SmolLM2-135M-Instruct": ModelSize(134_515_008, 269_060_552, (1_536,) * 30),
    "google/gemma-3-270m": ModelSize(268_098_176, 536_223_056, (2_048,) * 18),
    "Qwen/Qwen2.5-0.5B": ModelSize(494_032_768, 988_097_824, (4_864,) * 24),
    "allenai/OLMo-2-0425-1B": ModelSize(  # stored in float32
        1_484_916_736, 5_939_690_000, (8_192,) * 16
    ),
}


def family_of_folder(folder: str | Path, name: str = AUTO) -> Family:
    """The family of a model folder, which must be the named one if the name is not "auto".

    Raises:
        InputError: no readable `config.json`, a model of another family, or one that the generic
            family does not support.
    """
    config = read_config(folder)
    if name != AUTO and config["model_type"] not in FAMILIES[name].model_types:
        raise InputError(
            f"{folder}/config.json: model_type is '{config['model_type']}', which is not of the "
            f"family '{name}' ({', '.join(FAMILIES[name].model_types)}); set family: {AUTO}"
        )
    return family_from_config(config)


def family_from_config(config: Mapping[str, Any]) -> Family:
    """The family of the model that a `config.json` describes: a registered or the generic one.

    Raises:
        InputError: a model that the generic family does not support.
    """
    for family in FAMILIES.values():
        if (model_type := config.get("model_type")) in family.model_types:
            # Gemma 4's mixtures of experts have the dense models' type.
            if text_values(dict(config)).get("enable_moe_block"):
                raise InputError(
                    f"model type {model_type!r} with enable_moe_block: mixture-of-experts models "
                    "are not supported; choose another model"
                )
            return family
    from zerogap.families import structure  # loads torch

    return structure.family_from_config(config)
