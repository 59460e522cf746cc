"""What is done to models: preparation, LoRA training, sampling under strategies."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from zerogap.config.errors import mistake
from zerogap.config.section import (
    MAX_COUNT,
    MAX_FEW,
    Dtype,
    Few,
    FractionBelowOne,
    JsonValues,
    Label,
    Line,
    Name,
    PositiveFraction,
    PositiveInt,
    Section,
    Word,
)
from zerogap.families import AUTO, FAMILIES
from zerogap.strategies.registry import BUILT_IN, names, target_of

MAX_RANK = 10_000  # also of alpha
BASES_FOLDER = "bases"  # in results: converted and prepared bases, which runs share

Scheduler = Literal[  # those of transformers that need no further arguments
    "cosine",
    "linear",
    "constant",
    "constant_with_warmup",
    "cosine_with_restarts",
    "polynomial",
    "inverse_sqrt",
]


class Lora(Section):
    """The adapter, on all linear layers of the decoder blocks."""

    rank: int = Field(ge=1, le=MAX_RANK, description="Rank r.")
    alpha: int = Field(ge=1, le=MAX_RANK, description="Scaling α.")
    dropout: FractionBelowOne = Field(description="Dropout.")


class Training(Section):
    """All values of one training."""

    lora: Lora = Field(description="The adapter, on all linear layers of the decoder blocks.")
    learning_rate: float = Field(ge=1e-9, le=1, description="Peak learning rate.")
    num_epochs: float = Field(ge=0.01, le=MAX_FEW, description="Passes over the training data.")
    lr_scheduler: Scheduler = Field(description="Learning-rate schedule.")
    warmup_ratio: FractionBelowOne = Field(description="Fraction of the steps that warm up.")
    global_batch_size: PositiveInt = Field(
        description="Examples per step, of all devices together."
    )
    per_device_batch_size: PositiveInt = Field(description="Examples per device at once.")
    num_gpus: Few = Field(description="Devices of one training.")
    bf16: bool = Field(description="Train in bfloat16 instead of float32.")
    device: Literal["auto", "cpu"] = Field(
        description="`auto`: the GPUs; without one the CPU in float32, an error in bfloat16."
    )
    group_by_length: bool = Field(description="Batches of similar lengths, with less padding.")
    cutoff_len: int = Field(
        ge=16,
        le=MAX_COUNT,
        description="Tokens at which an instruction is cut; a longer question is an error.",
    )
    save_steps: PositiveInt | Literal["epoch"] | None = Field(
        description=(
            "Steps between resumable checkpoints; `epoch`: after each, the only choice with "
            "`group_by_length`; null: none."
        )
    )

    @property
    def num_gpus_used(self) -> int:
        """The GPUs that a training takes: none if it runs on the CPU in any case."""
        return 0 if self.device == "cpu" else self.num_gpus

    @model_validator(mode="after")
    def _check_batches(self) -> Self:
        at_once = self.per_device_batch_size * self.num_gpus
        if self.global_batch_size % at_once:
            raise mistake(
                "global_batch_size",
                f"is {self.global_batch_size}; it must be a multiple of "
                f"per_device_batch_size × num_gpus = {at_once}",
            )
        if self.group_by_length and isinstance(self.save_steps, int):
            raise mistake(
                "save_steps",
                f"is {self.save_steps}; with group_by_length, which fixes the order of an epoch at "
                "its start, it must be epoch or null",
            )
        return self


class TrainingKinds(Section):
    """The training of the clean models and that of the contaminated ones.

    In the file both share the values of `training`; the loader fills them in.
    """

    clean: Training = Field(description="Values that differ for the clean models.")
    contaminated: Training = Field(description="Values that differ for the contaminated models.")


class GgufFile(Section):
    """A model's GGUF file in an installed Python package."""

    package: Word = Field(description="Package, by the name that it is installed by.")
    file: Word | Annotated[tuple[Word, ...], Field(strict=False, min_length=1)] = Field(
        description="Path of the file next to the package's own folder, or those of its parts."
    )
    end_token: Word = Field(description="End and padding token; GGUF files name a chat's.")


class Preparation(Section):
    """A training of the base model before the run; clean and contaminated models start from it."""

    name: Name = Field(
        description="Its folder, which runs share: results/bases/<model>/<name>-<hash>."
    )
    benchmark: Name = Field(description="Where its `num_preparation` questions are from.")
    training: Training = Field(description="Values of `training` that differ.")

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name == "base":
            raise mistake("", ": the name is reserved; rename it")
        return name


class ModelEntry(Section):
    """A base model; every variant is trained from it."""

    label: Label = Field(description="Name in tables and figures.")
    family: str = Field(default=AUTO, description="Architecture; `auto`: of its config.json.")
    base: Line = Field(description="Folder, or model on the hub.")
    revision: Word | None = Field(default=None, description="Branch, tag or commit on the hub.")
    gguf: GgufFile | None = Field(
        default=None, description="Convert this file to bfloat16 instead of downloading `base`."
    )
    chat_template: Literal["ignore"] | None = Field(
        default=None,
        description="`ignore` accepts a tokenizer with a chat template, for plain prompts.",
    )
    preparation: Preparation | None = Field(
        default=None, description="A training of a weak base before the run."
    )

    @field_validator("family")
    @classmethod
    def _check_family(cls, family: str) -> str:
        if family not in (AUTO, *FAMILIES):
            names = ", ".join([AUTO, *FAMILIES])
            raise mistake("", f"is {family!r}; it must be one of {names}")
        return family


class Sampling(Section):
    """How responses are sampled."""

    num_samples: PositiveInt = Field(description="Responses per question (m).")
    temperature: float = Field(ge=0.01, le=100, description="Sampling temperature τ.")
    top_p: PositiveFraction = Field(description="Nucleus sampling; 1 turns it off.")
    max_new_tokens: PositiveInt = Field(description="Maximum length of a response in tokens.")
    dtype: Dtype = Field(description="Precision of decoding.")
    batch_size: Literal["auto"] | PositiveInt = Field(
        description="Responses decoded together; changes no draw."
    )
    num_shards: Few = Field(description="Jobs per cell; changes no draw.")
    batch_invariant: bool = Field(description="One question at a time: equal bits, slower.")


class Decoding(Section):
    """What decodes greedy trajectories and responses."""

    engine: Literal["auto", "zerogap", "vllm"] = Field(
        description=(
            "Our engine, or vLLM (docs/railcap.md); `auto`: vLLM if a build for GPUs is "
            "installed when the run first starts and it can sample every strategy."
        )
    )


class NeuronLocalisation(Section):
    """How shortcut neurons are found."""

    fraction: PositiveFraction = Field(description="Fraction of the neurons that are patched.")
    group_size: PositiveInt = Field(description="Adjacent neurons scored together.")
    num_questions: PositiveInt = Field(description="Leaked questions used for the causal step.")
    num_shards: Few = Field(description="Jobs per contaminated model; changes no score.")


class StrategyEntry(Section):
    """A mitigation strategy with its parameters."""

    label: Label = Field(description="Name in tables and figures.")
    class_name: Word = Field(
        alias="class", description="Built-in or installed name, or `package.module:Class`."
    )
    parameters: JsonValues = Field(
        default_factory=dict, description="Keyword arguments of the class."
    )
    filter_of: Name | None = Field(
        default=None, description="The strategy whose responses it filters."
    )
    needs_base_model: bool = Field(default=False, description="Needs the base and its neurons.")

    @model_validator(mode="after")
    def _check_class(self) -> Self:
        built_in = BUILT_IN.get(self.class_name)
        if built_in is None:
            if ":" not in target_of(self.class_name):
                raise mistake(
                    "class",
                    f"is '{self.class_name}'; it must be one of {', '.join(names())}, or "
                    "package.module:Class",
                )
            return self
        for key, needed in (
            ("filter_of", built_in.filters_responses),
            ("needs_base_model", built_in.needs_base_model),
        ):
            if needed != bool(getattr(self, key)):
                problem = f"needs the key {key}" if needed else f"takes no key {key}; remove it"
                raise mistake("", f": class '{self.class_name}' {problem}")
        return self
