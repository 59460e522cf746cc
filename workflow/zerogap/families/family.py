"""The fields that describe a model family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the registry must import without torch
    from transformers import PreTrainedConfig


@dataclass(frozen=True)
class ModelSize:
    """The size of a model's weights.

    Attributes:
        parameters: number of parameters.
        stored: bytes of its files.
        widths: number of neurons in each layer's feed-forward block.
        kv_elements: numbers that the cache keeps per token: keys and values of all layers.
    """

    parameters: int
    stored: int
    widths: tuple[int, ...]
    kv_elements: int


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a family's toy tokenizer.

    Attributes:
        tokens: all special tokens; their ids are their positions here.
        pad: the token that fills up batches.
        adds_bos: whether the tokenizer puts the BOS token before a text by itself.
    """

    tokens: tuple[str, ...]
    bos: str
    eos: str
    pad: str
    adds_bos: bool


@dataclass(frozen=True)
class ToySize:
    """The size of a toy model, in the words of the configuration's `pretraining` section."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    intermediate_size: int

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "ToySize":
        """The size that a `pretraining` section states; its other keys are ignored."""
        return cls(**{name: settings[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class ToyArchitecture:
    """How a toy model of the family is built from scratch.

    Attributes:
        config: (size, settings that all families share) → the model configuration. The shared
            settings are keyword arguments of the family's configuration class.
        parameters: size → number of parameters, accurate to a few per cent.
    """

    special_tokens: SpecialTokens
    config: "Callable[[ToySize, Mapping[str, Any]], PreTrainedConfig]"
    parameters: Callable[[ToySize], int]

    def size(self, size: ToySize) -> ModelSize:
        """The weights of such a model, which are stored in float16."""
        parameters = self.parameters(size)
        widths = (size.intermediate_size,) * size.num_layers
        # With one key/value head per query head; fewer make it smaller.
        kv_elements = 2 * size.num_layers * size.hidden_size
        return ModelSize(parameters, 2 * parameters, widths, kv_elements)


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
        toy: how the family's toy model is built; None if there is none.
    """

    name: str
    model_types: tuple[str, ...]
    lora_targets: tuple[str, ...]
    down_projection: str
    toy: ToyArchitecture | None = None
