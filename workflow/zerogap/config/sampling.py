"""How responses are sampled, under which strategies, and how shortcut neurons are found."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from zerogap.config.errors import mistake
from zerogap.config.section import (
    Dtype,
    Label,
    Name,
    PositiveFloat,
    PositiveFraction,
    PositiveInt,
    Section,
)
from zerogap.strategies.registry import BUILT_IN


class Sampling(Section):
    """How responses are sampled."""

    num_samples: PositiveInt = Field(description="Responses per question (m).")
    temperature: PositiveFloat = Field(description="Sampling temperature τ.")
    top_p: PositiveFraction = Field(description="Nucleus sampling; 1 turns it off.")
    max_new_tokens: PositiveInt = Field(description="Maximum length of a response in tokens.")
    dtype: Dtype = Field(description="Precision of decoding.")
    batch_size: Literal["auto"] | PositiveInt = Field(
        description="Responses decoded together; changes no draw."
    )
    num_shards: PositiveInt = Field(description="Jobs per cell; changes no draw.")
    batch_invariant: bool = Field(description="One question at a time: equal bits, slower.")


class Decoding(Section):
    """What decodes greedy trajectories and responses."""

    engine: Literal["auto", "zerogap", "vllm"] = Field(
        description=(
            "Our engine, or vLLM where it can decode (docs/railcap.md); `auto`: vLLM if a build "
            "for GPUs is installed."
        )
    )


class NeuronLocalisation(Section):
    """How shortcut neurons are found."""

    fraction: PositiveFraction = Field(description="Fraction of the neurons that are patched.")
    group_size: PositiveInt = Field(description="Adjacent neurons scored together.")
    num_questions: PositiveInt = Field(description="Leaked questions used for the causal step.")
    num_shards: PositiveInt = Field(description="Jobs per model; changes no score.")


class StrategyEntry(Section):
    """A mitigation strategy with its parameters."""

    label: Label = Field(description="Name in tables and figures.")
    class_name: str = Field(alias="class", description="Built-in name, or `package.module:Class`.")
    parameters: Mapping[str, Any] = Field(
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
            if ":" not in self.class_name:
                raise mistake(
                    "class",
                    f"is '{self.class_name}'; it must be one of {', '.join(BUILT_IN)}, or "
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
