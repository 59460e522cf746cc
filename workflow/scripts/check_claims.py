"""Check the paper's claims against this run."""

from script_helpers import Job, run_job
from zerogap.io.provenance import provenance
from zerogap.pipeline.report.sources import RESULTS
from zerogap.reporting.claims import evaluate_claims
from zerogap.reporting.pages import save_claims


def main(job: Job) -> None:
    verdicts = evaluate_claims(RESULTS.read(job.params.source))
    scale = f"{job.params.scale_note} {job.params.scale}".lstrip()
    save_claims(verdicts, scale, job.params.prefix, provenance(**job.params.metadata))


if __name__ == "__main__":
    run_job(main, snakemake)  # noqa: F821 (Snakemake defines it)
