"""What a run will cost: jobs, tokens, device hours and disk of each stage and model.

Jobs are counted (:mod:`zerogap.pipeline.jobs`), tokens follow from the protocol and the length of
the texts (:mod:`zerogap.pipeline.text_lengths`), hours from rates. docs/planning.md says where the
default rates come from, and what is not included.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pandas as pd

from zerogap.config import Config
from zerogap.families import ModelSize
from zerogap.pipeline import jobs
from zerogap.pipeline.jobs import Job
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
    "Base models": ("fetch_base", "pretrain_base"),
    "LoRA training": ("write_training_data", "train_lora", "merge_lora"),
    "Greedy trajectories": ("decode_greedy",),
    CLEAN_SAMPLES: (jobs.SAMPLE,),
    STRATEGY_SAMPLES: (jobs.SAMPLE,),
    "Merging of shards": ("merge_shards",),
    "Neuron localisation": ("localise_neurons",),
    "Token ranks": ("rank_clean_tokens",),
    "Filters": ("filter_responses",),
    "Metrics": ("make_all_zero", "compute_metrics", "measure_overlap"),
}

REFERENCE_PARAMETERS = 7e9  # of the model to which the default rates apply
MIN_PARAMETERS_TO_SCALE = 5e8  # below, fixed costs per step dominate
BYTES_PER_TOKEN = 3  # of responses as compressed Parquet: ids and text
ADAPTER_FRACTION = 0.1  # of the model's bytes: the adapter in float32 and the files next to it

DEFAULT_RATES = {"training": 3000, "sampling": 4000, "greedy": 2000, "prefill": 10_000}
RateByModel = Mapping[str, float]  # under "": of a model with REFERENCE_PARAMETERS


@dataclass(frozen=True)
class Rates:
    """Tokens per second on one device.

    The defaults are arithmetic for one A100 with 80 GB in bfloat16, not measurements. A model
    without a rate of its own gets that of a 7B model in inverse proportion to its parameters, or
    none (NaN) if it has fewer than MIN_PARAMETERS_TO_SCALE.

    Attributes:
        training: tokens of training examples, prompts included.
        sampling: generated tokens, many responses per question.
        greedy: generated tokens, one response per question.
        prefill: tokens of prompts, and of responses that are only scored.
    """

    training: RateByModel = field(default_factory=dict)
    sampling: RateByModel = field(default_factory=dict)
    greedy: RateByModel = field(default_factory=dict)
    prefill: RateByModel = field(default_factory=dict)

    def rate(self, kind: str, model: str, parameters: int) -> float:
        """The rate of one kind of work for one model."""
        rates: RateByModel = getattr(self, kind)
        if model in rates:
            return rates[model]
        if parameters < MIN_PARAMETERS_TO_SCALE:
            return math.nan
        return rates.get("", DEFAULT_RATES[kind]) * REFERENCE_PARAMETERS / parameters


def plan(
    config: Config,
    sizes: Mapping[str, ModelSize],
    rates: Rates | None = None,
    characters_per_token: float = 3.0,
) -> pd.DataFrame:
    """The cost of every stage for every model.

    Args:
        config: the configuration.
        sizes: the size of every model of the configuration.
        rates: tokens per second; the defaults if omitted.
        characters_per_token: used for models whose tokenizer is not available locally.

    Returns:
        One row per stage and model ("" for stages without a model) with the columns stage, model,
        jobs, tokens (generated, trained on or read; those of a second model that runs along
        count), hours (of one device), longest_job (its hours) and bytes (kept on disk). Hours are
        0 where no rate is known.
    """
    rates = rates or Rates()
    lengths = {
        (model, owner): text_lengths(config, model, owner, characters_per_token)
        for model in sizes
        for owner in config.question_owners
    }
    rows = []
    for job in jobs.all_jobs(config):
        tokens, hours, stored = 0.0, 0.0, 0.0
        if job.model:
            owner = _owner(config, job)
            size, text = sizes[job.model], lengths[job.model, owner]
            num_shards = config.sampling.num_shards if job.rule == jobs.SAMPLE else 1
            for kind, cell_tokens in _tokens(config, job, size, text):
                job_tokens = cell_tokens / num_shards
                tokens += job_tokens
                hours += job_tokens / rates.rate(kind, job.model, size.parameters) / 3600
            stored = _stored_bytes(config, job, size, tokens)
        rows.append((_stage(config, job), job.model, tokens, hours, stored))
    costs = pd.DataFrame(rows, columns=["stage", "model", "tokens", "hours", "bytes"])
    return (
        costs.groupby(["stage", "model"], sort=False)
        .agg(
            jobs=("tokens", "size"),
            tokens=("tokens", "sum"),
            hours=("hours", "sum"),
            longest_job=("hours", "max"),
            bytes=("bytes", "sum"),
        )
        .reset_index()
    )


def _stage(config: Config, job: Job) -> str:
    if job.rule == jobs.SAMPLE:
        return CLEAN_SAMPLES if jobs.is_clean(config, job.variant) else STRATEGY_SAMPLES
    return next(stage for stage, rules in STAGES.items() if job.rule in rules)


def _owner(config: Config, job: Job) -> str:
    """The benchmark whose questions a job works on; any one for jobs on base models."""
    if not job.variant:
        return config.question_owners[0]
    return config.owner_of(config.benchmark_of(job.variant))


def _tokens(
    config: Config, job: Job, size: ModelSize, text: TextLengths
) -> Iterator[tuple[str, float]]:
    """(kind of rate, tokens) of a job; of a whole cell if the job is one of its shards."""
    benchmark = config.benchmarks[_owner(config, job)]
    num_questions = benchmark.num_test
    prompts = text.shots + num_questions * text.question  # the shots are read once
    match job.rule:
        case "pretrain_base":
            values = config.pretraining_for(job.model)
            yield "training", values.max_steps * values.batch_size * values.sequence_length
        case "train_lora":
            clean = jobs.is_clean(config, job.variant)
            questions = benchmark.num_train if clean else benchmark.num_leaked
            examples = questions * (text.shots + text.question + text.response)
            examples += config.instructions.num_examples * text.instruction
            yield "training", examples * config.training_for(job.variant).num_epochs
        case "decode_greedy":
            yield "prefill", prompts
            yield "greedy", num_questions * text.response
        case jobs.SAMPLE:
            strategy = config.all_strategies.get(job.cell)  # None: a batch of a clean model
            models = 2 if strategy and strategy.needs_base_model else 1
            generated = num_questions * config.sampling.num_samples * text.response
            yield "prefill", models * prompts
            yield "sampling", models * generated
        case "localise_neurons":
            yield from _localisation_tokens(config, benchmark.num_leaked, size, text)
        case "rank_clean_tokens":
            yield "prefill", prompts


def _localisation_tokens(
    config: Config, num_leaked: int, size: ModelSize, text: TextLengths
) -> Iterator[tuple[str, float]]:
    """Tokens of the search for shortcut neurons, which has two steps.

    The first scores the leaked questions' responses once with each model. The second decodes
    `num_questions` of them with each of the two models: once unpatched, and once for every group of
    neurons together with the base model. The last layer has no groups.
    """
    localisation = config.neuron_localisation
    yield "prefill", 2 * num_leaked * (text.shots + text.question + text.response)
    num_groups = sum(math.ceil(width / localisation.group_size) for width in size.widths[:-1])
    num_passes = 2 * (1 + 2 * num_groups)
    num_questions = min(localisation.num_questions, num_leaked)
    yield "prefill", num_passes * (text.shots + num_questions * text.question)
    yield "greedy", num_passes * num_questions * text.response


def _stored_bytes(config: Config, job: Job, size: ModelSize, tokens: float) -> float:
    """What a job leaves on disk."""
    match job.rule:
        case "fetch_base" | "pretrain_base":
            return size.stored
        case "train_lora" | "merge_lora":
            bytes_per_parameter = 2 if config.training_for(job.variant).bf16 else 4
            model = size.parameters * bytes_per_parameter
            return model * (ADAPTER_FRACTION if job.rule == "train_lora" else 1)
        case jobs.SAMPLE | "decode_greedy":
            return tokens * BYTES_PER_TOKEN
    return 0.0
