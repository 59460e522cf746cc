"""The parameter files: the values that a job making data, models or responses depends on.

Such jobs cost hours, so they are run again when one of their values changes, and not when code or
a comment is edited. Where an edit of the code changes results, raise the version with it, in
:mod:`zerogap.data.version`, :mod:`zerogap.training.version` or :mod:`zerogap.sampling.version`. A
user's own strategy or extraction rule counts with a digest of its file.
"""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from zerogap.config import Config, Training
from zerogap.config.benchmark import Benchmark
from zerogap.config.errors import ConfigError
from zerogap.data.version import DATA_VERSION
from zerogap.pipeline import jobs
from zerogap.plugins import code_digest
from zerogap.sampling.version import SAMPLING_VERSION
from zerogap.training.version import TRAINING_VERSION

CLEAN_STRATEGY = {"class": "identity", "parameters": {}}
GREEDY_SAMPLING = {"max_new_tokens", "dtype", "batch_size", "batch_invariant"}
PREPARATION_SEED = 0  # not the run's: runs share a prepared base
RANKED_STEPS = 10  # tokens per trajectory (Figure 1)
FORCED_RESPONSES = 10  # per question, of the recovery rate

Parameters = dict[str, Any]


def job_parameters(config: Config, job: str) -> Parameters:
    """The content of a job's parameter file.

    Args:
        config: the configuration.
        job: the file's path without its suffix: what the job is on, then its rule, as in
            `data/gsm8k/split_questions` or `llama2/gsm8k/cells/railcap/sample_responses`.
    """
    *place, rule = job.split("/")
    return _PARAMETERS[rule](config, *place)


def _fetch_questions(config: Config, data: str, owner: str) -> Parameters:
    benchmark = config.benchmarks[owner]
    questions = benchmark.questions
    # For local files the section `hub` says what the original data set is.
    sections = {"files", "hub"} if questions.source == "files" else {questions.source}
    return {
        "questions": questions.model_dump(include={"source", *sections}),
        "seed": config.seed,
        "extraction": benchmark.extraction,
        **_own_code("extraction_code", benchmark.extraction),
        "version": DATA_VERSION,
    }


def _split_questions(config: Config, data: str, owner: str) -> Parameters:
    benchmark = config.benchmarks[owner]
    return {
        "num_test": benchmark.num_test,
        "num_leaked": benchmark.num_leaked,
        "num_train": benchmark.num_train,
        "num_preparation": benchmark.num_preparation,
        "extraction": benchmark.extraction,
        **_own_code("extraction_code", benchmark.extraction),
        "version": DATA_VERSION,
        "seed": config.seed,
        "metadata": {"run": config.run, "benchmark": owner} | _source(benchmark.questions),
    }


def _paraphrase_questions(config: Config, data: str, name: str) -> Parameters:
    paraphrases = config.benchmarks[name].paraphrases
    if paraphrases is None:
        raise ConfigError(f"benchmarks.{name}", "leaks verbatim and has no paraphrases")
    options = getattr(paraphrases, paraphrases.method, None)
    return {
        "method": paraphrases.method,
        "on_invalid": paraphrases.on_invalid,
        "options": options and options.model_dump(),
        "seed": config.seed,
        "version": DATA_VERSION,
    }


def _write_questions(config: Config, data: str, name: str) -> Parameters:
    return {"metadata": {"run": config.run, "benchmark": name}}


def _prepare_instructions(config: Config, data: str) -> Parameters:
    instructions = config.instructions
    return _source(instructions) | {
        "num_examples": instructions.num_examples,
        "seed": config.seed,
        "version": DATA_VERSION,
    }


def _prepare_exemplars(config: Config, data: str, owner: str) -> Parameters:
    prompt = config.benchmarks[owner].prompt.model_dump()
    return {
        "source": prompt["exemplars"],
        "num_shots": prompt["num_shots"],
        "version": DATA_VERSION,
    }


def _fetch_base(config: Config, model: str) -> Parameters:
    entry = config.models[model]
    return {"repository": entry.base, "revision": entry.revision or "main"}


def _convert_gguf(config: Config, model: str) -> Parameters:
    gguf = config.models[model].gguf
    if gguf is None:
        raise ConfigError(f"models.{model}", "has no gguf to convert")
    return gguf.model_dump()


def _draw_preparation_questions(config: Config, model: str, name: str) -> Parameters:
    owner = config.preparation_for(model).benchmark
    return _fetch_questions(config, "data", owner) | {
        "num_preparation": config.benchmarks[owner].num_preparation,
        "seed": PREPARATION_SEED,
        "metadata": {"benchmark": owner},
    }


def _draw_screening_questions(config: Config, model: str, name: str) -> Parameters:
    preparation = config.preparation_for(model)
    return _fetch_questions(config, "data", preparation.benchmark) | {
        "num_candidates": config.screening_for(model).num_candidates,
        "seed": PREPARATION_SEED,
        "metadata": {"benchmark": preparation.benchmark},
    }


def _screen_questions(config: Config, model: str, name: str) -> Parameters:
    preparation = config.preparation_for(model)
    sampling = config.sampling.model_dump(exclude={"num_shards"}) | {
        "num_samples": config.screening_for(model).num_samples,
        # Fixed: another rounding would draw other test questions and train all models again.
        "batch_size": "auto",
        "batch_invariant": False,
    }
    return {
        "sampling": sampling,
        "seed": PREPARATION_SEED,
        "benchmark": _benchmark_values(config.benchmarks[preparation.benchmark]),
        "metadata": {"model": model, "variant": name},
        "version": SAMPLING_VERSION,
    }


def _write_preparation_data(config: Config, model: str, name: str) -> Parameters:
    preparation = config.preparation_for(model)
    return {
        "contamination": None,
        "prompt": _prompt(config.benchmarks[preparation.benchmark]),
        "cutoff_len": preparation.training.cutoff_len,
        "version": TRAINING_VERSION,
    }


def _train_preparation(config: Config, model: str, name: str) -> Parameters:
    training = config.preparation_for(model).training
    return {
        "family": config.models[model].family,
        "training": training.model_dump() | {"seed": PREPARATION_SEED},
        "metadata": {"model": model, "variant": name},
        "version": TRAINING_VERSION,
    }


def _merge_preparation(config: Config, model: str, name: str) -> Parameters:
    return _merge(config.preparation_for(model).training)


def _write_training_data(config: Config, model: str, variant: str) -> Parameters:
    benchmark = _benchmark(config, variant)
    return {
        "contamination": None if jobs.is_clean(config, variant) else benchmark.contamination,
        "prompt": _prompt(benchmark),
        "cutoff_len": config.training_for(variant).cutoff_len,
        "version": TRAINING_VERSION,
    }


def _train_lora(config: Config, model: str, variant: str) -> Parameters:
    return {
        "family": config.models[model].family,
        "training": config.training_for(variant).model_dump() | {"seed": config.seed},
        "metadata": {"model": model, "variant": variant},
        "version": TRAINING_VERSION,
    }


def _merge_lora(config: Config, model: str, variant: str) -> Parameters:
    return _merge(config.training_for(variant))


def _merge(training: Training) -> Parameters:
    return {"dtype": "bfloat16" if training.bf16 else "float32", "version": TRAINING_VERSION}


def _decode_greedy(config: Config, model: str, variant: str) -> Parameters:
    return _greedy(config, model, variant) | _engine(config, variant)


def _sample_responses(
    config: Config, model: str, variant: str, cells: str, cell: str
) -> Parameters:
    clean = jobs.is_clean(config, variant)
    return {
        "strategy": CLEAN_STRATEGY if clean else strategy(config, cell),
        "sampling": config.sampling.model_dump(exclude={"num_shards"}),
        "benchmark": _benchmark_values(_benchmark(config, variant)),
        "seed": config.seed,
        "stream": f"clean-{cell}" if clean else "strategies",
        "metadata": {
            **_metadata(config, model, variant),
            "batch" if clean else "strategy": cell,
        },
        "version": SAMPLING_VERSION,
        **_engine(config, variant, cell),
    }


def _localise_neurons(config: Config, model: str, variant: str) -> Parameters:
    return {
        **_greedy(config, model, variant),
        "neuron_localisation": config.neuron_localisation.model_dump(exclude={"num_shards"}),
        "seed": config.seed,
    }


def _rank_clean_tokens(config: Config, model: str, variant: str) -> Parameters:
    return {
        "sampling": config.sampling.model_dump(include={"dtype"}),
        "benchmark": _benchmark_values(_benchmark(config, variant)),
        "steps": RANKED_STEPS,
        "metadata": _metadata(config, model, variant),
        "version": SAMPLING_VERSION,
    }


def _measure_recovery(config: Config, model: str, variant: str) -> Parameters:
    sampling = config.sampling.model_dump(exclude={"num_shards"})
    return {
        "sampling": sampling | {"num_samples": FORCED_RESPONSES},
        "benchmark": _benchmark_values(_benchmark(config, variant)),
        "seed": config.seed,
        "metadata": _metadata(config, model, variant),
        "version": SAMPLING_VERSION,
    }


def strategy(config: Config, name: str) -> Parameters:
    """A strategy's class and parameters, without what concerns the workflow alone."""
    entry = config.all_strategies[name]
    return {
        "class": entry.class_name,
        "parameters": dict(entry.parameters),
        **_own_code("code", entry.class_name),
    }


def _greedy(config: Config, model: str, variant: str) -> Parameters:
    """How our engine decodes greedily."""
    return {
        "sampling": config.sampling.model_dump(include=GREEDY_SAMPLING),
        "benchmark": _benchmark_values(_benchmark(config, variant)),
        "metadata": _metadata(config, model, variant),
        "version": SAMPLING_VERSION,
    }


def _engine(config: Config, variant: str, cell: str = "") -> Parameters:
    """The engine, unless it is ours: that is the default of the jobs and of older files."""
    engine = jobs.engine(config, variant, cell)
    return {} if engine == "zerogap" else {"engine": engine}


def _source(section: Any) -> Parameters:
    """The source of data that is used, with its own options only."""
    options = getattr(section, section.source, None)
    if isinstance(options, BaseModel):
        options = options.model_dump()
    return {"source": section.source, "options": options}


def _benchmark(config: Config, variant: str) -> Benchmark:
    return config.benchmarks[config.benchmark_of(variant)]


def _benchmark_values(benchmark: Benchmark) -> Parameters:
    """How a benchmark's questions are asked and their answers read."""
    return {
        "prompt": _prompt(benchmark),
        "stop": benchmark.stop,
        "extraction": benchmark.extraction,
        **_own_code("extraction_code", benchmark.extraction),
    }


def _own_code(key: str, target: str) -> Parameters:
    """The digest of a user's own code under `key`; nothing for a built-in name."""
    digest = code_digest(target)
    return {} if digest is None else {key: digest}


def _prompt(benchmark: Benchmark) -> Parameters:
    return benchmark.prompt.model_dump(include={"template", "target", "separator"})


def _metadata(config: Config, model: str, variant: str) -> Parameters:
    return {"run": config.run, "model": model, "variant": variant}


_PARAMETERS: dict[str, Callable[..., Parameters]] = {
    function.__name__.removeprefix("_"): function
    for function in (
        _fetch_questions,
        _split_questions,
        _paraphrase_questions,
        _write_questions,
        _prepare_instructions,
        _prepare_exemplars,
        _fetch_base,
        _convert_gguf,
        _draw_preparation_questions,
        _draw_screening_questions,
        _screen_questions,
        _write_preparation_data,
        _train_preparation,
        _merge_preparation,
        _write_training_data,
        _train_lora,
        _merge_lora,
        _decode_greedy,
        _sample_responses,
        _localise_neurons,
        _rank_clean_tokens,
        _measure_recovery,
    )
}
