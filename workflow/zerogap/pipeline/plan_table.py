"""The plan of a run as a table for people."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from zerogap.config import Config
from zerogap.families import ModelSize
from zerogap.pipeline.planning import DEFAULT_RATES, STAGES, Rates
from zerogap.reporting.render import Cell, Column, Row, Table, format_number

TOTALS = {"jobs": "sum", "tokens": "sum", "hours": "sum", "longest_job": "max", "bytes": "sum"}


def plan_table(
    plan: pd.DataFrame, config: Config, sizes: Mapping[str, ModelSize], rates: Rates
) -> Table:
    """The table of a plan: one row per stage, one row per model, and the sum.

    Args:
        plan: as :func:`zerogap.pipeline.planning.plan` returns it.
        config: the configuration.
        sizes: the size of every model.
        rates: those of the plan, which the notes state.
    """
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
    rows.append(_row("total", "Total", plan.agg(TOTALS), "Total", bold=True))
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
        ),
        rows=tuple(rows),
        notes=(
            *_rate_notes(config, sizes, rates),
            "Tables and figures are not included; they take seconds each, where Snakemake runs.",
        ),
    )


def _row(key: str, name: str, totals: Any, section: str, bold: bool = False) -> Row:
    cells = (
        Cell(value=int(totals.jobs), decimals=0),
        _cell(totals.tokens / 1e6),
        _cell(totals.hours),
        _cell(totals.longest_job),
        _cell(totals.bytes / 1e9),
    )
    return Row(key, name, cells, section, bold)


def _cell(value: float) -> Cell:
    return Cell(value=value, decimals=2) if value else Cell()


def _rate_notes(config: Config, sizes: Mapping[str, ModelSize], rates: Rates) -> list[str]:
    with_rates, without_rates = [], []
    for model, size in sizes.items():
        name = f"{config.models[model].label} ({size.parameters / 1e9:.2g}B)"
        by_kind = {kind: rates.rate(kind, model, size.parameters) for kind in DEFAULT_RATES}
        if any(map(math.isnan, by_kind.values())):
            without_rates.append(name)
        else:
            texts = (f"{kind} {format_number(rate, 0)}" for kind, rate in by_kind.items())
            with_rates.append(f"{name}: {', '.join(texts)}")
    notes = []
    if with_rates:
        notes.append(f"Tokens per second on one device: {'; '.join(with_rates)}.")
    if without_rates:
        notes.append(
            f"No hours for {', '.join(without_rates)}: too small to scale a 7B model's rates; "
            "state theirs (--sampling MODEL=RATE and so on)."
        )
    return notes
