"""The fields that describe a model family."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the registry must import without torch
    pass


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
