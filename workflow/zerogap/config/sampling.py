"""How responses are sampled, and how shortcut neurons are found."""

from typing import Annotated, Literal

from pydantic import Field

from zerogap.config.section import Dtype, PositiveFloat, PositiveInt, Section


class Sampling(Section):
    """How responses are sampled."""

    num_samples: PositiveInt = Field(description="Responses per question (m).")
    temperature: PositiveFloat = Field(description="Sampling temperature τ.")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(
        description="Nucleus sampling; 1 turns it off."
    )
    max_new_tokens: PositiveInt = Field(description="Maximum length of a response in tokens.")
    dtype: Dtype = Field(description="Precision of decoding.")
    batch_size: Literal["auto"] | PositiveInt = Field(
        description=(
            "Responses decoded together. `auto`: as many as fit into memory, at most 512 on a CPU "
            "and 1,024 on a GPU. It changes no random draw."
        )
    )
    num_shards: PositiveInt = Field(
        description="Jobs that share the questions of a cell. It changes no random draw."
    )
    batch_invariant: bool = Field(
        description=(
            "Decode each question on its own, so that results do not depend on the batch bit for "
            "bit; slower."
        )
    )


class Decoding(Section):
    """What decodes greedy trajectories and responses."""

    engine: Literal["auto", "zerogap", "vllm"] = Field(
        description=(
            "`zerogap`: our engine. `vllm`: vLLM, for all that it can decode (docs/vllm.md). "
            "`auto`: vLLM on a GPU where it is installed, our engine elsewhere."
        )
    )


class NeuronLocalisation(Section):
    """How shortcut neurons are found."""

    fraction: Annotated[float, Field(gt=0, le=1)] = Field(
        description="Fraction of the neurons that are patched."
    )
    group_size: PositiveInt = Field(description="Adjacent neurons scored together.")
    num_questions: PositiveInt = Field(description="Leaked questions used for the causal step.")
    num_shards: PositiveInt = Field(
        description="Jobs that share the neuron groups of a model. It changes no score."
    )
