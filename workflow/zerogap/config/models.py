"""The base models, and how a base is pretrained from scratch."""

from typing import Literal

from pydantic import Field

from zerogap.config.section import (
    MAX_COUNT,
    Fraction,
    Label,
    Name,
    PositiveFloat,
    PositiveInt,
    Section,
    ToyLanguage,
)
from zerogap.config.training import Training

FROM_SCRATCH = "from_scratch"
BASES_FOLDER = "bases"  # in results: converted and prepared bases, which runs share


class Pretraining(Section):
    """Sizes and training of a base model that the workflow pretrains itself."""

    vocab_size: int = Field(ge=300, le=MAX_COUNT, description="Tokens of the tokenizer.")
    hidden_size: int = Field(ge=8, le=MAX_COUNT, description="Hidden size.")
    num_layers: int = Field(ge=2, le=MAX_COUNT, description="Decoder blocks.")
    intermediate_size: int = Field(
        ge=8, le=MAX_COUNT, description="Neurons of a feed-forward block."
    )
    max_steps: PositiveInt = Field(description="Optimiser steps.")
    save_steps: PositiveInt | None = Field(
        default=None, description="Steps between resumable checkpoints; null: none."
    )
    batch_size: PositiveInt = Field(description="Sequences per step.")
    sequence_length: int = Field(ge=16, le=MAX_COUNT, description="Tokens per sequence.")
    learning_rate: PositiveFloat = Field(description="Peak learning rate.")
    warmup_ratio: Fraction = Field(description="Fraction of the steps that warm up.")
    language: ToyLanguage = Field(
        default="plain", description="Of the generated problems and instructions."
    )
    instruction_fraction: Fraction = Field(
        description="Fraction of the documents that are instructions."
    )
    problems_per_document: PositiveInt = Field(
        default=5, description="Maximum number of problems in a document."
    )
    gsm8k: str | None = Field(
        default=None,
        description=(
            "GSM8K's training split to mix in, JSON Lines in OpenAI's format; the questions that "
            "the run uses are left out. null: generated problems only."
        ),
    )
    gsm8k_fraction: Fraction = Field(
        default=0.2,
        description="Probability that a document of GSM8K follows one of generated problems.",
    )


class GgufFile(Section):
    """A model's GGUF file in an installed Python package."""

    package: str = Field(description="Package, by the name that it is installed by.")
    file: str = Field(description="Path of the file next to the package's own folder.")
    end_token: str = Field(description="End and padding token; GGUF files name a chat's.")


class Screening(Section):
    """A choice of test questions that the prepared base can solve.

    A weak model solves most questions never, and such questions say nothing about restoration.
    """

    num_candidates: PositiveInt = Field(
        description="Test questions that are tried; no seed changes them."
    )
    num_samples: PositiveInt = Field(
        description="Responses to each; a question that one of them solves may be drawn."
    )


class Preparation(Section):
    """A training of the base model before the run; clean and contaminated models start from it."""

    name: Name = Field(description="Its folder, which runs share: results/bases/<model>/<name>.")
    benchmark: Name = Field(
        description="Benchmark whose `num_preparation` questions it trains on, without exemplars."
    )
    training: Training = Field(description="Values of `training` that differ.")
    screening: Screening | None = Field(
        default=None,
        description=(
            "The benchmark's test questions are drawn only from those that the prepared base "
            "solves, without exemplars."
        ),
    )


class ModelEntry(Section):
    """A base model; every variant is trained from it."""

    label: Label = Field(description="Name in tables and figures.")
    family: str = Field(
        default="auto",
        description=(
            "Architecture, which decides the LoRA targets and the neurons; `auto` reads it from "
            "the model's config.json."
        ),
    )
    base: str = Field(
        description="Folder, model on the hub, or `from_scratch`: pretrained by the workflow."
    )
    revision: str | None = Field(
        default=None, description="Branch, tag or commit on the hub; null for a folder."
    )
    gguf: GgufFile | None = Field(
        default=None,
        description=(
            "A file that holds `base`, a model on the hub: converted once to safetensors in "
            "bfloat16, without a chat template, instead of a download."
        ),
    )
    chat_template: Literal["ignore"] | None = Field(
        default=None,
        description=(
            "A model whose tokenizer has a chat template is refused, because prompts are plain "
            "text. `ignore` uses it nevertheless: for a base model that ships a template."
        ),
    )
    pretraining: Pretraining | None = Field(
        default=None,
        description="Values of `pretraining` that differ for this model.",
    )
    preparation: Preparation | None = Field(
        default=None,
        description="A training of the base before the run, for a model too weak at the questions.",
    )
