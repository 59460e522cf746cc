"""Check the paper's claims against this run."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from script_helpers import run_job
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.reporting.claims import sheet
from zerogap.reporting.claims.paper import CLAIMS
from zerogap.reporting.claims.verdict import RunResults, evaluate_claims
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell, optional_float

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

MEMORISATION_COLUMNS = ("rouge_leaked", "rouge_unleaked", "collapse", "excess")


def main(job: "Snakemake") -> None:
    memorisation = Path(job.input.memorisation)
    columns = {name: read_column(memorisation, name) for name in MEMORISATION_COLUMNS}
    results = RunResults(
        metrics=MetricTable(parquet.read(path, "metrics") for path in job.input.metrics),
        setting=tuple(job.params.setting),
        numbers=read_column(Path(job.input.inline_numbers), "value"),
        memorisation={
            tuple(key.split("/")): {name: cells[key] for name, cells in columns.items()}
            for key in columns["collapse"]
        },
        paraphrase_of=job.params.paraphrase_of,
        rail_n=job.params.rail_n,
        labels=Labels.from_mapping(job.params.labels),
    )
    verdicts = evaluate_claims(CLAIMS, results)
    metadata = provenance(**job.params.metadata)
    sheet.save(verdicts, job.params.scale, job.params.prefix, metadata)


def read_column(path: Path, name: str) -> dict[str, Cell]:
    """Read a column of a table's CSV file with its interval, by row key."""
    columns = [name, f"{name}_ci_low", f"{name}_ci_high"]
    try:
        rows = pd.read_csv(path).set_index("key")[columns]
    except (OSError, KeyError) as error:
        raise InputError(
            f"{path}: must be a table with the columns key, {', '.join(columns)} ({error})"
        ) from error
    return {str(key): Cell(*map(optional_float, numbers)) for key, *numbers in rows.itertuples()}


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
