"""What the types of single values cannot say: checks of a whole configuration."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

from zerogap.config.benchmark import Benchmark, Instructions, Paraphrases
from zerogap.config.config import CLEAN_PREFIX, Config
from zerogap.config.errors import ConfigError
from zerogap.config.models import BASES_FOLDER, FROM_SCRATCH, Preparation
from zerogap.config.strategies import StrategyEntry
from zerogap.config.training import Training
from zerogap.data import extraction
from zerogap.errors import InputError
from zerogap.families import FAMILIES, toy_architecture
from zerogap.strategies.registry import ALL_ZERO, BUILT_IN

# Names that have another meaning in results/<run> (docs/workflow.md), or in the tables.
RESERVED_NAMES = {
    "models": ("data", "logs", "parameters", "rehearsal", "timings"),
    "benchmarks": ("base", "clean"),
    "strategies": (ALL_ZERO, "clean", "clean_batch2"),
    "ablation": (ALL_ZERO, "clean", "clean_batch2"),
}


def check(config: Config) -> None:
    """Check a configuration for what the types of single values cannot say.

    Raises:
        ConfigError: names the key and the remedy.
    """
    for name, benchmark in config.benchmarks.items():
        _check_benchmark(f"benchmarks.{name}", name, benchmark)
    _check_names(config)
    _check_instructions(config.instructions)
    _check_models(config)
    _check_training(config)
    _check_shards(config)
    _check_engine(config)
    _check_strategies(config)
    _check_primary_setting(config)


def _check_names(config: Config) -> None:
    if config.run == BASES_FOLDER:
        raise ConfigError("run", f": results/{config.run} holds what runs share; rename the run")
    for name, model in config.models.items():
        if model.preparation is not None and model.preparation.name == "base":
            raise ConfigError(
                f"models.{name}.preparation.name", ": the name is reserved; rename it"
            )
    for section, reserved in RESERVED_NAMES.items():
        if taken := sorted(set(getattr(config, section)) & set(reserved)):
            raise ConfigError(f"{section}.{taken[0]}", ": the name is reserved; rename it")
    for sections in (("models",), ("benchmarks",), ("strategies", "ablation")):
        _check_labels({section: getattr(config, section) for section in sections})


def _check_labels(sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that no two entries with different names have the same label."""
    owners: dict[str, str] = {}
    for section, entries in sections.items():
        for name, entry in entries.items():
            key = f"{section}.{name}"
            owner = owners.setdefault(entry.label, key)
            if owner.partition(".")[2] != name:
                raise ConfigError(
                    key,
                    f"has the label of {owner} ('{entry.label}'); give each entry of "
                    f"{' and '.join(sections)} a label of its own",
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


def _check_benchmark(key: str, name: str, benchmark: Benchmark) -> None:
    if name.startswith(CLEAN_PREFIX):
        raise ConfigError(key, ": the name is reserved for clean models; rename it")
    if benchmark.contamination == "paraphrase" and benchmark.paraphrases is None:
        raise ConfigError(f"{key}.paraphrases", "is missing; contamination: paraphrase needs it")
    if benchmark.contamination == "verbatim" and benchmark.paraphrases is not None:
        raise ConfigError(
            f"{key}.paraphrases",
            "has no effect with contamination: verbatim; remove it, or "
            "set contamination: paraphrase",
        )
    if benchmark.paraphrases is not None:
        _check_paraphrases(f"{key}.paraphrases", benchmark.paraphrases)
    if benchmark.questions_of is None:
        _check_split(key, benchmark)
        _check_questions(f"{key}.questions", benchmark)
        check_prompt(f"{key}.prompt", benchmark)
        with _mistake_in(f"{key}.extraction"):
            extraction.extraction_rule(benchmark.extraction)


@contextlib.contextmanager
def _mistake_in(key: str) -> Iterator[None]:
    """Report an error that begins with the last part of a key under the whole key."""
    try:
        yield
    except InputError as error:
        field = key.rpartition(".")[2]
        raise ConfigError(key, str(error).removeprefix(field).lstrip()) from error


def _check_split(key: str, benchmark: Benchmark) -> None:
    if benchmark.num_leaked >= benchmark.num_test:
        raise ConfigError(
            f"{key}.num_leaked",
            f"is {benchmark.num_leaked}; it must be below "
            f"{key}.num_test ({benchmark.num_test}), so that unleaked questions remain",
        )
    questions = benchmark.questions
    if questions.source in ("generated", "gsm_symbolic"):
        sizes = getattr(questions, questions.source)
        needed = {"test": benchmark.num_test, "train": benchmark.num_train}
        names = {split: f"{key}.num_{split}" for split in needed}
        if benchmark.num_preparation:
            needed["train"] += benchmark.num_preparation
            names["train"] += " + num_preparation"
        for split, number in needed.items():
            if sizes is not None and getattr(sizes, f"num_{split}") < number:
                raise ConfigError(
                    f"{key}.questions.{questions.source}.num_{split}",
                    f"is {getattr(sizes, f'num_{split}')}, fewer than {names[split]} ({number}); "
                    "raise it",
                )


def _check_questions(key: str, benchmark: Benchmark) -> None:
    questions = benchmark.questions
    generated = questions.generated
    if generated and generated.step_weights is not None and not any(generated.step_weights):
        raise ConfigError(f"{key}.generated.step_weights", "has no weight above 0")
    if getattr(questions, questions.source) is None:
        raise ConfigError(f"{key}.{questions.source}", f"is missing; {key}.source needs it")
    if questions.source == "files" and questions.files is not None:
        for split in ("train", "test"):
            path = getattr(questions.files, split)
            if path is None:
                raise ConfigError(
                    f"{key}.files.{split}",
                    "is not set; give the path of a JSON Lines file in OpenAI's GSM8K format",
                )
            if not _is_readable(path):
                raise ConfigError(
                    f"{key}.files.{split}",
                    f"is {path!r}, which does not exist or is not "
                    "readable; give the path of a JSON Lines file in OpenAI's GSM8K format",
                )


def check_prompt(key: str, benchmark: Benchmark) -> None:
    """Check the placeholders of a benchmark's prompt.

    Raises:
        ConfigError: names the field below `key` and its placeholders.
    """
    for field, placeholders in (("template", ["question"]), ("target", ["rationale", "answer"])):
        text = getattr(benchmark.prompt, field)
        try:
            fields = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
            text.format(**dict.fromkeys(placeholders, ""))
        except (KeyError, IndexError, ValueError):
            fields = set()
        if placeholders[-1] not in fields:
            names = " and ".join(f"{{{name}}}" for name in placeholders)
            raise ConfigError(
                f"{key}.{field}",
                f"is {text!r}; its placeholders must be {names} (write {{{{ and }}}} for braces)",
            )


def _check_paraphrases(key: str, paraphrases: Paraphrases) -> None:
    method = paraphrases.method
    if method != "rules" and getattr(paraphrases, method) is None:
        raise ConfigError(f"{key}.{method}", f"is missing; {key}.method needs it")
    if method == "local" and paraphrases.local is not None and not paraphrases.local.model:
        raise ConfigError(
            f"{key}.local.model",
            "is not set; name a folder, or a model on the hub, with a chat template",
        )


def _check_instructions(instructions: Instructions) -> None:
    if instructions.source == "hub" and instructions.hub is None:
        raise ConfigError("instructions.hub", "is missing; instructions.source needs it")
    if instructions.source == "files" and not _is_readable(instructions.files):
        raise ConfigError(
            "instructions.files",
            f"is {instructions.files!r}, which does not exist or is not readable",
        )


def _is_readable(path: str | None) -> bool:
    return path is not None and Path(path).is_file() and os.access(path, os.R_OK)


def _check_models(config: Config) -> None:
    for name, entry in config.models.items():
        if entry.family not in ("auto", *FAMILIES):
            raise ConfigError(
                f"models.{name}.family",
                f"is {entry.family!r}; it must be one of {', '.join(['auto', *FAMILIES])}",
            )
        if entry.base == FROM_SCRATCH:
            config.pretraining_for(name)
            with _mistake_in(f"models.{name}.family"):
                toy_architecture(entry.family)
        _check_preparation(f"models.{name}.preparation", entry.preparation, config)
        gsm8k = entry.pretraining.gsm8k if entry.pretraining else None
        if gsm8k is not None and not _is_readable(gsm8k):
            raise ConfigError(
                "pretraining.gsm8k",
                f"is {gsm8k!r}, which does not exist or is not "
                "readable; give the path of a JSON Lines file in OpenAI's GSM8K format, or null",
            )


def _check_preparation(key: str, preparation: Preparation | None, config: Config) -> None:
    if preparation is None:
        return
    benchmark = config.benchmarks.get(preparation.benchmark)
    if benchmark is None or benchmark.questions_of or not benchmark.num_preparation:
        raise ConfigError(
            f"{key}.benchmark",
            f"is '{preparation.benchmark}'; it must name a benchmark with "
            "questions of its own and num_preparation above 0",
        )
    if benchmark.questions.source == "generated":
        raise ConfigError(
            f"{key}.benchmark",
            f"is '{preparation.benchmark}', whose questions are generated: each seed makes others, "
            "so none can be set aside for the preparation; name a benchmark of another source",
        )
    screening = preparation.screening
    if screening is not None and screening.num_candidates < benchmark.num_test:
        raise ConfigError(
            f"{key}.screening.num_candidates",
            f"is {screening.num_candidates}, fewer than "
            f"benchmarks.{preparation.benchmark}.num_test ({benchmark.num_test}); raise it",
        )
    _check_batches(f"{key}.training", preparation.training)


def _check_training(config: Config) -> None:
    for kind in ("clean", "contaminated"):
        _check_batches("training", getattr(config.training, kind), f" ({kind} models)")


def _check_batches(key: str, training: Training, models: str = "") -> None:
    at_once = training.per_device_batch_size * training.num_gpus
    if training.global_batch_size % at_once:
        raise ConfigError(
            f"{key}.global_batch_size",
            f"is {training.global_batch_size}; it must be "
            f"a multiple of per_device_batch_size × num_gpus = {at_once}{models}",
        )
    if training.group_by_length and isinstance(training.save_steps, int):
        raise ConfigError(
            f"{key}.save_steps",
            f"is {training.save_steps}; with group_by_length, "
            "which fixes the order of an epoch at its start, it must be epoch or null",
        )


def _check_shards(config: Config) -> None:
    num_shards = config.sampling.num_shards
    for name, benchmark in config.benchmarks.items():
        if num_shards > benchmark.num_test:
            raise ConfigError(
                "sampling.num_shards",
                f"is {num_shards}, more than "
                f"benchmarks.{name}.num_test ({benchmark.num_test}); lower it",
            )


def _check_engine(config: Config) -> None:
    if config.decoding.engine == "vllm" and config.sampling.batch_invariant:
        raise ConfigError(
            "decoding.engine",
            "is vllm, which does not decode batch-invariantly; set "
            "decoding.engine: zerogap or sampling.batch_invariant: false",
        )


def _check_strategies(config: Config) -> None:
    if "identity" not in config.strategies:
        raise ConfigError(
            "strategies.identity", "is missing; the other strategies are compared with it"
        )
    if shared := sorted(set(config.strategies) & set(config.ablation)):
        raise ConfigError(
            f"ablation.{shared[0]}", "has the name of an entry in strategies; rename it"
        )
    for section in ("strategies", "ablation"):
        for name, entry in getattr(config, section).items():
            _check_strategy(f"{section}.{name}", entry, config)


def _check_strategy(key: str, entry: StrategyEntry, config: Config) -> None:
    if entry.class_name in BUILT_IN:
        built_in = BUILT_IN[entry.class_name]
        for field, needed in (
            ("filter_of", built_in.filters_responses),
            ("needs_base_model", built_in.needs_base_model),
        ):
            if needed != bool(getattr(entry, field)):
                problem = f"needs the key {field}" if needed else f"takes no key {field}; remove it"
                raise ConfigError(key, f": class '{entry.class_name}' {problem}")
    elif ":" not in entry.class_name:
        raise ConfigError(
            f"{key}.class",
            f"is '{entry.class_name}'; it must be one of "
            f"{', '.join(BUILT_IN)}, or package.module:Class",
        )
    source = entry.filter_of
    if source is not None:
        sampled = [k for k, v in config.strategies.items() if v.filter_of is None]
        if source not in sampled:
            raise ConfigError(
                f"{key}.filter_of",
                f"is '{source}'; it must be one of the sampled strategies ({', '.join(sampled)})",
            )


def _check_primary_setting(config: Config) -> None:
    for key, section in (("model", "models"), ("benchmark", "benchmarks")):
        name, names = getattr(config.primary_setting, key), getattr(config, section)
        if name not in names:
            raise ConfigError(
                f"primary_setting.{key}",
                f"is '{name}', which is not in {section}; it must be one of {', '.join(names)}",
            )
