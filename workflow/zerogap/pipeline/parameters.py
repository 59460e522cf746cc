"""The values that a job making data, models or responses depends on.

A job gets them as JSON on its command line, with a digest of what its code means. Snakemake records
both and runs the job again if one of them has changed. Such jobs cost hours: a comment or a value
of `UNRECORDED`, which a job gets separately, reruns none of them.
"""

import functools
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from zerogap.config import Config
from zerogap.config.benchmark import Benchmark
from zerogap.data.extraction import rule_module
from zerogap.io import meaning
from zerogap.io.digests import folder_digest, value_digest
from zerogap.pipeline import jobs
from zerogap.strategies.registry import BUILT_IN, target_of

SCRIPTS = Path(__file__).parents[2] / "scripts"
SHARED_SCRIPTS = {  # rule → its script, unless they have the same name
    "write_preparation_data": "write_training_data",
    "train_preparation": "train_lora",
    "merge_preparation": "merge_lora",
}
OTHER_ENGINE = "zerogap.sampling.vllm_sampler"  # run by the jobs that name an engine only
DIGESTS = Path(".snakemake/zerogap/digests.json")  # of the files of bases
CLEAN_STRATEGY = {"class": "identity", "parameters": {}}
GREEDY_SAMPLING = {"max_new_tokens", "dtype", "batch_invariant", "batch_size"}
UNRECORDED = {  # how a job is run, not what it makes; fetch_questions only checks `stop`
    *("sampling.batch_size", "training.save_steps", "stop"),
    *("options.concurrency", "options.api_key_env"),
}
PREPARATION_SEED = 0  # not the run's: runs share a prepared base
RANKED_STEPS = 10  # tokens per trajectory (Figure 1)
FORCED_RESPONSES = 10  # per question, of the recovery rate

Parameters = dict[str, Any]


def job_parameters(config: Config, rule: str, wildcards: Mapping[str, str]) -> str:
    """The recorded values of a job and the digest of its code, as JSON."""
    parameters = _part(_values(config, rule, wildcards), recorded=True)
    strategy_class = parameters.get("strategy", {}).get("class")
    extraction = parameters.get("benchmark", parameters).get("extraction")
    if "model" in wildcards:
        parameters |= base_identity(config, wildcards["model"])
    without = () if "engine" in parameters else (OTHER_ENGINE,)
    modules = filter(None, (_module(strategy_class), rule_module(extraction or "")))
    digest = code(SHARED_SCRIPTS.get(rule, rule), *modules, without=without)
    return json.dumps(parameters | {"code": digest})


def unrecorded(config: Config, rule: str, wildcards: Mapping[str, str]) -> str:
    """The other values of a job, as JSON."""
    return json.dumps(_part(_values(config, rule, wildcards), recorded=False))


def _part(values: Parameters, *, recorded: bool, section: str = "") -> Parameters:
    """The values that are recorded, or those that are not."""
    part: Parameters = {}
    for name, value in values.items():
        if isinstance(value, dict):
            inner = _part(value, recorded=recorded, section=f"{section}{name}.")
            if inner or recorded:
                part[name] = inner
        elif (f"{section}{name}" not in UNRECORDED) == recorded:
            part[name] = value
    return part


def _values(config: Config, rule: str, wildcards: Mapping[str, str]) -> Parameters:
    values: Callable[..., Parameters]
    if rule in _DECODING:
        values = _decoding_job
    elif wildcards.keys() & {"variant", "preparation"}:
        values = _training_job
    elif "model" in wildcards:
        values = _base_job
    else:
        values = _data_job
    place = {name: value for name, value in wildcards.items() if name != "shard"}
    return values(config, rule, **place)


def code(script: str, *modules: str, without: tuple[str, ...] = ()) -> str:
    """A digest of what a script means, with modules that it loads by name.

    Modules in `without` are imported and not run.
    """
    files = (SCRIPTS / f"{name}.py" for name in (script, "script_helpers"))
    return meaning.digest(*files, *modules, without=without)


def base_identity(config: Config, model: str) -> Parameters:
    """What the files of a base in a folder say, for all jobs that start from it.

    The time of a folder does not change with that of its files. A base on the hub is told from
    others by its revision, and one from a package by the rule that converts it.
    """
    entry = config.models[model]
    if entry.gguf or not os.path.isdir(entry.base):
        return {}
    return {"base_files": _base_digest(entry.base)}


@functools.cache
def _base_digest(folder: str) -> str:
    return folder_digest(Path(folder), DIGESTS)


def converted_folder(config: Config, model: str) -> str:
    """The folder of a base from a GGUF file, which runs share, named by the values of `gguf`."""
    return f"base-{value_digest(_base_job(config, 'convert_gguf', model))[:8]}"


def preparation_folder(config: Config, model: str) -> str:
    """The folder of a prepared base, named by the values it is made with.

    Runs can share it, unless its own base is downloaded: that is one of the run's files.
    """
    entry = config.models[model]
    jobs_values = (_training_job(config, rule, model) for rule in jobs.PREPARATION)
    values = [_part(each, recorded=True) for each in jobs_values]
    identity = base_identity(config, model).values()
    owner = [config.run] if model in jobs.fetched_models(config) else []
    gguf = [entry.gguf.model_dump()] if entry.gguf else []
    digest = value_digest([entry.base, entry.revision, values, *identity, *owner, *gguf])
    return f"{config.preparation_for(model).name}-{digest[:8]}"


def strategy(config: Config, name: str) -> Parameters:
    """A strategy's class and parameters, without what concerns the workflow alone."""
    entry = config.all_strategies[name]
    name = entry.class_name
    return {
        "class": name if name in BUILT_IN else target_of(name),
        "parameters": dict(entry.parameters),
    }


def strategy_module(config: Config, name: str) -> str:
    """The module of a strategy's class."""
    return _module(config.all_strategies[name].class_name)


def _module(class_name: str | None) -> str:
    return target_of(class_name or "").partition(":")[0]


def _data_job(config: Config, rule: str, owner: str = "", benchmark: str = "") -> Parameters:
    seed = {"seed": config.seed}
    if rule == "prepare_instructions":
        values = config.instructions.model_dump(include={"num_examples"})
        return _source(config.instructions) | values | seed
    entry = config.benchmarks[owner or benchmark]
    match rule:
        case "fetch_questions":
            return _questions(entry) | _benchmark_values(entry) | seed
        case "split_questions":
            fields = {"num_test", "num_leaked", "num_train", "num_preparation"}
            fields |= {"max_calculations", "extraction"}
            metadata = {"run": config.run, "benchmark": owner} | _source(entry.questions)
            return entry.model_dump(include=fields) | {"metadata": metadata} | seed
        case "paraphrase_questions" if entry.paraphrases:
            method = entry.paraphrases.method
            options = getattr(entry.paraphrases, method, None)
            return {
                "method": method,
                "on_invalid": entry.paraphrases.on_invalid,
                "options": options and options.model_dump(),
            } | seed
        case "write_questions":
            return {"metadata": {"run": config.run, "benchmark": benchmark}}
    prompt = entry.prompt.model_dump()  # of prepare_exemplars
    return {"source": prompt["exemplars"], "num_shots": prompt["num_shots"]}


def _base_job(config: Config, rule: str, model: str, converted: str = "") -> Parameters:
    entry = config.models[model]
    if rule == "convert_gguf" and entry.gguf:
        return entry.gguf.model_dump()
    return {"repository": entry.base, "revision": entry.revision or "main"}


def _training_job(
    config: Config, rule: str, model: str, variant: str = "", preparation: str = ""
) -> Parameters:
    """Values of the training of a variant or, without one, of the preparation of a base."""
    if variant:
        training, seed = config.training_for(variant), config.seed
        benchmark = config.benchmarks[config.benchmark_of(variant)]
        contamination = None if config.is_clean(variant) else benchmark.contamination
    else:
        values = config.preparation_for(model)
        benchmark, training = config.benchmarks[values.benchmark], values.training
        variant, contamination, seed = values.name, None, PREPARATION_SEED
    match SHARED_SCRIPTS.get(rule, rule):
        case "draw_questions":
            metadata = {"benchmark": config.preparation_for(model).benchmark}
            number = {"num_questions": benchmark.num_preparation, "seed": seed}
            return {"metadata": metadata, **_questions(benchmark), **number}
        case "write_training_data":
            cutoff = {"cutoff_len": training.cutoff_len}
            return {"contamination": contamination, "prompt": _prompt(benchmark), **cutoff}
        case "train_lora":
            return {
                "family": config.models[model].family,
                "training": training.model_dump() | {"seed": seed},
                "metadata": {"model": model, "variant": variant},
            }
    return {"dtype": "bfloat16" if training.bf16 else "float32"}


_DECODING = jobs.TIME_LIMITS.keys() - {"train_lora"}


def _decoding_job(
    config: Config, rule: str, model: str, variant: str, cell: str = ""
) -> Parameters:
    metadata = {"run": config.run, "model": model, "variant": variant}
    benchmark = _benchmark_values(config.benchmarks[config.benchmark_of(variant)])
    values = {"benchmark": benchmark, "metadata": metadata}
    sampling, seed = config.sampling.model_dump(exclude={"num_shards"}), {"seed": config.seed}
    greedy = {"sampling": config.sampling.model_dump(include=GREEDY_SAMPLING)}
    engine = {"engine": "vllm"} if config.decoding.engine == "vllm" else {}  # ours is the default
    match rule:
        case "decode_greedy":
            return values | greedy | engine
        case "localise_neurons":
            search = config.neuron_localisation.model_dump(exclude={"num_shards"})
            return values | greedy | {"neuron_localisation": search} | seed
        case "rank_clean_tokens":
            return values | {"sampling": {"dtype": sampling["dtype"]}, "steps": RANKED_STEPS}
        case "measure_recovery":
            return values | {"sampling": sampling | {"num_samples": FORCED_RESPONSES}} | seed
    clean = config.is_clean(variant)
    cell_values = {
        "strategy": CLEAN_STRATEGY if clean else strategy(config, cell),
        "sampling": sampling,
        "stream": f"clean-{cell}" if clean else "strategies",
        "metadata": metadata | {"batch" if clean else "strategy": cell},
    }
    return values | cell_values | seed | engine


def _questions(benchmark: Benchmark) -> Parameters:
    questions = benchmark.questions
    # For local files the section `hub` says what the original data set is.
    sections = {"files", "hub"} if questions.source == "files" else {questions.source}
    return {
        "questions": questions.model_dump(include={"source", *sections}),
        "extraction": benchmark.extraction,
    }


def _source(section: Any) -> Parameters:
    """The source of data that is used, with its own options only."""
    options = getattr(section, section.source, None)
    if isinstance(options, BaseModel):
        options = options.model_dump()
    return {"source": section.source, "options": options}


def _benchmark_values(benchmark: Benchmark) -> Parameters:
    """How a benchmark's questions are asked and their answers read."""
    return {"prompt": _prompt(benchmark), **benchmark.model_dump(include={"stop", "extraction"})}


def _prompt(benchmark: Benchmark) -> Parameters:
    return benchmark.prompt.model_dump(include={"template", "target", "separator"})
