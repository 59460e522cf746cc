"""Which jobs a configuration means: the cells of every model, and the jobs that take long.

The rules take their lists from here, and `zerogap plan` counts the costly jobs; a test compares its
count with Snakemake's own.
"""

import itertools
import os
from pathlib import Path
from typing import NamedTuple

from zerogap.config import BASES_FOLDER, Config, ConfigError, vllm_problem
from zerogap.sampling.engines import installed_engine
from zerogap.strategies.registry import BUILT_IN, RAIL_N

BATCHES = ("batch1", "batch2")  # of a clean model: the reference and the noise floor
BASES = f"results/{BASES_FOLDER}"
ENGINE_RECORD = "engine.txt"  # in the folder of a run
PREPARATION = ("draw_questions", "write_preparation_data", "train_preparation", "merge_preparation")
SAMPLE = "sample_responses"
LOCALISE = "localise_neurons"
DECODING = ("decode_greedy", SAMPLE)  # by the run's engine
TIME_LIMITS = {  # of the first attempt, in minutes
    **{"train_lora": 720, "decode_greedy": 60, SAMPLE: 480, LOCALISE: 720},
    **{"rank_clean_tokens": 60, "measure_recovery": 240},
}
START_OVER = ("decode_greedy", "rank_clean_tokens")  # in each attempt; the others resume


class Job(NamedTuple):
    """A job of a rule.

    Attributes:
        rule: name of the rule.
        model: the base model.
        variant: the trained model; the benchmark of a preparation.
        cell: the strategy, or the clean model's batch.
    """

    rule: str
    model: str
    variant: str = ""
    cell: str = ""


def time_limit(config: Config, minutes: int, attempt: int) -> int:
    """The time limit of an attempt (1, 2, …): doubled every time, and at most `max_runtime`."""
    return min(minutes << (attempt - 1), config.max_runtime)


def minutes_allowed(config: Config, rule: str, attempts: int) -> int:
    """The longest job of a rule that ends within so many attempts."""
    rule = "train_lora" if rule == "train_preparation" else rule
    limits = [time_limit(config, TIME_LIMITS[rule], attempt + 1) for attempt in range(attempts)]
    return limits[-1] if rule in START_OVER else sum(limits)


def is_primary(config: Config, model: str, variant: str) -> bool:
    """Whether this is the model and benchmark of Tables 1, 2 and 4."""
    setting = config.primary_setting
    return (model, variant) == (setting.model, setting.benchmark)


def fetched_models(config: Config) -> list[str]:
    """The models whose base is downloaded: neither a local folder nor converted."""
    models = config.models.items()
    return [name for name, entry in models if not entry.gguf and not os.path.isdir(entry.base)]


def converted_models(config: Config) -> list[str]:
    """The models whose base is converted from a GGUF file."""
    return [name for name, entry in config.models.items() if entry.gguf]


def prepared_models(config: Config) -> list[str]:
    """The models whose base is trained before the run."""
    return [name for name, entry in config.models.items() if entry.preparation]


def sampled_strategies(config: Config) -> list[str]:
    """The strategies that sample responses."""
    return [name for name, entry in config.all_strategies.items() if entry.filter_of is None]


def filter_strategies(config: Config) -> list[str]:
    """The strategies that filter the responses of another one."""
    return [name for name, entry in config.all_strategies.items() if entry.filter_of is not None]


def compared_strategies(config: Config, model: str, benchmark: str) -> list[str]:
    """The strategies compared in one setting; those of the ablation last, in the primary one."""
    ablation = config.ablation if is_primary(config, model, benchmark) else ()
    return [*config.strategies, *ablation]


def with_engine(config: Config) -> Config:
    """The configuration with the engine that decodes the whole run, "zerogap" or "vllm".

    `auto` is resolved once per run: the engine that its first decoding recorded is that of its jobs
    on all machines and of later starts.

    Raises:
        ConfigError: the recorded engine is vLLM, which cannot decode the run any more.
    """
    engine: str = config.decoding.engine
    if engine == "auto":
        record, problem = Path(config.results, ENGINE_RECORD), vllm_problem(config)
        recorded = record.read_text().strip() if record.is_file() else ""
        if recorded == "vllm" and problem:
            raise ConfigError("decoding.engine", f"is vllm in {record}, {problem}")
        engine = recorded or ("zerogap" if problem else installed_engine())
    decoding = config.decoding.model_copy(update={"engine": engine})
    return config.model_copy(update={"decoding": decoding})


def cells(config: Config, model: str, variant: str) -> list[str]:
    """What is sampled from one model: strategies, or a clean model's batches."""
    if config.is_clean(variant):
        return list(BATCHES)
    sampled = sampled_strategies(config)
    return [name for name in compared_strategies(config, model, variant) if name in sampled]


def needs_neurons(config: Config, model: str, variant: str) -> bool:
    """Whether a strategy of this setting patches neurons, which have to be localised then."""
    return not config.is_clean(variant) and any(
        config.all_strategies[name].needs_base_model for name in cells(config, model, variant)
    )


def rail_thresholds(config: Config) -> dict[str, int]:
    """Identity and the strategies that act on the rail, with the n of their n-grams."""
    strategies = {
        name: entry.parameters.get("n", RAIL_N)
        for name, entry in config.strategies.items()
        if entry.class_name in BUILT_IN and BUILT_IN[entry.class_name].acts_on_rail
    }
    return {"identity": RAIL_N} | strategies


def model_jobs(config: Config) -> list[Job]:
    """The long jobs, which use a GPU if there is one. Shards are not counted."""
    jobs = []
    for model, variant in itertools.product(config.models, config.variants):
        rules = {
            "train_lora": True,
            "decode_greedy": True,
            LOCALISE: needs_neurons(config, model, variant),
            "rank_clean_tokens": is_primary(config, model, variant),
            "measure_recovery": config.is_clean(variant),
        }
        jobs += [Job(rule, model, variant) for rule, is_needed in rules.items() if is_needed]
        jobs += [Job(SAMPLE, model, variant, cell) for cell in cells(config, model, variant)]
    return jobs


def num_shards(config: Config, job: Job) -> int:
    """How many shards a long job has."""
    shards = {SAMPLE: config.sampling.num_shards, LOCALISE: config.neuron_localisation.num_shards}
    return shards.get(job.rule, 1)


def costly_jobs(config: Config) -> list[Job]:
    """The jobs that take long or store a model, in a run of which nothing exists yet.

    A base model is fetched unless its folder exists (relative to the working directory). Each shard
    is a job. Their merging, and the jobs on data, paraphrases, metrics and tables, are left out.
    """
    jobs = [Job("fetch_base", model) for model in fetched_models(config)]
    jobs += [Job("convert_gguf", model) for model in converted_models(config)]
    for model in prepared_models(config):
        benchmark = config.preparation_for(model).benchmark
        jobs += [Job(rule, model, benchmark) for rule in ("train_preparation", "merge_preparation")]
    for job in model_jobs(config):
        jobs += [job] * num_shards(config, job)
    variants = itertools.product(config.models, config.variants)
    return jobs + [Job("merge_lora", model, variant) for model, variant in variants]
