"""Check the paper's claims against this run."""

from typing import TYPE_CHECKING

from script_helpers import run_job
from zerogap.io.provenance import provenance
from zerogap.pipeline.report.sources import RESULTS
from zerogap.reporting import claim_sheet
from zerogap.reporting.claims import evaluate_claims

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake


def main(job: "Snakemake") -> None:
    verdicts = evaluate_claims(RESULTS.read(job.params.source))
    scale = f"{job.params.scale_note} {job.params.scale}".lstrip()
    claim_sheet.save(verdicts, scale, job.params.prefix, provenance(**job.params.metadata))


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
