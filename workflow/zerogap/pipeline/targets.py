"""Where the files of a run are, and which files a job reads."""

import csv
import json
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from zerogap.config import Config
from zerogap.config.benchmark import Instructions, Prompt, QuestionFiles, Questions
from zerogap.errors import InputError
from zerogap.pipeline import jobs
from zerogap.pipeline.jobs import Job
from zerogap.pipeline.parameters import converted_folder, job_parameters, preparation_folder

_RESULTS = {
    "train_lora": "loss.tsv",
    "decode_greedy": "greedy.parquet",
    "localise_neurons": "neurons.parquet",
    "rank_clean_tokens": "ranks.parquet",
    "measure_recovery": "recovery.parquet",
}


def base_model(config: Config, model: str) -> str:
    """The folder of a base model, prepared if the configuration says how."""
    if config.models[model].preparation is None:
        return unprepared_base(config, model)
    return f"{jobs.BASES}/{model}/{preparation_folder(config, model)}/model"


def unprepared_base(config: Config, model: str) -> str:
    """The folder of a base model: as configured, or where it is converted or fetched."""
    entry = config.models[model]
    if entry.gguf is not None:
        return f"{jobs.BASES}/{model}/{converted_folder(config, model)}"
    return entry.base if os.path.isdir(entry.base) else f"{config.results}/{model}/base"


def base_folder(config: Config, model: str) -> Path | None:
    """The folder of a base model that need not be fetched or converted any more, or None."""
    folder, entry = Path(unprepared_base(config, model)), config.models[model]
    if model in jobs.fetched_models(config):
        origin = folder / "origin.json"
        made_of = json.loads(origin.read_text(encoding="utf-8")) if origin.is_file() else {}
        # Else it was fetched for another configuration.
        wanted = {"repository": entry.base, "revision": entry.revision or "main"}
        return folder if wanted.items() <= made_of.items() else None
    return folder if folder.is_dir() else None


def shared_data(config: Config, variant: str, name: str) -> str:
    """A file of the benchmark that owns a variant's questions, such as its exemplars."""
    return f"{config.results}/data/{config.owner_of(config.benchmark_of(variant))}/{name}"


def questions(config: Config, variant: str) -> str:
    """The table of test questions that a variant answers.

    A clean model's questions are the split itself, so that it never waits for paraphrases.
    """
    if config.is_clean(variant):
        return shared_data(config, variant, "split.parquet")
    return f"{config.results}/data/{variant}/questions.parquet"


def training_questions(config: Config, variant: str) -> str:
    """The table whose questions a variant is trained on."""
    if config.is_clean(variant):
        return shared_data(config, variant, "train.parquet")
    return questions(config, variant)


def paraphrases(config: Config, benchmark: str) -> list[str]:
    """The paraphrases that a benchmark leaks; none if it leaks its questions verbatim."""
    if config.benchmarks[benchmark].contamination == "verbatim":
        return []
    return [f"{config.results}/data/{benchmark}/paraphrases.jsonl"]


def local_files(section: Questions | Instructions | Prompt) -> list[str]:
    """The user's own files that questions, instructions or exemplars are read from, if they are.

    Editing one makes what is made of it again.
    """
    if isinstance(section, Prompt):
        source = section.exemplars
        return [source] if isinstance(source, str) and source.endswith(".jsonl") else []
    files = section.files if section.source == "files" else None
    if isinstance(files, QuestionFiles):
        return [files.train, files.test]
    return [files] if files else []


def clean_file(config: Config, model: str, benchmark: str, name: str) -> str:
    """A file in the folder of the clean model that a contaminated one is compared with."""
    return f"{config.results}/{model}/{config.clean_variant(benchmark)}/{name}"


def starting_model(config: Config, model: str, variant: str) -> str:
    """The model that a training starts from: the base, or the clean model of the benchmark."""
    if config.is_clean(variant):
        return base_model(config, model)
    return clean_file(config, model, variant, "model")


def strategy_inputs(config: Config, model: str, variant: str, cell: str) -> dict[str, str]:
    """What a strategy needs in addition to the model and its greedy trajectories.

    Raises:
        InputError: it is a clean model's strategy, or a contaminated model's batch.
    """
    is_batch = cell in jobs.BATCHES
    if is_batch != config.is_clean(variant):
        raise InputError(f"{variant} has no {cell}: clean models have batches, others strategies")
    if is_batch or not config.all_strategies[cell].needs_base_model:
        return {}
    neurons = f"{config.results}/{model}/{variant}/neurons.parquet"
    return {"base_model": base_model(config, model), "neurons": neurons}


def cell_file(config: Config, model: str, variant: str, cell: str, name: str) -> str:
    """The `samples` or `solve` table of a strategy's responses, or of a clean model's batch."""
    return f"{config.results}/{model}/{variant}/cells/{cell}/{name}.parquet"


def filtered_samples(config: Config, model: str, benchmark: str, strategy: str) -> str:
    """The responses that a filtering strategy filters."""
    source = str(config.all_strategies[strategy].filter_of)
    return cell_file(config, model, benchmark, source, "samples")


def unmitigated_samples(config: Config, model: str, variant: str) -> str:
    """The responses of a model as it is: a clean model's first batch, or Identity's."""
    cell = jobs.BATCHES[0] if config.is_clean(variant) else "identity"
    return cell_file(config, model, variant, cell, "samples")


def solve_tables(config: Config, model: str, benchmark: str, *further: str) -> dict[str, str]:
    """The counts of every strategy in one setting, of the clean model's second batch, of others."""

    def tables(names: Iterable[str]) -> dict[str, str]:
        return {name: cell_file(config, model, benchmark, name, "solve") for name in names}

    second = clean_file(config, model, benchmark, "cells/batch2/solve.parquet")
    return tables([*config.strategies, "all_zero"]) | {"clean_batch2": second} | tables(further)


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
    pattern = shard_file(num_shards, path)
    return [pattern.replace("{shard}", str(shard)) for shard in range(num_shards)]


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
        timing = f"{config.results}/timings/{folder}/{name}.tsv"
        timings = shard_files(jobs.num_shards(config, job), timing)
        made = f"{name}/samples.parquet" if job.cell else _RESULTS[job.rule]
        yield TimedJob(job, f"{config.results}/{folder}/{made}", timings)


def code_of_responses(config: Config) -> dict[str, str]:
    """The files of sampled responses, each with the digest of the code that would make it now."""
    made_by = {}
    for timed in timed_jobs(config):
        if timed.job.rule == jobs.SAMPLE:
            wildcards = timed.job._asdict()
            parameters = job_parameters(config, wildcards.pop("rule"), wildcards)
            made_by[timed.output] = json.loads(parameters)["code"]
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
