"""What a run will cost before it is started: jobs, tokens, device hours and disk of every stage.

Jobs are counted (:mod:`zerogap.pipeline.jobs`), tokens follow from the protocol and the length of the texts,
hours from rates that were measured elsewhere: docs/planning.md says where, and what is left out.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import pandas as pd

from zerogap.data import gsm8k_format, prompts
from zerogap.data.extraction import extraction_rule
from zerogap.data.toy.instructions import instructions
from zerogap.data.toy.word_problems import problems
from zerogap.pipeline import jobs, model_sizes
from zerogap.pipeline.jobs import Config, Job
from zerogap.pipeline.model_sizes import ModelSize
from zerogap.reporting.render import Cell, Column, Row, Table, format_number
from zerogap.training.examples import AFTER_RESPONSE

STAGES = {
    "Data": (
        "fetch_questions", "split_questions", "paraphrase_questions", "join_paraphrases", "prepare_instructions", "prepare_exemplars",
    ),
    "Base models": ("fetch_base", "pretrain_base"),
    "LoRA training": ("write_training_data", "train_lora", "merge_lora"),
    "Greedy trajectories": ("decode_greedy",),
    "Samples of the clean model": ("sample_clean_responses",),
    "Samples of the strategies": ("sample_responses",),
    "Shards merged": ("merge_shards",),
    "Shortcut neurons": ("localise_neurons",),
    "Ranks": ("rank_clean_tokens",),
    "Filters": ("filter_responses",),
    "MetricTable": ("make_all_zero", "compute_metrics", "measure_overlap"),
}  # fmt: skip

REFERENCE = 7e9  # parameters of the model whose rates are given
SMALLEST = 5e8  # parameters: below, a step's fixed costs rule and no rate can be scaled
BYTES_A_TOKEN = 3  # of responses as Parquet: ids and text, compressed
ADAPTER = 0.1  # of the model's bytes: the adapter in float32 and the files beside it
GSM8K_TEXT = (240, 270)  # characters: the test set's mean question; rationale and answer
INSTRUCTION_TEXT = 1700  # characters: an OpenOrca row, prompt and response; an estimate

DEFAULTS = {"training": 3000, "sampling": 4000, "greedy": 2000, "reading": 10_000}
Rate = Mapping[str, float]  # by model; under "" of a model of REFERENCE parameters


@dataclass(frozen=True)
class Rates:
    """Tokens a second on one device.

    The defaults are arithmetic for one A100 with 80 GB in bfloat16, not measurements. A model
    that is not named gets the rate of a 7B model in inverse proportion to its parameters, and
    none (NaN) where it has less than SMALLEST.

    Attributes:
        training: tokens of training examples, prompts included.
        sampling: generated tokens, many samples of every question.
        greedy: generated tokens, one response of every question.
        reading: tokens of prompts and of responses that are only scored.
    """

    training: Rate = field(default_factory=dict)
    sampling: Rate = field(default_factory=dict)
    greedy: Rate = field(default_factory=dict)
    reading: Rate = field(default_factory=dict)

    def of(self, kind: str, model: str, parameters: int) -> float:
        """Tokens a second of one kind for one model."""
        given = getattr(self, kind)
        if model in given:
            return given[model]
        if parameters < SMALLEST:
            return math.nan
        return given.get("", DEFAULTS[kind]) * REFERENCE / parameters


@dataclass(frozen=True)
class Lengths:
    """Mean tokens of the texts, in one model's tokens."""

    shots: float
    question: float
    response: float
    instruction: float


def size(config: Config, model: str) -> ModelSize:
    """The size of a model, of one that is not here by asking the hub.

    Raises:
        InputError: it cannot be found out.
    """
    entry, folder = config["models"][model], jobs.base_folder(config, model)
    if folder:
        return model_sizes.of_folder(folder, entry["family"])
    if entry["base"] == jobs.PRETRAINED:
        return model_sizes.from_scratch(entry["family"], pretraining(config, model))
    return model_sizes.on_hub(entry["base"], entry.get("revision"), entry["family"])


def lengths(config: Config, model: str, characters_per_token: float) -> Lengths:
    """The texts' lengths for a model: of what is here measured, of the hub's data as published.

    Args:
        characters_per_token: where the model's tokenizer is not here yet.
    """
    data = config["data"]
    shots = prompts.DEFAULT_TEMPLATE.few_shot_prefix(
        prompts.exemplars(config["prompt"]["exemplars"], config["prompt"]["shots"])
    )
    question, response = GSM8K_TEXT
    if data["source"] != "hub":
        if data["source"] == "files":
            rows: list[Any] = gsm8k_format.load(
                data["files"]["test"], extraction_rule(data["extraction"]).parse_gold
            )
        else:
            rows = problems(data["n_test"], config["seed"], "test")
        question = mean(len(row.question) for row in rows)
        response = mean(
            len(prompts.DEFAULT_TEMPLATE.response(row.rationale, row.gold)) for row in rows
        )
    instruction: float = INSTRUCTION_TEXT
    if data["instructions"]["source"] == "generated":
        rows = instructions(data["instructions"]["n"], config["seed"])
        instruction = mean(sum(map(len, row.values())) for row in rows)

    folder = jobs.base_folder(config, model)
    if folder and (folder / "tokenizer.json").is_file():
        from tokenizers import Tokenizer

        spelled = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(shots).ids
        characters_per_token = len(shots) / len(spelled)
    asked = len(prompts.DEFAULT_TEMPLATE.prompt("", "")) + question
    response += len(AFTER_RESPONSE)
    return Lengths(
        shots=len(shots) / characters_per_token,
        question=asked / characters_per_token,
        response=min(response / characters_per_token + 1, config["decoding"]["max_new_tokens"]),
        instruction=instruction / characters_per_token + 1,
    )


def plan(
    config: Config,
    sizes: Mapping[str, ModelSize],
    rates: Rates | None = None,
    characters_per_token: float = 3.0,
) -> pd.DataFrame:
    """What every stage costs, by model ("" where no model has a part in it).

    Returns:
        Columns stage, model, jobs, tokens (generated, trained on or read; a model that is run
        beside the first counts), hours (of one device), longest (the same of the longest job),
        bytes (on disk, to stay). Hours are 0 where no rate is known.
    """
    rates = rates or Rates()
    of_rule = {name: stage for stage, rules in STAGES.items() for name in rules}
    texts = {model: lengths(config, model, characters_per_token) for model in sizes}
    rows = []
    for job in jobs.all_jobs(config):
        tokens, hours, held = 0.0, 0.0, 0.0
        if job.model:
            size = sizes[job.model]
            share = (
                config["decoding"]["shards"]
                if job.rule in ("sample_responses", "sample_clean_responses")
                else 1
            )
            for kind, some in _tokens(config, job, size, texts[job.model]):
                tokens += some / share
                hours += some / share / rates.of(kind, job.model, size.parameters) / 3600
            held = _bytes(config, job, size, tokens)
        rows.append((of_rule[job.rule], job.model, tokens, hours, held))
    every = pd.DataFrame(rows, columns=["stage", "model", "tokens", "hours", "bytes"])
    by_stage = every.groupby(["stage", "model"], sort=False)
    return by_stage.agg(
        jobs=("tokens", "size"),
        tokens=("tokens", "sum"),
        hours=("hours", "sum"),
        longest=("hours", "max"),
        bytes=("bytes", "sum"),
    ).reset_index()


def _tokens(
    config: Config, job: Job, size: ModelSize, text: Lengths
) -> Iterator[tuple[str, float]]:
    """(kind of rate, tokens) of a job, of a cell as a whole."""
    data, decoding = config["data"], config["decoding"]
    n, n_leaked, prompt = data["n_test"], data["n_leaked"], text.shots + text.question
    match job.rule:
        case "pretrain_base":
            values = pretraining(config, job.model)
            steps = values["steps"] * values["batch_size"]
            yield "training", steps * values["sequence_length"]
        case "train_lora":
            questions = data["n_train"] if job.benchmark == jobs.CLEAN else n_leaked
            examples = questions * (prompt + text.response)
            examples += data["instructions"]["n"] * text.instruction
            yield "training", examples * training_values(config, job.benchmark)["epochs"]
        case "decode_greedy":
            yield "reading", text.shots + n * text.question
            yield "greedy", n * text.response
        case "clean_samples" | "sample_responses":
            borrows = jobs.strategies(config).get(job.cell, {}).get("borrows", False)
            yield "reading", (1 + borrows) * (text.shots + n * text.question)
            yield "sampling", (1 + borrows) * n * decoding["samples"] * text.response
        case "localise_neurons":
            yield "reading", 2 * n_leaked * (prompt + text.response)
            asked = min(config["localisation"]["questions"], n_leaked)
            groups = sum(
                math.ceil(width / config["localisation"]["group_size"])
                for width in size.widths[:-1]
            )
            # Two models, each once as it is and once a group together with the donor.
            passes = 2 * (1 + 2 * groups)
            yield "reading", passes * (text.shots + asked * text.question)
            yield "greedy", passes * asked * text.response
        case "rank_clean_tokens":
            yield "reading", text.shots + n * text.question


def _bytes(config: Config, job: Job, size: ModelSize, tokens: float) -> float:
    """What a job leaves on disk."""
    match job.rule:
        case "base_model" | "pretrain_base":
            return size.stored
        case "adapter" | "merge_lora":
            bf16 = training_values(config, job.benchmark)["bf16"]
            whole = size.parameters * (2 if bf16 else 4)
            return whole * (ADAPTER if job.rule == "adapter" else 1)
        case "clean_samples" | "samples" | "decode_greedy":
            return tokens * BYTES_A_TOKEN
    return 0.0


def table(
    found: pd.DataFrame, config: Config, sizes: Mapping[str, ModelSize], rates: Rates | None = None
) -> Table:
    """The plan for people: a row a stage, a row a model, and the sum."""
    rates = rates or Rates()
    total = {"jobs": "sum", "tokens": "sum", "hours": "sum", "longest": "max", "bytes": "sum"}
    labels = {name: entry["label"] for name, entry in config["models"].items()}

    def row(key: str, name: str, part: pd.Series, section: str = "", bold: bool = False) -> Row:
        cells = (
            Cell(value=int(part.jobs), decimals=0),
            Cell(value=part.tokens / 1e6, decimals=2) if part.tokens else Cell(),
            Cell(value=part.hours, decimals=2) if part.hours else Cell(),
            Cell(value=part.longest, decimals=2) if part.hours else Cell(),
            Cell(value=part.bytes / 1e9, decimals=2) if part.bytes else Cell(),
        )
        return Row(key, name, cells, section, bold)

    by_stage = found.groupby("stage", sort=False).agg(total)
    by_model = found[found.model != ""].groupby("model", sort=False).agg(total)
    by_stage = by_stage.loc[[name for name in STAGES if name in by_stage.index]]
    rows = [row(name, name, part, "By stage") for name, part in by_stage.iterrows()]
    rows += [row(name, labels[name], part, "By model") for name, part in by_model.iterrows()]
    rows.append(row("sum", "All", found.agg(total), "Sum", bold=True))
    speeds = {
        f"{labels[model]} ({size.parameters / 1e9:.2g}B)": {
            kind: rates.of(kind, model, size.parameters) for kind in DEFAULTS
        }
        for model, size in sizes.items()
    }
    unknown = [name for name, own in speeds.items() if any(map(math.isnan, own.values()))]
    known = [
        f"{name}: " + ", ".join(f"{kind} {format_number(rate, 0)}" for kind, rate in own.items())
        for name, own in speeds.items()
        if name not in unknown
    ]
    notes = [f"Tokens a second on one device: {'; '.join(known)}."] if known else []
    if unknown:
        notes.append(
            f"No hours for {', '.join(unknown)}: too small to scale a 7B model's rates; "
            "give theirs (--sampling MODEL=RATE, and so on)."
        )
    return Table(
        label="tab:plan",
        caption=f"Plan of the run “{config['run']}”: estimates, not promises.",
        index_label="Stage",
        columns=(
            Column("jobs", "Jobs"),
            Column("million_tokens", "Million tokens"),
            Column("gpu_hours", "GPU hours"),
            Column("longest_job", "Longest job, h"),
            Column("gigabytes", "Disk, GB"),
        ),
        rows=tuple(rows),
        notes=(
            *notes,
            "Tables and figures come on top: seconds each, where Snakemake runs.",
        ),
    )
