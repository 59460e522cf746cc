"""Write the `solve` table of All-Zero, which fails every question (paper, section 5.2.2)."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.analysis.leaked_column import with_leaked_of
from zerogap.io import parquet
from zerogap.io.provenance import provenance
from zerogap.strategies.all_zero import all_zero_counts

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    questions = parquet.read(job.input.questions, "questions")
    clean = with_leaked_of(questions, parquet.read(job.input.clean, "solve"))
    metadata = provenance(**job.params.metadata)
    parquet.write(job.output[0], all_zero_counts(clean), "solve", metadata)


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
