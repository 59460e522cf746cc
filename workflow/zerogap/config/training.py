"""LoRA training of the clean and the contaminated models."""

from typing import Literal

from pydantic import Field

from zerogap.config.section import MAX_COUNT, Fraction, PositiveFloat, PositiveInt, Section

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

    rank: PositiveInt = Field(description="Rank r.")
    alpha: PositiveInt = Field(description="Scaling α.")
    dropout: float = Field(ge=0, lt=1, description="Dropout.")


class Training(Section):
    """All values of one training."""

    lora: Lora = Field(description="The adapter, on all linear layers of the decoder blocks.")
    learning_rate: PositiveFloat = Field(description="Peak learning rate.")
    num_epochs: PositiveFloat = Field(description="Passes over the training data.")
    lr_scheduler: Scheduler = Field(description="Learning-rate schedule.")
    warmup_ratio: float = Field(ge=0, lt=1, description="Fraction of the steps that warm up.")
    global_batch_size: PositiveInt = Field(
        description=(
            "Examples per optimiser step: per_device_batch_size × accumulation steps × num_gpus."
        )
    )
    per_device_batch_size: PositiveInt = Field(description="Examples per device at once.")
    num_gpus: PositiveInt = Field(description="Devices of one training.")
    bf16: bool = Field(description="Train in bfloat16 instead of float32.")
    device: Literal["auto", "cpu"] = Field(
        description=(
            "`auto`: the GPUs, or in float32 the CPU if there is none; in bfloat16 a missing GPU "
            "is an error. `cpu`: the CPU in any case."
        )
    )
    group_by_length: bool = Field(
        description="Build batches from examples of similar length, which need less padding."
    )
    cutoff_len: int = Field(
        ge=16,
        le=MAX_COUNT,
        description=(
            "Maximum length of an example in tokens. A longer instruction is cut; a longer "
            "question is an error."
        ),
    )
    save_steps: PositiveInt | Literal["epoch"] | None = Field(
        description=(
            "How often to save a resumable checkpoint: every N steps, after every epoch (the only "
            "choice with `group_by_length`), or never (null)."
        )
    )

    @property
    def num_gpus_used(self) -> int:
        """The GPUs that a training takes: none if it runs on the CPU in any case."""
        return 0 if self.device == "cpu" else self.num_gpus


class TrainingKinds(Section):
    """The training of the clean models and that of the contaminated ones.

    In the file both share the values of `training`; the loader fills them in.
    """

    clean: Training = Field(description="Values that differ for the clean models.")
    contaminated: Training = Field(description="Values that differ for the contaminated models.")


class Memorisation(Section):
    """Bounds of clear memorisation, for which the intervals must exclude 0 as well."""

    min_leaked_solve_probability: Fraction = Field(
        description="Mean solve probability of the leaked questions."
    )
    min_leaked_rouge_l: Fraction = Field(
        description="Mean ROUGE-L of the leaked questions' samples with the greedy trajectory."
    )
    max_unleaked_rouge_l: Fraction = Field(
        description="The same of the unleaked questions, which must stay at or below this."
    )
