"""What the jobs of a finished run did and how long they took, as rates for a plan.

The seconds are those of Snakemake's benchmark files, the tokens those of the files that the jobs
made. A measured speed is that of a stage and a model: the time that the assumed rates
(:data:`zerogap.pipeline.rates.REFERENCE_RATES`) give for the same work, divided by the time taken.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zerogap.config import Config
from zerogap.errors import InputError
from zerogap.families import ModelSize
from zerogap.io import parquet
from zerogap.pipeline import jobs, planning, targets
from zerogap.pipeline.jobs import Job
from zerogap.pipeline.localisation_cost import localisation_work
from zerogap.pipeline.model_sizes import size_of_folder
from zerogap.pipeline.planning import STAGES, TextsByOwner
from zerogap.pipeline.rates import REFERENCE_RATES, Rates, Work
from zerogap.pipeline.text_lengths import TextLengths

MAX_SIZE_RATIO = 1.1  # of the parameters of a model planned and the one that was run
SAME_WORK = {  # if the run has no job of a stage, the speed of this one applies
    planning.CLEAN_SAMPLES: planning.STRATEGY_SAMPLES,
    planning.STRATEGY_SAMPLES: planning.CLEAN_SAMPLES,
}


class MeasuredJob(NamedTuple):
    """A job of a finished run.

    Attributes:
        job: the job; a cell is one job even if it has shards.
        stage: the stage it belongs to.
        seconds: wall-clock time, summed over its shards.
        nominal_seconds: what the same work takes at the reference rates.
    """

    job: Job
    stage: str
    seconds: float
    nominal_seconds: float


def measured_jobs(
    config: Config, run: Path, sizes: Mapping[str, ModelSize], texts: TextsByOwner
) -> list[MeasuredJob]:
    """The jobs of a configuration that a finished run has done and timed.

    The run may be of another scale than the configuration: with fewer questions, samples or
    strategies. Models of another size under the same key are left out.

    Args:
        config: the configuration that is planned.
        run: the run's folder, `results/<run>`.
        sizes: the size of every model of the configuration.
        texts: lengths of the prompts (:func:`zerogap.pipeline.planning.texts_by_owner`).

    Raises:
        InputError: the run has no timings of a job of the configuration.
    """
    measured = []
    for job in jobs.model_jobs(config):
        size = sizes[job.model]
        if not _is_same_model(run / job.model, config.models[job.model].family, size):
            continue
        timings = _timings(run, job)
        text = texts[job.model, planning.owner_of(config, job)]
        work = _work(config, run, job, size, text) if timings else None
        if work is not None:
            seconds = targets.seconds(timings)
            nominal = REFERENCE_RATES.nominal_seconds(work, job.model, size)
            measured.append(MeasuredJob(job, planning.stage_of(config, job), seconds, nominal))
    if not measured:
        raise InputError(
            f"{run}: has no timings of a model of the configuration; give the folder of a finished "
            f"run, results/<run>, of the same models ({', '.join(config.models)})"
        )
    return measured


def speeds(measured: Iterable[MeasuredJob]) -> dict[tuple[str, str], float]:
    """(stage, model) → measured speed, relative to the reference rates."""
    table = pd.DataFrame(
        [(job.stage, job.job.model, job.seconds, job.nominal_seconds) for job in measured],
        columns=["stage", "model", "seconds", "nominal"],
    )
    totals = table.groupby(["stage", "model"], sort=False).sum()
    by_stage = dict(zip(totals.index, totals.nominal / totals.seconds, strict=True))
    similar = {
        (stage, model): by_stage[other, model]
        for stage, other in SAME_WORK.items()
        for model in table.model.unique()
        if (other, model) in by_stage
    }
    return similar | by_stage


def comparison(
    config: Config,
    measured: list[MeasuredJob],
    sizes: Mapping[str, ModelSize],
    texts: TextsByOwner,
) -> pd.DataFrame:
    """The prediction for a finished run of this configuration, and what it took.

    The jobs of each trained model are predicted from the speeds of the run's other trained models,
    so no job predicts itself. A stage that only one trained model has is not predicted.

    Args:
        config: the run's configuration.
        measured: the run's jobs (:func:`measured_jobs`).
        sizes: the size of every model.
        texts: lengths of the texts.

    Returns:
        One row per job with the columns stage, predicted (seconds, NaN if not predicted) and
        measured (seconds), in the order of the stages.
    """
    by_job = {job.job: job for job in measured}
    rows = []
    for variant in config.variants:
        others = speeds(job for job in measured if job.job.variant != variant)
        costs = planning.job_costs(config, sizes, Rates(speeds=others), texts)
        hours = costs.groupby(list(Job._fields)).hours.sum()
        for job, actual in by_job.items():
            if job.variant == variant:
                known = (actual.stage, job.model) in others
                seconds = 3600 * hours[tuple(job)] if known else math.nan
                rows.append((actual.stage, seconds, actual.seconds))
    table = pd.DataFrame(rows, columns=["stage", "predicted", "measured"])
    return table.sort_values("stage", key=lambda stages: stages.map(list(STAGES).index))


def _is_same_model(folder: Path, family: str, size: ModelSize) -> bool:
    """Whether the models in a folder of the run have the size that is planned."""
    for path in sorted(folder.glob("*/model")):
        ratio = size_of_folder(path, family).parameters / size.parameters
        return 1 / MAX_SIZE_RATIO < ratio < MAX_SIZE_RATIO
    return False


def _timings(run: Path, job: Job) -> list[Path]:
    """Snakemake's benchmark files of a job, one per shard.

    Files of an earlier run with another number of shards are left out.
    """
    folder, name = run / "timings" / job.model / job.variant, targets.timing_name(job)
    files = [*folder.glob(f"{name}.tsv"), *folder.glob(f"{name}.shard-*.tsv")]
    newest = max(files, key=lambda path: path.stat().st_mtime, default=Path())
    return sorted(path for path in files if _num_shards(path) == _num_shards(newest))


def _num_shards(timing: Path) -> str:
    """The number of shards in the name of a benchmark file; "" if there is one."""
    return timing.stem.partition("-of-")[2]


def _work(config: Config, run: Path, job: Job, size: ModelSize, text: TextLengths) -> Work | None:
    """What a job of the run did; None if a file that says so is missing or cannot be read."""
    folder = run / job.model / job.variant
    try:
        match job.rule:
            case "train_lora":
                return Work({"training": _trained_tokens(folder, text)})
            case "decode_greedy":
                num_questions, generated = _responses(folder / "greedy.parquet")
                return planning.greedy_work(num_questions, generated, text)
            case jobs.SAMPLE:
                num_questions, generated = _responses(
                    folder / "cells" / job.cell / "samples.parquet"
                )
                return planning.sampling_work(config, job, num_questions, generated, text)
            case "localise_neurons":
                return _localisation(config, run, job, size, text)
            case "rank_clean_tokens":
                table = parquet.read(folder / "ranks.parquet", "ranks")
                return planning.ranking_work(table.question_id.nunique(), text)
            case "measure_recovery":
                table = parquet.read(folder / "recovery.parquet", "recovery")
                return planning.recovery_work(
                    len(table), int(table["token_ids"].map(len).sum()), text
                )
    except parquet.DAMAGE:
        return None
    return None


def _trained_tokens(folder: Path, text: TextLengths) -> float:
    """Tokens of a training's examples, in all epochs."""
    characters = 0
    for path in (folder / "training/data").glob("*.json"):
        if path.name != "dataset_info.json":
            examples = json.loads(path.read_text(encoding="utf-8"))
            characters += sum(len(part) for example in examples for part in example.values())
    results = json.loads((folder / "training/adapter/all_results.json").read_text())
    return characters / text.characters_per_token * float(results["epoch"])


def _responses(path: Path) -> tuple[int, float]:
    """Number of questions and of generated tokens of a `samples` or `greedy` table."""
    table = pq.read_table(path, columns=["question_id", "token_ids"])
    num_tokens = pc.sum(pc.list_value_length(table["token_ids"])).as_py()
    return len(table["question_id"].unique()), float(num_tokens)


def _localisation(config: Config, run: Path, job: Job, size: ModelSize, text: TextLengths) -> Work:
    """The search of the run, whose settings may differ from the configuration's."""
    folder = run / job.model / job.variant
    made_by = parquet.provenance(folder / "neurons.parquet")
    num_questions, generated = _responses(folder / "greedy.parquet")
    leaked = pq.read_table(run / "data" / job.variant / "questions.parquet", columns=["leaked"])
    shards = {"num_shards": len(_timings(run, job))}
    localisation = config.neuron_localisation.model_copy(
        update=made_by["neuron_localisation"] | shards
    )
    return localisation_work(
        localisation,
        int(pc.sum(leaked["leaked"]).as_py()),
        size,
        replace(text, response=generated / num_questions),
        config.sampling,
        REFERENCE_RATES.gpu.memory,
    )
