"""What a run took: tokens generated and wall seconds of every job that has a benchmark."""

from collections.abc import Collection
from pathlib import Path

import pandas as pd

COLUMNS = ["model", "benchmark", "job", "responses", "tokens", "seconds"]


def tokens(responses: pd.DataFrame) -> int:
    """Tokens generated for a `samples` or a `greedy` table, prompts not counted."""
    return int(responses["token_ids"].map(len).sum())


def seconds(benchmarks: Collection[str | Path]) -> float:
    """Wall seconds of a job by Snakemake's benchmark files, one a shard.

    NaN where one of them is gone: part of a job's time is not the job's.
    """
    if not all(Path(path).is_file() for path in benchmarks):
        return float("nan")
    return float(sum(pd.read_csv(path, sep="\t")["s"].sum() for path in benchmarks))
