"""What a run cost: tokens and wall-clock seconds of its training, decoding and sampling jobs."""

import pandas as pd

from zerogap.reporting.labels import Labels
from zerogap.reporting.render import Cell, Column, Row, Table, optional_float

# Kinds of jobs, by the name of their timing file; any other name is a strategy's cell.
JOBS = {
    "train_preparation": "Preparation of the base",
    "screen_questions": "Screening of questions",
    "train_lora": "LoRA training",
    "decode_greedy": "Greedy trajectories",
    "localise_neurons": "Shortcut neurons",
    "rank_clean_tokens": "Token ranks",
    "measure_recovery": "Recovery",
    "batch1": "Samples, first batch",
    "batch2": "Samples, second batch",
    "samples": "Samples of the strategies",
}


def cost(jobs: pd.DataFrame, labels: Labels) -> Table:
    """One row per job, under a heading per model and benchmark, and sums per kind of job.

    Args:
        jobs: One row per job, columns `zerogap.analysis.cost.COLUMNS`; NaN where a job generates no
            responses or has no timing. The preparation of a base has no benchmark ("").
        labels: Names to show.
    """
    kinds = jobs["job"].where(jobs["job"].isin(list(JOBS)), "samples").map(JOBS)
    rows = []
    for key, group in jobs.groupby(["model", "benchmark", "job"], sort=False):
        model, benchmark, job = map(str, key)
        rows.append(
            Row(
                f"{model}/{benchmark}/{job}",
                JOBS.get(job) or labels.strategy(job),
                _totals(group),
                section=labels.setting(model, benchmark) if benchmark else labels.models[model],
            )
        )
    for kind in JOBS.values():
        group = jobs[kinds == kind]
        if len(group):
            rows.append(
                Row(kind.lower(), f"{kind} ({len(group)})", _totals(group), section="Total")
            )
    rows.append(Row("all", f"All ({len(jobs)})", _totals(jobs), section="Total", bold=True))
    untimed = int(jobs["seconds"].isna().sum())
    return Table(
        label="tab:cost",
        caption=(
            "Responses, generated tokens (without prompts) and wall-clock seconds of every "
            "training, decoding and sampling job, and their totals. Jobs that ran at the same time "
            "each count in full. The preparation of a base model counts in every run that shares "
            "it."
        ),
        index_label="Job",
        columns=(
            Column("responses", "Responses"),
            Column("tokens", "Tokens"),
            Column("tokens_per_response", "Tokens per response"),
            Column("seconds", "Seconds"),
            Column("tokens_per_second", "Tokens/s"),
        ),
        rows=tuple(rows),
        notes=(f"{untimed} job(s) have no timing; the totals leave out their seconds.",)
        if untimed
        else (),
        size="footnotesize",
        column_gap="5pt",
    )


def _totals(jobs: pd.DataFrame) -> tuple[Cell, ...]:
    """Sums over jobs; tokens per second only from jobs with known tokens and seconds."""
    responses, tokens, seconds = jobs[["responses", "tokens", "seconds"]].sum(min_count=1)
    timed = jobs.dropna(subset=["tokens", "seconds"])
    speed = timed["tokens"].sum() / timed["seconds"].sum() if len(timed) else float("nan")
    return (
        Cell(optional_float(responses), decimals=0),
        Cell(optional_float(tokens), decimals=0),
        Cell(optional_float(tokens / responses), decimals=1),
        Cell(optional_float(seconds), decimals=1),
        Cell(optional_float(speed), decimals=0),
    )
