"""The cost of a run: generated tokens and wall-clock seconds of every timed job."""

from collections.abc import Collection
from pathlib import Path

import pandas as pd

COLUMNS = ["model", "benchmark", "job", "responses", "tokens", "seconds"]


def tokens(responses: pd.DataFrame) -> int:
    """Number of tokens generated for a `samples` or `greedy` table, without the prompts."""
    return int(responses["token_ids"].map(len).sum())


def seconds(timings: Collection[str | Path]) -> float:
    """Wall-clock seconds of a job, from its Snakemake benchmark files, one per shard.

    NaN if one of the files is missing: the time of some shards is not the time of the job.
    """
    if not all(Path(path).is_file() for path in timings):
        return float("nan")
    return float(sum(pd.read_csv(path, sep="\t")["s"].sum() for path in timings))
