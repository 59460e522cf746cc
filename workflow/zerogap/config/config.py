"""The whole configuration of a run, and what its sections must agree on."""

import unicodedata
from collections.abc import Mapping
from typing import Self, cast

from pydantic import Field, model_validator

from zerogap.config.benchmark import Benchmark, Instructions
from zerogap.config.errors import mistake
from zerogap.config.models import (
    BASES_FOLDER,
    Decoding,
    ModelEntry,
    NeuronLocalisation,
    Preparation,
    Sampling,
    StrategyEntry,
    Training,
    TrainingKinds,
)
from zerogap.config.section import (
    MAX_BINS,
    MAX_RESAMPLES,
    MAX_SEED,
    Name,
    PositiveInt,
    Section,
    Text,
)
from zerogap.strategies.registry import BUILT_IN, NOISE_FLOOR, NOT_STRATEGIES

CLEAN_PREFIX = "clean_"
VLLM_MAX_TEMPERATURE = 2
# Names that have another meaning in results/<run> (docs/workflow.md), or in the tables.
RESERVED_NAMES = {
    "models": ("data", "logs", "rehearsal", "timings"),
    "benchmarks": ("base", "clean"),
    "strategies": (*NOT_STRATEGIES, "batch1", "batch2"),
    "ablation": (*NOT_STRATEGIES, "batch1", "batch2"),
}


class PrimarySetting(Section):
    """The model and benchmark of Tables 1, 2 and 4 and of Figures 1 and 2."""

    model: str = Field(description="A key of `models`.")
    benchmark: str = Field(description="A key of `benchmarks`.")


class Metrics(Section):
    """The metrics and their confidence intervals."""

    bins: int = Field(ge=1, le=MAX_BINS, description="Strata of the solve probability (B).")
    n_resamples: int = Field(ge=100, le=MAX_RESAMPLES, description="Bootstrap resamples.")
    confidence_level: float = Field(
        ge=0.5, le=0.9999, description="Level of the confidence intervals."
    )


class Config(Section):
    """The configuration of a run, with all defaults and overrides filled in.

    Benchmarks are read from their files, `training.clean` and `training.contaminated` are complete,
    and a benchmark with `questions_of` has the values of the benchmark that owns its questions.
    """

    run: Name = Field(description="Name of the run: results/<run> and reports/<run>.")
    scale_note: Text = Field(
        default="",
        description=(
            "A sentence on models that are not the paper's; an overlay that sets a base clears it."
        ),
    )
    seed: int = Field(ge=0, le=MAX_SEED, description="Of splits, training, draws and bootstrap.")
    offline: bool = Field(description="Whether contacting a hub is an error.")
    fork_jobs: bool = Field(
        description="Whether jobs are forked from one process that has imported what they need."
    )
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
    decoding: Decoding = Field(description="What decodes greedy trajectories and responses.")
    sampling: Sampling = Field(description="How responses are sampled.")
    strategies: Mapping[Name, StrategyEntry] = Field(description="In the order of the tables.")
    neuron_localisation: NeuronLocalisation = Field(description="How shortcut neurons are found.")
    primary_setting: PrimarySetting = Field(description="Of Tables 1, 2, 4, Figures 1, 2.")
    ablation: Mapping[Name, StrategyEntry] = Field(
        description="Further strategies in the primary setting, Table 4's first."
    )
    metrics: Metrics = Field(description="The metrics and their confidence intervals.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_names(self)
        _check_labels(self)
        _check_references(self)
        _check_preparations(self)
        _check_decoding(self)
        return self

    @property
    def results(self) -> str:
        """The folder of the run's data and models."""
        return f"results/{self.run}"

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

    def is_clean(self, variant: str) -> bool:
        """Whether a variant is a clean model."""
        return variant not in self.benchmarks

    def training_for(self, variant: str) -> Training:
        """The training values of one variant."""
        return self.training.clean if self.is_clean(variant) else self.training.contaminated

    def preparation_for(self, model: str) -> Preparation:
        """How the base of a model is prepared that has a preparation."""
        return cast(Preparation, self.models[model].preparation)


def config_warnings(config: Config) -> list[str]:
    """Values that are allowed but unlikely to be meant, each with its reason."""
    bins, num_samples = config.metrics.bins, config.sampling.num_samples
    if bins <= num_samples:
        return []
    return [
        f"config: metrics.bins is {bins}, more than sampling.num_samples ({num_samples}): a solve "
        f"probability has only {num_samples + 1} values, so most further strata are empty, and "
        f"SA-PPG weights every value alike. Set metrics.bins to {num_samples} or less, or draw more"
        " samples"
    ]


def vllm_problem(config: Config) -> str:
    """Why vLLM cannot decode this run, with the remedy; empty if it can.

    Strategies of two engines would not be comparable: one engine samples all of them.
    """
    names = [
        name
        for name, entry in config.all_strategies.items()
        if entry.filter_of is None
        and not (entry.class_name in BUILT_IN and BUILT_IN[entry.class_name].runs_in_vllm)
    ]
    if names:
        return (
            f"which cannot sample {', '.join(names)}, and one engine samples all strategies; "
            "remove them, or set decoding.engine: zerogap"
        )
    if config.sampling.batch_invariant:
        return (
            "which does not decode batch-invariantly; set decoding.engine: zerogap or "
            "sampling.batch_invariant: false"
        )
    if config.sampling.temperature > VLLM_MAX_TEMPERATURE:
        return (
            f"which samples at temperatures up to {VLLM_MAX_TEMPERATURE}; set decoding.engine: "
            "zerogap or a lower sampling.temperature"
        )
    return ""


def _check_names(config: Config) -> None:
    if config.run == BASES_FOLDER:
        raise mistake("run", f": results/{config.run} holds what runs share; rename the run")
    for section, reserved in RESERVED_NAMES.items():
        for name in getattr(config, section):
            if name in reserved or (section == "benchmarks" and name.startswith(CLEAN_PREFIX)):
                raise mistake(f"{section}.{name}", ": the name is reserved; rename it")
    for name in config.ablation:
        if name in config.strategies:
            raise mistake(f"ablation.{name}", "has the name of an entry in strategies; rename it")


def _check_labels(config: Config) -> None:
    """Labels that look alike, also those that the tables have of their own."""
    clean = [f"{config.benchmarks[owner].label}, clean" for owner in config.question_owners]
    for sections, taken in (
        (("models",), []),
        (("benchmarks",), clean),
        (("strategies", "ablation"), [*NOT_STRATEGIES.values(), NOISE_FLOOR]),
    ):
        owners = {_looks_of(label): "a row of the tables" for label in taken}
        for section in sections:
            for name, entry in getattr(config, section).items():
                key = f"{section}.{name}"
                if (owner := owners.setdefault(_looks_of(entry.label), key)) != key:
                    raise mistake(
                        key,
                        f"has the label of {owner} ('{entry.label}'); give it a label of its own",
                    )


def _looks_of(label: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())


def _check_references(config: Config) -> None:
    """Names that must be those of other entries."""
    for key, names in (("model", config.models), ("benchmark", config.benchmarks)):
        if (name := getattr(config.primary_setting, key)) not in names:
            raise mistake(
                f"primary_setting.{key}",
                f"is '{name}', which is not in {key}s; it must be one of {', '.join(names)}",
            )
    if "identity" not in config.strategies:
        raise mistake(
            "strategies.identity", "is missing; the other strategies are compared with it"
        )
    sampled = [name for name, entry in config.strategies.items() if entry.filter_of is None]
    for section in ("strategies", "ablation"):
        for name, entry in getattr(config, section).items():
            if entry.filter_of not in (None, *sampled):
                raise mistake(
                    f"{section}.{name}.filter_of",
                    f"is '{entry.filter_of}'; it must be one of the sampled strategies "
                    f"({', '.join(sampled)})",
                )


def _check_preparations(config: Config) -> None:
    for model, entry in config.models.items():
        if entry.preparation is None:
            continue
        key, name = f"models.{model}.preparation", entry.preparation.benchmark
        benchmark = config.benchmarks.get(name)
        if benchmark is None or benchmark.questions_of or not benchmark.num_preparation:
            raise mistake(
                f"{key}.benchmark",
                f"is '{name}'; it must name a benchmark with questions of its own and "
                "num_preparation above 0",
            )
        if benchmark.questions.source == "generated":
            raise mistake(
                f"{key}.benchmark",
                f"is '{name}', whose questions are others for each seed, so none can be set aside "
                "for the preparation; name a benchmark of another source",
            )


def _check_decoding(config: Config) -> None:
    num_shards = config.sampling.num_shards
    for name, benchmark in config.benchmarks.items():
        if num_shards > benchmark.num_test:
            raise mistake(
                "sampling.num_shards",
                f"is {num_shards}, more than benchmarks.{name}.num_test ({benchmark.num_test}); "
                "lower it",
            )
    if config.decoding.engine == "vllm" and (problem := vllm_problem(config)):
        raise mistake("decoding.engine", f"is vllm, {problem}")
