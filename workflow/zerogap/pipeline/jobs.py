"""What a configuration means in jobs: what is compared where, and every job of every rule.

The rules take their lists from here, `zerogap plan` counts them, and a test compares the counts
with Snakemake's own. Tables and figures, one job each, are not among them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

CLEAN = "clean"  # beside the contamination benchmarks
BATCHES = ("batch1", "batch2")  # of the clean model: the reference and the noise floor

_FILES = {
    "train_lora": "loss.tsv",
    "decode_greedy": "greedy.parquet",
    "localise_neurons": "neurons.parquet",
    "rank_clean_tokens": "ranks.parquet",
}

Config = Mapping[str, Any]
PRETRAINED = "pretrained"  # the base of a model that the run itself pretrains


class Job(NamedTuple):
    """A rule's job; `cell` is the strategy or batch, and a cell in shards has a job a shard."""

    rule: str
    model: str = ""
    benchmark: str = ""
    cell: str = ""


def fetched(config: Config) -> list[str]:
    """The models whose base comes from the hub: it is no folder here, and the run makes none."""
    return [
        model
        for model, entry in config["models"].items()
        if entry["base"] != PRETRAINED and not Path(entry["base"]).is_dir()
    ]


def base_folder(config: Config, model: str) -> Path | None:
    """Where a base model lies already: the configured folder, or what a run fetched or made."""
    for folder in (
        Path(config["models"][model]["base"]),
        Path("results", config["run"], model, "base"),
    ):
        if folder.is_dir():
            return folder
    return None


def benchmarks(config: Config) -> list[str]:
    """The clean model and the contamination benchmarks: what is trained of every base."""
    return [CLEAN, *config["benchmarks"]]


def strategies(config: Config) -> dict[str, Any]:
    """The entries of all strategies, the ablation's included."""
    return {**config["strategies"], **config["ablation"]}


def compared(config: Config, model: str, benchmark: str) -> list[str]:
    """The strategies that are read in one setting: the ablation's only in the paper's."""
    names = list(config["strategies"])
    if {"model": model, "benchmark": benchmark} == config["setting"]:
        names += list(config["ablation"])
    return names


def filtered(config: Config, model: str, benchmark: str) -> list[str]:
    """Of these, the ones that filter another's responses and sample none."""
    return [s for s in compared(config, model, benchmark) if "filters" in strategies(config)[s]]


def cells(config: Config, model: str, benchmark: str) -> list[str]:
    """What is sampled of one model: strategies, or the clean model's batches."""
    if benchmark == CLEAN:
        return list(BATCHES)
    return [s for s in compared(config, model, benchmark) if "filters" not in strategies(config)[s]]


def localised(config: Config, model: str, benchmark: str) -> bool:
    """Whether a strategy borrows in this setting, so that its neurons have to be found."""
    return benchmark != CLEAN and any(
        strategies(config)[name].get("borrows") for name in cells(config, model, benchmark)
    )


def on_device(config: Config) -> list[Job]:
    """The jobs that take long, on a GPU if there is one; a cell is one, in shards or not."""
    jobs = []
    for model in config["models"]:
        for benchmark in benchmarks(config):
            rules = ["train_lora", "decode_greedy"]
            if localised(config, model, benchmark):
                rules.append("localise_neurons")
            if {"model": model, "benchmark": benchmark} == config["setting"]:
                rules.append("rank_clean_tokens")
            jobs += [Job(rule, model, benchmark) for rule in rules]
            rule = "sample_clean_responses" if benchmark == CLEAN else "sample_responses"
            jobs += [Job(rule, model, benchmark, cell) for cell in cells(config, model, benchmark)]
    return jobs


def made(config: Config, job: Job) -> Path:
    """The file that a job on a device leaves, of a cell in shards the whole."""
    name = f"{job.cell}/samples.parquet" if job.cell else _FILES[job.rule]
    return Path("results", config["run"], job.model, job.benchmark, name)


def all_jobs(config: Config) -> list[Job]:
    """Every job up to the readings, as a run in which nothing exists yet has them.

    A base model is fetched where its folder is not here (relative to the working directory).
    """
    shards = config["decoding"]["shards"]
    jobs = [
        Job(rule)
        for rule in (
            "fetch_questions", "split_questions", "paraphrase_questions", "join_paraphrases", "prepare_instructions", "prepare_exemplars",
        )
    ]  # fmt: skip
    for model, entry in config["models"].items():
        if entry["base"] == PRETRAINED:
            jobs.append(Job("pretrain_base", model))
        elif model in fetched(config):
            jobs.append(Job("fetch_base", model))
        for benchmark in benchmarks(config):
            jobs += [Job(rule, model, benchmark) for rule in ("write_training_data", "merge_lora")]
    for job in on_device(config):
        jobs += [job] * (shards if job.cell else 1)
        if job.cell and shards > 1:
            jobs.append(job._replace(rule="merge_shards"))
    for model in config["models"]:
        for benchmark in config["benchmarks"]:
            jobs += [
                Job(rule, model, benchmark)
                for rule in ("make_all_zero", "compute_metrics", "measure_overlap")
            ]
            jobs += [
                Job("filter_responses", model, benchmark, name)
                for name in filtered(config, model, benchmark)
            ]
    return jobs
