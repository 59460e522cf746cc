"""Where the files of a run are, and which files a job reads."""

import csv
import json
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from zerogap.config import Config
from zerogap.pipeline import jobs
from zerogap.pipeline.jobs import Job
from zerogap.pipeline.parameters import job_parameters, preparation_folder

_RESULTS = {
    "train_lora": "loss.tsv",
    "decode_greedy": "greedy.parquet",
    "localise_neurons": "neurons.parquet",
    "rank_clean_tokens": "ranks.parquet",
    "measure_recovery": "recovery.parquet",
}


def results(config: Config) -> str:
    """The folder of a run's data and models."""
    return f"results/{config.run}"


def base_model(config: Config, model: str) -> str:
    """The folder of a base model, prepared if the configuration says how."""
    if config.models[model].preparation is None:
        return unprepared_base(config, model)
    return f"{jobs.BASES}/{model}/{preparation_folder(config, model)}/model"


def unprepared_base(config: Config, model: str) -> str:
    """The folder of a base model: as configured, or where it is converted or fetched.

    Runs share a converted base.
    """
    entry = config.models[model]
    if entry.gguf is not None:
        return f"{jobs.BASES}/{model}/base"
    return entry.base if os.path.isdir(entry.base) else f"{results(config)}/{model}/base"


def preparations(config: Config) -> list[str]:
    """The folders of all preparations."""
    return [preparation_folder(config, model) for model in jobs.prepared_models(config)]


def owner_data(config: Config, variant: str) -> str:
    """The data folder of the benchmark that owns a variant's questions."""
    return f"{results(config)}/data/{config.owner_of(config.benchmark_of(variant))}"


def split(config: Config, variant: str) -> str:
    """The questions that a variant shares with its clean model, without paraphrases."""
    return f"{owner_data(config, variant)}/split.parquet"


def questions(config: Config, variant: str) -> str:
    """The table of test questions that a variant answers.

    A clean model's questions are the split itself, so that it never waits for paraphrases.
    """
    if jobs.is_clean(config, variant):
        return split(config, variant)
    return f"{results(config)}/data/{variant}/questions.parquet"


def training_questions(config: Config, variant: str) -> str:
    """The table whose questions a variant is trained on."""
    if jobs.is_clean(config, variant):
        return f"{owner_data(config, variant)}/train.parquet"
    return questions(config, variant)


def exemplars(config: Config, variant: str) -> str:
    """The exemplars of a variant's prompts."""
    return f"{owner_data(config, variant)}/exemplars.json"


def question_files(config: Config, owner: str) -> list[str]:
    """The user's own files that a benchmark's questions are read from: editing one reruns."""
    questions = config.benchmarks[owner].questions
    files = questions.files if questions.source == "files" else None
    return [files.train, files.test] if files else []


def exemplar_files(config: Config, owner: str) -> list[str]:
    """The user's own file that a benchmark's exemplars are read from, if they are."""
    source = config.benchmarks[owner].prompt.exemplars
    return [source] if isinstance(source, str) and source.endswith(".jsonl") else []


def instruction_files(config: Config) -> list[str]:
    """The user's own file of instructions, if they are read from one."""
    files = config.instructions.files if config.instructions.source == "files" else None
    return [files] if files else []


def paraphrases(config: Config, benchmark: str) -> list[str]:
    """The paraphrases that a benchmark leaks; none if it leaks its questions verbatim."""
    if config.benchmarks[benchmark].contamination == "verbatim":
        return []
    return [f"{results(config)}/data/{benchmark}/paraphrases.jsonl"]


def starting_model(config: Config, model: str, variant: str) -> str:
    """The model that a training starts from: the base, or the clean model of the benchmark."""
    if jobs.is_clean(config, variant):
        return base_model(config, model)
    return f"{clean_folder(config, model, variant)}/model"


def clean_folder(config: Config, model: str, benchmark: str) -> str:
    """The folder of a benchmark's clean model."""
    return f"{results(config)}/{model}/{config.clean_variant(benchmark)}"


def cell_folder(config: Config, model: str, variant: str, cell: str) -> str:
    """The folder of a model's responses under one strategy, or of a clean model's batch."""
    return f"{results(config)}/{model}/{variant}/cells/{cell}"


def clean_file(config: Config, model: str, benchmark: str, name: str) -> str:
    """A file in the folder of the clean model that a contaminated one is compared with."""
    return f"{clean_folder(config, model, benchmark)}/{name}"


def strategy_inputs(config: Config, model: str, variant: str, cell: str) -> dict[str, str]:
    """What a strategy needs in addition to the model and its greedy trajectories."""
    if jobs.is_clean(config, variant) or not config.all_strategies[cell].needs_base_model:
        return {}
    return {
        "base_model": base_model(config, model),
        "neurons": f"{results(config)}/{model}/{variant}/neurons.parquet",
    }


def filtered_samples(config: Config, model: str, benchmark: str, strategy: str) -> str:
    """The responses that a filtering strategy filters."""
    source = str(config.all_strategies[strategy].filter_of)
    return f"{cell_folder(config, model, benchmark, source)}/samples.parquet"


def unmitigated_samples(config: Config, model: str, variant: str) -> str:
    """The responses of a model as it is: a clean model's first batch, or Identity's."""
    cell = jobs.BATCHES[0] if jobs.is_clean(config, variant) else "identity"
    return f"{cell_folder(config, model, variant, cell)}/samples.parquet"


def options(files: Any, *names: str) -> str:
    """Named input files as options of a command line; inputs that a job lacks are left out."""
    words = []
    for name in names:
        if (paths := files.get(name)) is not None:
            words += [f"--{name.replace('_', '-')}"]
            words += [paths] if isinstance(paths, str) else paths
    return shlex.join(words)


def shard_option(num_shards: int, wildcards: Any) -> str:
    """Which questions or neuron groups a job works on: every N-th, starting from the K-th."""
    return f"--shard {wildcards.shard} {num_shards}" if num_shards > 1 else ""


def shard_file(num_shards: int, path: str) -> str:
    """The file of one shard, with the wildcard {shard}; the path itself if there is one shard."""
    if num_shards == 1:
        return path
    stem, dot, suffix = path.rpartition(".")
    return f"{stem}.shard-{{shard}}-of-{num_shards}{dot}{suffix}"


def shard_files(num_shards: int, path: str) -> list[str]:
    """The files of all shards."""
    pattern, shards = shard_file(num_shards, path), range(num_shards)
    return list(dict.fromkeys(pattern.replace("{shard}", str(shard)) for shard in shards))


def solve_tables(config: Config, model: str, benchmark: str) -> dict[str, str]:
    """The counts of every strategy in one setting, and of the clean model's second batch."""
    names = [*config.strategies, "all_zero"]
    tables = {
        name: f"{cell_folder(config, model, benchmark, name)}/solve.parquet" for name in names
    }
    second = clean_file(config, model, benchmark, "cells/batch2/solve.parquet")
    return tables | {"clean_batch2": second}


def ablation_tables(config: Config, model: str, benchmark: str) -> dict[str, str]:
    """The counts of the ablation's strategies in one setting, after those of all others."""
    return solve_tables(config, model, benchmark) | {
        name: f"{cell_folder(config, model, benchmark, name)}/solve.parquet"
        for name in config.ablation
    }


class TimedJob(NamedTuple):
    """A long job, the file that it makes and the files with its time.

    Attributes:
        job: the job; it counts as one even if it has shards.
        output: what it makes.
        timings: Snakemake's benchmark files, one per shard.
    """

    job: Job
    output: str
    timings: list[str]


def timed_jobs(config: Config) -> Iterator[TimedJob]:
    """The long jobs with what they make and the files that have their times."""
    for job in jobs.model_jobs(config):
        folder = f"{job.model}/{job.variant}"
        name = f"cells/{job.cell}" if job.cell else job.rule
        timing = f"{results(config)}/timings/{folder}/{name}.tsv"
        timings = shard_files(jobs.num_shards(config, job), timing)
        made = f"{name}/samples.parquet" if job.cell else _RESULTS[job.rule]
        yield TimedJob(job, f"{results(config)}/{folder}/{made}", timings)


def code_of_responses(config: Config) -> dict[str, str]:
    """The files of sampled responses, each with the digest of the code that would make it now."""
    made_by = {}
    for (rule, *place), output, _ in timed_jobs(config):
        if rule == jobs.SAMPLE:
            wildcards = dict(zip(("model", "variant", "cell"), place, strict=True))
            made_by[output] = json.loads(job_parameters(config, rule, wildcards))["code"]
    return made_by


def preparation_jobs(config: Config) -> Iterator[TimedJob]:
    """The long jobs of preparations, which several runs can share."""
    for model in jobs.prepared_models(config):
        folder = f"{model}/{preparation_folder(config, model)}"
        timing = f"{jobs.BASES}/timings/{folder}/train_preparation.tsv"
        loss = f"{jobs.BASES}/{folder}/loss.tsv"
        yield TimedJob(Job("train_preparation", model), loss, [timing])


def seconds(timings: Iterable[str | Path]) -> float:
    """Wall-clock seconds of a job, from its Snakemake benchmark files, one per shard.

    NaN if one of the files is missing: the time of some shards is not the time of the job.
    """
    total = 0.0
    for path in map(Path, timings):
        if not path.is_file():
            return float("nan")
        with path.open() as file:
            total += sum(float(row["s"]) for row in csv.DictReader(file, delimiter="\t"))
    return total
