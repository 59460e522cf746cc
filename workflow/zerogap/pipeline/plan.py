"""What a run will cost: jobs × tokens ÷ rates, and the disk space of what it makes.

Jobs are counted, not estimated. All texts are taken to be as long as those of GSM8K and OpenOrca
under Llama-2's tokenizer; a question's prompt is read once for all its responses and does not count
in sampling. A rate is given, measured in a finished run or assumed (docs/reproduce.md says where
the assumed rates come from).
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from zerogap.config import Config
from zerogap.errors import InputError
from zerogap.families import ModelSize
from zerogap.pipeline import jobs, targets
from zerogap.pipeline.jobs import Job
from zerogap.pipeline.parameters import FORCED_RESPONSES, RANKED_STEPS
from zerogap.reporting.render import Cell, Column, Row, Table

QUESTION, RESPONSE, INSTRUCTION = 90, 100, 570  # tokens; an instruction with its response
GIVEN, MEASURED, ASSUMED = "given", "measured", "assumed"
# Tokens per second of a 7B model in bfloat16 on one A100 with 80 GB: training and prefill by the
# number of operations, the others as measured on an H200 and scaled by the memory bandwidth.
ASSUMED_RATES = {
    "training": 3000,
    "sampling": 8000,
    "greedy": 5000,
    "search": 1400,  # of neurons: twenty rows at once
    "prefill": 10_000,
}
COMPUTE_BOUND = ("training", "prefill")
REFERENCE_PARAMETERS = 7e9
MIN_PARAMETERS = 4e8  # below, fixed costs per step dominate and no rate is assumed
GPUS = {  # memory bandwidth and dense bfloat16 operations relative to the A100's, by data sheet
    "a100-80gb": (1.0, 1.0),
    "a100-40gb": (0.76, 1.0),
    "h100-80gb": (1.64, 3.17),
    "h200-141gb": (2.35, 3.17),
    "rtx-4090": (0.49, 0.53),
    "rtx-3090": (0.46, 0.23),
}
BYTES_PER_TOKEN = 3  # of responses as compressed Parquet: ids and text
ADAPTER_FRACTION = 0.1  # of a model's bytes
RETRIES = 2  # of a job that exceeds its time limit, in the Slurm profile
COLUMNS = ["rule", "model", "tokens", "rate", "source", "hours", "wall_hours", "bytes"]


@dataclass(frozen=True)
class Rates:
    """Tokens per second on one device.

    Attributes:
        given: by "KIND" for all models or "MODEL.KIND"; the kinds are those of `ASSUMED_RATES`.
        measured: (rule, model) → rate in a finished run (:func:`measured_rates`).
        gpu: a key of `GPUS`, of the assumed rates.
    """

    given: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[tuple[str, str], float] = field(default_factory=dict)
    gpu: str = "a100-80gb"

    def of(self, job: Job, kind: str, size: ModelSize) -> tuple[float, str]:
        """The rate of a job, NaN if none is known, and where it comes from."""
        for key in (f"{job.model}.{kind}", kind):
            if key in self.given:
                return self.given[key], GIVEN
        if (job.rule, job.model) in self.measured:
            return self.measured[job.rule, job.model], MEASURED
        if size.parameters < MIN_PARAMETERS:
            return math.nan, ""
        bandwidth, operations = GPUS[self.gpu]
        factor = operations if kind in COMPUTE_BOUND else bandwidth
        return factor * ASSUMED_RATES[kind] * REFERENCE_PARAMETERS / size.parameters, ASSUMED


def plan(config: Config, sizes: Mapping[str, ModelSize], rates: Rates) -> pd.DataFrame:
    """Every job that takes long or stores a model, of a run of which nothing exists yet.

    One row per job with the columns rule, model, tokens (generated, trained on or read), rate (per
    second; NaN if unknown or not needed), source (of the rate), hours (of all its devices together;
    NaN if the rate is unknown), wall_hours (of the job) and bytes (kept on disk).
    """
    rows = []
    for job in jobs.costly_jobs(config):
        size = sizes[job.model]
        kind, tokens = work(config, job, size)
        tokens /= jobs.num_shards(config, job)
        rate, source = rates.of(job, kind, size) if tokens else (math.nan, "")
        hours = tokens / rate / 3600 if tokens else 0.0
        wall_hours = hours / _num_devices(config, job)
        stored = _stored_bytes(config, job, size, tokens)
        rows.append((job.rule, job.model, tokens, rate, source, hours, wall_hours, stored))
    return pd.DataFrame(rows, columns=COLUMNS)


def measured_rates(run: Path, sizes: Mapping[str, ModelSize]) -> dict[tuple[str, str], float]:
    """(rule, model) → tokens per second of the jobs of a finished run.

    Its tokens are those of its plan, so that an error in the length of the texts cancels out.
    Models without a size are left out. The run's folder is results/RUN; its configuration is in
    reports/RUN.

    Raises:
        InputError: the run is not finished, or has no timing of one of the models.
    """
    root = run.absolute().parents[1]
    path = root / "reports" / run.name / "checks/provenance.json"
    if not path.is_file():
        raise InputError(f"--from {run}: is not a finished run: {path} does not exist")
    try:
        config = Config.model_validate(json.loads(path.read_text(encoding="utf-8"))["config"])
    except ValidationError as error:
        raise InputError(
            f"--from {run}: its configuration is not valid here ({error.errors()[0]['msg']}); call "
            "the command where the run was started"
        ) from error
    tokens, seconds = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    for timed in (*targets.timed_jobs(config), *targets.preparation_jobs(config)):
        job, time = timed.job, targets.seconds(root / timing for timing in timed.timings)
        if job.model in sizes and time > 0:
            key = job.rule, job.model
            tokens[key] = tokens.get(key, 0) + work(config, job, sizes[job.model])[1]
            seconds[key] = seconds.get(key, 0) + time * _num_devices(config, job)
    if not tokens:
        raise InputError(f"--from {run}: has no timings of {', '.join(sizes)}")
    return {key: tokens[key] / seconds[key] for key in tokens}


def _num_devices(config: Config, job: Job) -> int:
    match job.rule:
        case "train_preparation":
            training = config.preparation_for(job.model).training
        case "train_lora":
            training = config.training_for(job.variant)
        case _:
            return 1
    return training.num_gpus_used or 1


def work(config: Config, job: Job, size: ModelSize) -> tuple[str, float]:
    """The kind of rate of a job on a model, and its tokens; of a cell if the job is a shard."""
    variant = job.variant or config.question_owners[0]  # any: a job without one uses none
    benchmark = config.benchmarks[config.benchmark_of(variant)]
    prompt = benchmark.prompt.num_shots * (QUESTION + RESPONSE) + QUESTION
    response = min(RESPONSE, config.sampling.max_new_tokens)
    match job.rule:
        case "train_preparation":
            preparation = config.preparation_for(job.model)
            questions = config.benchmarks[preparation.benchmark].num_preparation
            tokens = preparation.training.num_epochs * questions * (QUESTION + RESPONSE)
            return "training", tokens
        case "train_lora":
            clean = config.is_clean(job.variant)
            questions = benchmark.num_train if clean else benchmark.num_leaked
            examples = questions * (prompt + RESPONSE)
            examples += config.instructions.num_examples * INSTRUCTION
            return "training", examples * config.training_for(job.variant).num_epochs
        case "decode_greedy":
            return "greedy", benchmark.num_test * response
        case jobs.SAMPLE:
            strategy = config.all_strategies.get(job.cell)  # None: a batch of a clean model
            models = 2 if strategy and strategy.needs_base_model else 1
            num_responses = benchmark.num_test * config.sampling.num_samples
            return "sampling", models * num_responses * response
        case "localise_neurons":
            search = config.neuron_localisation
            # The last layer has no groups. Both models decode unpatched and with every group.
            groups = sum(math.ceil(width / search.group_size) for width in size.widths[:-1])
            questions = min(search.num_questions, benchmark.num_leaked)
            return "search", 2 * (1 + groups) * questions * response
        case "rank_clean_tokens":
            return "prefill", benchmark.num_test * (prompt + RANKED_STEPS)
        case "measure_recovery":
            return "sampling", benchmark.num_test * FORCED_RESPONSES * response
    return "", 0.0


def _stored_bytes(config: Config, job: Job, size: ModelSize, tokens: float) -> float:
    match job.rule:
        case "fetch_base" | "convert_gguf" | "merge_preparation":
            return size.stored
        case "train_lora" | "merge_lora":
            model = size.parameters * (2 if config.training_for(job.variant).bf16 else 4)
            return model * (ADAPTER_FRACTION if job.rule == "train_lora" else 1)
        case jobs.SAMPLE | "decode_greedy" | "measure_recovery":
            return tokens * BYTES_PER_TOKEN
    return 0.0


def plan_table(planned: pd.DataFrame, config: Config) -> Table:
    """The table of a plan (:func:`plan`): one row per rule and model, and the sum."""
    rows = [
        _row(f"{rule}, {config.models[str(model)].label}", table)
        for (rule, model), table in planned.groupby(["rule", "model"], sort=False)
    ]
    rows.append(_row("Total", planned, bold=True))
    notes = [
        f"Assumed: {QUESTION} tokens per question, {RESPONSE} per response, {INSTRUCTION} per "
        "instruction. Jobs on data, paraphrases from a chat model, metrics, tables and figures are "
        "not listed."
    ]
    if planned.hours.isna().any():
        notes.append(
            "No hours where no rate is known: give one with --rate KIND=TOKENS_PER_SECOND "
            f"({', '.join(ASSUMED_RATES)}), or --from results/RUN, a finished run."
        )
    too_long = {
        f"{rule} (at most {allowed / 60:.3g} h)"
        for rule, hours in planned[planned.hours > 0].groupby("rule").wall_hours.max().items()
        if hours * 60 > (allowed := jobs.minutes_allowed(config, str(rule), RETRIES + 1))
    }
    if too_long:
        notes.append(
            f"Warning: {', '.join(sorted(too_long))} may need more time than {RETRIES + 1} "
            "attempts have: use more shards, or raise max_runtime or, with set-resources, runtime."
        )
    return Table(
        label="tab:plan",
        caption=f"Estimated cost of the run “{config.run}”.",
        index_label="Jobs",
        columns=(
            Column("jobs", "Jobs", decimals=0),
            Column("million_tokens", "Million tokens"),
            Column("tokens_per_second", "Tokens/s", decimals=0),
            Column("rate", "Rate", align="l"),
            Column("gpu_hours", "GPU hours"),
            Column("longest_job", "Longest job (h)"),
            Column("gigabytes", "Disk (GB)"),
        ),
        rows=tuple(rows),
        notes=tuple(notes),
        decimals=2,
    )


def _row(name: str, table: pd.DataFrame, bold: bool = False) -> Row:
    rates, sources = table.rate.dropna().unique(), sorted(set(table.source) - {""})
    cells = (
        Cell(len(table)),
        _cell(table.tokens.sum() / 1e6),
        Cell(rates[0]) if len(rates) == 1 else Cell(),
        Cell(text=", ".join(sources)),
        _cell(table.hours.sum()),
        _cell(table.wall_hours.max()),
        _cell(table.bytes.sum() / 1e9),
    )
    return Row(name, name, cells, bold=bold)


def _cell(value: float) -> Cell:
    return Cell(value) if value > 0 else Cell()
