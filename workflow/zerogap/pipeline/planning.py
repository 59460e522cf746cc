"""What a run will cost: jobs, tokens, device hours and disk of each stage and model.

Jobs are counted (:mod:`zerogap.pipeline.jobs`), tokens follow from the protocol and the length of
the texts (:mod:`zerogap.pipeline.text_lengths`), hours from rates (:mod:`zerogap.pipeline.rates`).
docs/planning.md says where the default rates come from, and what is not included.
"""

from collections.abc import Mapping

import pandas as pd

from zerogap.config import Config
from zerogap.families import ModelSize
from zerogap.pipeline import jobs
from zerogap.pipeline.jobs import Job
from zerogap.pipeline.localisation_cost import localisation_work
from zerogap.pipeline.parameters import FORCED_RESPONSES, RANKED_STEPS
from zerogap.pipeline.rates import REFERENCE_RATES, Gpu, Rates, Work
from zerogap.pipeline.text_lengths import TextLengths, text_lengths

CLEAN_SAMPLES, STRATEGY_SAMPLES = "Clean samples", "Strategy samples"
STAGES = {  # stage → its rules; the sampling rule belongs to two stages
    "Data": (
        "fetch_questions",
        "split_questions",
        "paraphrase_questions",
        "write_questions",
        "prepare_instructions",
        "prepare_exemplars",
    ),
    "Base models": (
        "fetch_base",
        "convert_gguf",
        *jobs.PREPARATION,
        *jobs.SCREENING,
    ),
    "LoRA training": ("write_training_data", "train_lora", "merge_lora"),
    "Greedy trajectories": ("decode_greedy",),
    CLEAN_SAMPLES: (jobs.SAMPLE,),
    STRATEGY_SAMPLES: (jobs.SAMPLE,),
    "Merging of shards": ("merge_shards", "merge_neurons"),
    "Neuron localisation": ("localise_neurons",),
    "Token ranks": ("rank_clean_tokens",),
    "Recovery": ("measure_recovery",),
    "Filters": ("filter_responses",),
    "Metrics": (
        "make_all_zero",
        "compute_metrics",
        "compute_ablation_metrics",
        "measure_overlap",
        "replay_rail",
    ),
}

COST_COLUMNS = ["stage", "tokens", "hours", "bytes", "rate"]
BYTES_PER_TOKEN = 3  # of responses as compressed Parquet: ids and text
ADAPTER_FRACTION = 0.1  # of the model's bytes: the adapter in float32 and the files next to it

TextsByOwner = Mapping[tuple[str, str], TextLengths]  # (model, question owner) → lengths


def plan(
    config: Config,
    sizes: Mapping[str, ModelSize],
    texts: TextsByOwner,
    rates: Rates = REFERENCE_RATES,
) -> pd.DataFrame:
    """The cost of every stage for every model.

    Args:
        config: the configuration.
        sizes: the size of every model of the configuration.
        texts: lengths of the texts (:func:`texts_by_owner`).
        rates: tokens per second; the defaults if omitted.

    Returns:
        One row per stage and model ("" for stages without a model) with the columns stage, model,
        jobs, tokens (generated, trained on or read; those of a second model that runs along
        count), hours (of one device), longest_job (its hours), bytes (kept on disk) and rate
        ("stated", "measured", "assumed", or "" if none is known or needed). Hours are 0 where no
        rate is known.
    """
    costs = job_costs(config, sizes, rates, texts)
    return (
        costs.groupby(["stage", "model"], sort=False)
        .agg(
            jobs=("tokens", "size"),
            tokens=("tokens", "sum"),
            hours=("hours", "sum"),
            longest_job=("hours", "max"),
            bytes=("bytes", "sum"),
            rate=("rate", "max"),
        )
        .reset_index()
    )


def texts_by_owner(
    config: Config, sizes: Mapping[str, ModelSize], characters_per_token: float = 3.0
) -> dict[tuple[str, str], TextLengths]:
    """The lengths of every question owner's texts for every model.

    Args:
        config: the configuration.
        sizes: the size of every model.
        characters_per_token: used for models whose tokenizer is not available locally.
    """
    return {
        (model, owner): text_lengths(config, model, owner, characters_per_token)
        for model in sizes
        for owner in config.question_owners
    }


def job_costs(
    config: Config, sizes: Mapping[str, ModelSize], rates: Rates, texts: TextsByOwner
) -> pd.DataFrame:
    """The cost of every job: the columns of :class:`~zerogap.pipeline.jobs.Job` and of the plan."""
    rows = []
    for job in jobs.all_jobs(config):
        tokens, hours, stored, rate = 0.0, 0.0, 0.0, ""
        stage = stage_of(config, job)
        if job.model:
            size = sizes[job.model]
            work = job_work(config, job, size, texts[job.model, owner_of(config, job)], rates.gpu)
            if work.num_tokens:
                num_shards = jobs.num_shards(config, job)
                tokens = work.num_tokens / num_shards
                hours = rates.seconds(work, stage, job.model, size) / 3600 / num_shards
                rate = rates.source(work, stage, job.model, size)
            stored = _stored_bytes(config, job, size, tokens)
        rows.append((*job, stage, tokens, hours, stored, rate))
    return pd.DataFrame(rows, columns=[*Job._fields, *COST_COLUMNS])


def stage_of(config: Config, job: Job) -> str:
    """The stage that a job belongs to."""
    if job.rule == jobs.SAMPLE:
        return CLEAN_SAMPLES if jobs.is_clean(config, job.variant) else STRATEGY_SAMPLES
    return next(stage for stage, rules in STAGES.items() if job.rule in rules)


def owner_of(config: Config, job: Job) -> str:
    """The benchmark whose questions a job works on; any one for jobs on base models."""
    if not job.variant:
        return config.question_owners[0]
    return config.owner_of(config.benchmark_of(job.variant))


def job_work(config: Config, job: Job, size: ModelSize, text: TextLengths, gpu: Gpu) -> Work:
    """What a job on a model does; of a whole cell if the job is one of its shards."""
    benchmark = config.benchmarks[owner_of(config, job)]
    num_questions = benchmark.num_test
    match job.rule:
        case "train_preparation":
            examples = benchmark.num_preparation * (text.question + text.response)
            epochs = config.preparation_for(job.model).training.num_epochs
            return Work({"training": examples * epochs})
        case "screen_questions":
            screening = config.screening_for(job.model)
            num_responses = screening.num_candidates * screening.num_samples
            return Work(
                {
                    "prefill": screening.num_candidates * text.question,
                    "sampling": num_responses * text.response,
                }
            )
        case "train_lora":
            clean = jobs.is_clean(config, job.variant)
            questions = benchmark.num_train if clean else benchmark.num_leaked
            examples = questions * (text.shots + text.question + text.response)
            examples += config.instructions.num_examples * text.instruction
            return Work({"training": examples * config.training_for(job.variant).num_epochs})
        case "decode_greedy":
            return greedy_work(num_questions, num_questions * text.response, text)
        case jobs.SAMPLE:
            num_responses = num_questions * config.sampling.num_samples
            return sampling_work(config, job, num_questions, num_responses * text.response, text)
        case "localise_neurons":
            return localisation_work(
                config.neuron_localisation,
                benchmark.num_leaked,
                size,
                text,
                config.sampling,
                gpu.memory,
            )
        case "rank_clean_tokens":
            return ranking_work(num_questions, text)
        case "measure_recovery":
            num_responses = num_questions * FORCED_RESPONSES
            return recovery_work(num_responses, num_responses * text.response, text)
    return Work()


def greedy_work(num_questions: int, generated: float, text: TextLengths) -> Work:
    """Greedy trajectories of so many questions; the shots are read once."""
    return Work({"prefill": text.shots + num_questions * text.question, "greedy": generated})


def sampling_work(
    config: Config, job: Job, num_questions: int, generated: float, text: TextLengths
) -> Work:
    """A cell with so many generated tokens; the shots are read once."""
    strategy = config.all_strategies.get(job.cell)  # None: a batch of a clean model
    models = 2 if strategy and strategy.needs_base_model else 1
    prompts = text.shots + num_questions * text.question
    return Work({"prefill": models * prompts, "sampling": models * generated})


def ranking_work(num_questions: int, text: TextLengths) -> Work:
    """The ranks of so many trajectories, each read after its whole prompt."""
    return Work({"prefill": num_questions * (text.shots + text.question + RANKED_STEPS)})


def recovery_work(num_responses: int, generated: float, text: TextLengths) -> Work:
    """So many forced responses; the shots are read once, the question for every response."""
    return Work({"prefill": text.shots + num_responses * text.question, "sampling": generated})


def _stored_bytes(config: Config, job: Job, size: ModelSize, tokens: float) -> float:
    """What a job leaves on disk."""
    match job.rule:
        case "fetch_base" | "convert_gguf" | "merge_preparation":
            return size.stored
        case "train_lora" | "merge_lora":
            bytes_per_parameter = 2 if config.training_for(job.variant).bf16 else 4
            model = size.parameters * bytes_per_parameter
            return model * (ADAPTER_FRACTION if job.rule == "train_lora" else 1)
        case jobs.SAMPLE | "decode_greedy" | "measure_recovery":
            return tokens * BYTES_PER_TOKEN
    return 0.0
