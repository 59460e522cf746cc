"""The whole configuration of a run."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import Field

from zerogap.config.benchmark import Benchmark, Instructions
from zerogap.config.errors import ConfigError
from zerogap.config.models import (
    Memorisation,
    ModelEntry,
    Preparation,
    Screening,
    Training,
    TrainingKinds,
)
from zerogap.config.sampling import Decoding, NeuronLocalisation, Sampling, StrategyEntry
from zerogap.config.section import MAX_BINS, MAX_RESAMPLES, MAX_SEED, Name, PositiveInt, Section

CLEAN_PREFIX = "clean_"
SectionType = TypeVar("SectionType", bound=Section)


class PrimarySetting(Section):
    """The model and benchmark of Tables 1, 2 and 4 and of Figures 1 and 2."""

    model: str = Field(description="A key of `models`.")
    benchmark: str = Field(description="A key of `benchmarks`.")


class Metrics(Section):
    """The metrics and their confidence intervals."""

    bins: int = Field(ge=1, le=MAX_BINS, description="Strata of the solve probability (B).")
    n_resamples: int = Field(ge=100, le=MAX_RESAMPLES, description="Bootstrap resamples.")
    confidence_level: float = Field(gt=0, lt=1, description="Level of the confidence intervals.")


class Config(Section):
    """The configuration of a run, with all defaults and overrides filled in.

    Benchmarks are read from their files, `training.clean` and `training.contaminated` are complete,
    and a benchmark with `questions_of` has the values of the benchmark that owns its questions.
    """

    run: Name = Field(description="Name of the run: results/<run> and reports/<run>.")
    scale_note: str = Field(
        description=(
            "A sentence on models that are not the paper's; an overlay that sets a base clears it."
        )
    )
    seed: int = Field(ge=0, le=MAX_SEED, description="Of splits, training, draws and bootstrap.")
    offline: bool = Field(description="Whether contacting a hub is an error.")
    max_runtime: PositiveInt = Field(
        description="Minutes, the longest time limit of a job; most jobs resume."
    )
    benchmarks: Mapping[Name, Benchmark] = Field(
        min_length=1, description="Each has a contaminated model per base."
    )
    instructions: Instructions = Field(description="Instruction data mixed into every training.")
    models: Mapping[Name, ModelEntry] = Field(
        min_length=1, description="In the order of the tables."
    )
    training: TrainingKinds = Field(description="LoRA training.")
    memorisation: Memorisation = Field(description="Bounds of clear memorisation.")
    decoding: Decoding = Field(description="What decodes greedy trajectories and responses.")
    sampling: Sampling = Field(description="How responses are sampled.")
    strategies: Mapping[Name, StrategyEntry] = Field(description="In the order of the tables.")
    neuron_localisation: NeuronLocalisation = Field(description="How shortcut neurons are found.")
    primary_setting: PrimarySetting = Field(description="Of Tables 1, 2, 4, Figures 1, 2.")
    ablation: Mapping[Name, StrategyEntry] = Field(
        description="Further strategies in the primary setting, Table 4's first."
    )
    metrics: Metrics = Field(description="The metrics and their confidence intervals.")

    @property
    def all_strategies(self) -> dict[str, StrategyEntry]:
        """All strategies, those of the ablation included."""
        return {**self.strategies, **self.ablation}

    def owner_of(self, benchmark: str) -> str:
        """The benchmark that owns the questions of `benchmark`: itself, or its `questions_of`."""
        return self.benchmarks[benchmark].questions_of or benchmark

    @property
    def paraphrase_of(self) -> dict[str, str]:
        """Each benchmark contaminated with paraphrases, and the one that owns its questions."""
        return {
            name: self.owner_of(name)
            for name, entry in self.benchmarks.items()
            if entry.contamination == "paraphrase"
        }

    @property
    def question_owners(self) -> list[str]:
        """The benchmarks with questions of their own; each has a clean model per base model."""
        return [name for name, entry in self.benchmarks.items() if entry.questions_of is None]

    def clean_variant(self, benchmark: str) -> str:
        """The variant that is the clean model of a benchmark, e.g. `clean_gsm8k` for `pq`."""
        return CLEAN_PREFIX + self.owner_of(benchmark)

    @property
    def clean_variants(self) -> list[str]:
        """The clean variants, one per owner of questions."""
        return [CLEAN_PREFIX + owner for owner in self.question_owners]

    @property
    def variants(self) -> list[str]:
        """All variants that are trained from every base model, the clean ones first."""
        return [*self.clean_variants, *self.benchmarks]

    def benchmark_of(self, variant: str) -> str:
        """The benchmark that a variant is trained on: `gsm8k` for `gsm8k` and `clean_gsm8k`."""
        return variant if variant in self.benchmarks else variant.removeprefix(CLEAN_PREFIX)

    def training_for(self, variant: str) -> Training:
        """The training values of one variant."""
        clean = variant in self.clean_variants
        return self.training.clean if clean else self.training.contaminated

    def preparation_for(self, model: str) -> Preparation:
        """How the base of a model is prepared.

        Raises:
            ConfigError: the configuration does not say.
        """
        return _stated(self.models[model].preparation, f"models.{model}.preparation")

    def screening_for(self, model: str) -> Screening:
        """How the test questions are screened with the prepared base of a model.

        Raises:
            ConfigError: the configuration does not say.
        """
        screening = self.preparation_for(model).screening
        return _stated(screening, f"models.{model}.preparation.screening")


def _stated(section: SectionType | None, key: str) -> SectionType:
    if section is None:
        raise ConfigError(key, "is missing; add the section")
    return section
