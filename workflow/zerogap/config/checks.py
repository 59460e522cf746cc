"""Checks across the sections of a configuration; a section's own validators check the section."""

from collections.abc import Mapping
from typing import Any

from zerogap.config.config import CLEAN_PREFIX, Config
from zerogap.config.errors import ConfigError
from zerogap.config.models import BASES_FOLDER, Preparation
from zerogap.strategies.registry import ALL_ZERO

# Names that have another meaning in results/<run> (docs/workflow.md), or in the tables.
RESERVED_NAMES = {
    "models": ("data", "logs", "rehearsal", "timings"),
    "benchmarks": ("base", "clean"),
    "strategies": (ALL_ZERO, "clean", "clean_batch2"),
    "ablation": (ALL_ZERO, "clean", "clean_batch2"),
}


def check(config: Config) -> None:
    """Check what no section can say alone: names, and values that must fit each other.

    Raises:
        ConfigError: names the key and the remedy.
    """
    _check_names(config)
    for sections in (("models",), ("benchmarks",), ("strategies", "ablation")):
        _check_labels({section: getattr(config, section) for section in sections})
    for name, model in config.models.items():
        if model.preparation is not None:
            _check_preparation(f"models.{name}.preparation", model.preparation, config)
    _check_decoding(config)
    _check_strategies(config)
    for key, names in (("model", config.models), ("benchmark", config.benchmarks)):
        if (name := getattr(config.primary_setting, key)) not in names:
            raise ConfigError(
                f"primary_setting.{key}",
                f"is '{name}', which is not in {key}s; it must be one of {', '.join(names)}",
            )


def config_warnings(config: Config) -> list[str]:
    """Values that are allowed but unlikely to be meant, each with its reason."""
    bins, num_samples = config.metrics.bins, config.sampling.num_samples
    if bins <= num_samples:
        return []
    return [
        f"config: metrics.bins is {bins}, more than sampling.num_samples ({num_samples}): a solve "
        f"probability has only {num_samples + 1} values, so no stratum holds two of them, most "
        "further strata are empty, and SA-PPG weights every value alike instead of smoothing over "
        f"neighbours. Set metrics.bins to {num_samples} or less, or draw more samples"
    ]


def _check_names(config: Config) -> None:
    if config.run == BASES_FOLDER:
        raise ConfigError("run", f": results/{config.run} holds what runs share; rename the run")
    for section, reserved in RESERVED_NAMES.items():
        for name in getattr(config, section):
            if name in reserved:
                raise ConfigError(f"{section}.{name}", ": the name is reserved; rename it")
    for name in config.benchmarks:
        if name.startswith(CLEAN_PREFIX):
            raise ConfigError(
                f"benchmarks.{name}", ": the name is reserved for clean models; rename it"
            )
    for name in config.ablation:
        if name in config.strategies:
            raise ConfigError(
                f"ablation.{name}", "has the name of an entry in strategies; rename it"
            )


def _check_labels(sections: Mapping[str, Mapping[str, Any]]) -> None:
    owners: dict[str, str] = {}
    for section, entries in sections.items():
        for name, entry in entries.items():
            key = f"{section}.{name}"
            if (owner := owners.setdefault(entry.label, key)) != key:
                raise ConfigError(
                    key, f"has the label of {owner} ('{entry.label}'); give it a label of its own"
                )


def _check_preparation(key: str, preparation: Preparation, config: Config) -> None:
    name = preparation.benchmark
    benchmark = config.benchmarks.get(name)
    if benchmark is None or benchmark.questions_of or not benchmark.num_preparation:
        raise ConfigError(
            f"{key}.benchmark",
            f"is '{name}'; it must name a benchmark with questions of its own and num_preparation "
            "above 0",
        )
    if benchmark.questions.source == "generated":
        raise ConfigError(
            f"{key}.benchmark",
            f"is '{name}', whose questions are generated: each seed makes others, so none can be "
            "set aside for the preparation; name a benchmark of another source",
        )
    screening = preparation.screening
    if screening is not None and screening.num_candidates < benchmark.num_test:
        raise ConfigError(
            f"{key}.screening.num_candidates",
            f"is {screening.num_candidates}, fewer than benchmarks.{name}.num_test "
            f"({benchmark.num_test}); raise it",
        )


def _check_decoding(config: Config) -> None:
    num_shards = config.sampling.num_shards
    for name, benchmark in config.benchmarks.items():
        if num_shards > benchmark.num_test:
            raise ConfigError(
                "sampling.num_shards",
                f"is {num_shards}, more than benchmarks.{name}.num_test ({benchmark.num_test}); "
                "lower it",
            )
    if config.decoding.engine == "vllm" and config.sampling.batch_invariant:
        raise ConfigError(
            "decoding.engine",
            "is vllm, which does not decode batch-invariantly; set decoding.engine: zerogap or "
            "sampling.batch_invariant: false",
        )


def _check_strategies(config: Config) -> None:
    if "identity" not in config.strategies:
        raise ConfigError(
            "strategies.identity", "is missing; the other strategies are compared with it"
        )
    sampled = [name for name, entry in config.strategies.items() if entry.filter_of is None]
    for section in ("strategies", "ablation"):
        for name, entry in getattr(config, section).items():
            if entry.filter_of not in (None, *sampled):
                raise ConfigError(
                    f"{section}.{name}.filter_of",
                    f"is '{entry.filter_of}'; it must be one of the sampled strategies "
                    f"({', '.join(sampled)})",
                )
