"""The plan of a run, and its comparison with a finished run, as tables for people."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from zerogap.config import Config
from zerogap.families import ModelSize, published_size
from zerogap.pipeline import jobs
from zerogap.pipeline.localisation_cost import batch_rows
from zerogap.pipeline.planning import STAGES, TextsByOwner
from zerogap.pipeline.rates import (
    ASSUMED,
    DEFAULT_RATES,
    GIB,
    MEASURED,
    MIN_PARAMETERS_TO_SCALE,
    Rates,
)
from zerogap.reporting.render import Cell, Column, Row, Table, format_number

SLURM_RETRIES = 2  # of profiles/slurm


def _joined(rates: Iterable[str]) -> str:
    return ", ".join(sorted(set(rates) - {""}, reverse=True))


TOTALS: Mapping[str, Any] = {
    "jobs": "sum",
    "tokens": "sum",
    "rated_tokens": "sum",
    "hours": "sum",
    "longest_job": "max",
    "bytes": "sum",
    "rate": _joined,
}


def plan_table(
    plan: pd.DataFrame,
    config: Config,
    sizes: Mapping[str, ModelSize],
    rates: Rates,
    texts: TextsByOwner,
) -> Table:
    """The table of a plan: one row per stage, one row per model, and the sum.

    Args:
        plan: as :func:`zerogap.pipeline.planning.plan` returns it.
        config: the configuration.
        sizes: the size of every model.
        rates: those of the plan, which the notes state.
        texts: lengths of the texts.
    """
    # Hours are known only where a rate is, so only these tokens count for tokens per second.
    plan = plan.assign(rated_tokens=plan.tokens.where(plan.rate != "", 0.0))
    by_stage = plan.groupby("stage", sort=False).agg(TOTALS)
    by_model = plan[plan.model != ""].groupby("model", sort=False).agg(TOTALS)
    rows = [
        _row(stage, stage, by_stage.loc[stage], "By stage")
        for stage in STAGES
        if stage in by_stage.index
    ]
    rows += [
        _row(model, config.models[model].label, by_model.loc[model], "By model")
        for model in config.models
    ]
    total = plan.groupby(lambda _: "total").agg(TOTALS).loc["total"]
    rows.append(_row("total", "Total", total, "Total", bold=True))
    return Table(
        label="tab:plan",
        caption=f"Estimated cost of the run “{config.run}”.",
        index_label="Stage",
        columns=(
            Column("jobs", "Jobs"),
            Column("million_tokens", "Million tokens"),
            Column("gpu_hours", "GPU hours"),
            Column("longest_job", "Longest job (h)"),
            Column("gigabytes", "Disk (GB)"),
            Column("tokens_per_second", "Tokens/s"),
            Column("rate", "Rate", align="l"),
        ),
        rows=tuple(rows),
        notes=(
            *_rate_notes(plan, config, sizes, rates),
            *_size_notes(config),
            *_localisation_notes(plan, config, sizes, rates, texts),
            *_time_limit_notes(plan, config),
            "Tables and figures are not included; they take seconds each, where Snakemake runs.",
        ),
    )


def comparison_table(comparison: pd.DataFrame, config: Config) -> Table:
    """The table of :func:`zerogap.pipeline.finished_run.comparison`: one row per stage."""
    rows = []
    for stage, table in comparison.groupby("stage", sort=False):
        predicted, measured = table.predicted.sum(skipna=False), table.measured.sum()
        deviations = (table.predicted / table.measured - 1).abs()
        cells = [Cell(value=len(table), decimals=0), Cell(value=measured, decimals=0)]
        if pd.isna(predicted):
            cells += [Cell(), Cell(), Cell()]
        else:
            cells += [
                Cell(value=predicted, decimals=0),
                Cell(value=predicted / measured, decimals=2),
                Cell(value=100 * median(deviations), decimals=0),
            ]
        rows.append(Row(str(stage), str(stage), tuple(cells)))
    return Table(
        label="tab:plan_comparison",
        caption=f"The plan's prediction and what the run “{config.run}” took.",
        index_label="Stage",
        columns=(
            Column("jobs", "Jobs"),
            Column("measured", "Measured (s)"),
            Column("predicted", "Predicted (s)"),
            Column("ratio", "Predicted/measured"),
            Column("job_deviation", "Median deviation of a job (%)"),
        ),
        rows=tuple(rows),
        notes=(
            "The jobs of each trained model are predicted from the rates of the run's other "
            "trained models; no job predicts itself. A stage of a single trained model is not "
            "predicted.",
        ),
    )


def _row(key: str, name: str, totals: Any, section: str, bold: bool = False) -> Row:
    is_rate_of_stage = section == "By stage" and totals.hours
    cells = (
        Cell(value=int(totals.jobs), decimals=0),
        _cell(totals.tokens / 1e6),
        _cell(totals.hours),
        _cell(totals.longest_job),
        _cell(totals.bytes / 1e9),
        Cell(value=totals.rated_tokens / totals.hours / 3600, decimals=0)
        if is_rate_of_stage
        else Cell(),
        Cell(text=totals.rate),
    )
    return Row(key, name, cells, section, bold)


def _cell(value: float) -> Cell:
    return Cell(value=value, decimals=2) if value else Cell()


def _rate_notes(
    plan: pd.DataFrame, config: Config, sizes: Mapping[str, ModelSize], rates: Rates
) -> list[str]:
    with_rates, without_rates = [], []
    for model, size in sizes.items():
        name = f"{config.models[model].label} ({size.parameters / 1e9:.2g}B)"
        used = set(plan[plan.model == model].rate) - {"", MEASURED}
        if used:
            texts = (
                f"{kind} {format_number(rates.rate(kind, model, size.parameters), 0)}"
                for kind in DEFAULT_RATES
            )
            with_rates.append(f"{name}: {', '.join(texts)}")
        timed = plan[(plan.model == model) & (plan.tokens > 0)]
        if size.parameters < MIN_PARAMETERS_TO_SCALE and (timed.rate == "").any():
            without_rates.append(name)
    notes = []
    if with_rates:
        notes.append(
            "Tokens per second on one device where the rate is not measured: "
            f"{'; '.join(with_rates)}."
        )
    if (plan.rate == ASSUMED).any():
        notes.append(
            "Of the assumed rates, sampling and greedy come from one measurement on an H200, "
            "training and prefill from data sheets."
        )
    if without_rates:
        notes.append(
            f"No hours for {', '.join(without_rates)} where no rate is shown: too small to scale a "
            "7B model's rates; state theirs (--sampling MODEL=RATE and so on), or take them from a "
            "finished run (--from results/RUN)."
        )
    return notes


def _size_notes(config: Config) -> list[str]:
    assumed = [
        entry.label
        for model, entry in config.models.items()
        if jobs.base_folder(config, model) is None and published_size(entry.base)
    ]
    if not assumed:
        return []
    return [f"Sizes from a table, not read from the hub: {', '.join(assumed)}."]


def _localisation_notes(
    plan: pd.DataFrame,
    config: Config,
    sizes: Mapping[str, ModelSize],
    rates: Rates,
    texts: TextsByOwner,
) -> list[str]:
    if "Neuron localisation" not in set(plan.stage):
        return []
    rows = []
    for model, size in sizes.items():
        fitting = min(
            batch_rows(size, text, config.sampling, rates.gpu.memory)
            for (name, _), text in texts.items()
            if name == model
        )
        rows.append(f"{config.models[model].label} {format_number(fitting, 0)}")
    return [
        "Rows that fit next to the weights in neuron localisation, with "
        f"{rates.gpu.memory / GIB:.0f} GiB: {', '.join(rows)}."
    ]


def _time_limit_notes(plan: pd.DataFrame, config: Config) -> list[str]:
    """Warns of jobs that need more attempts than the Slurm profile allows."""
    limit = config.max_runtime / 60
    num_slots = np.ceil(plan.longest_job / limit)  # NaN, so no warning, where no rate is known
    long_jobs = plan[num_slots > SLURM_RETRIES + 1]
    if long_jobs.empty:
        return []
    names = (
        f"{row.stage}, {config.models[str(row.model)].label} ({row.longest_job:.0f} h)"
        for row in long_jobs.itertuples()
    )
    return [
        f"Warning: longer than {SLURM_RETRIES + 1} attempts of {limit:.3g} h (max_runtime): "
        f"{'; '.join(names)}. Set --retries {num_slots.max() - 1:.0f}, raise max_runtime or use "
        "more shards."
    ]
