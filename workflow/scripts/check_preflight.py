"""Check for what would fail hours into a run; every failure is one line that says how to fix it."""

import sys
from pathlib import Path

from script_helpers import Job
from zerogap.config import from_snakemake
from zerogap.errors import InputError
from zerogap.pipeline.jobs import with_engine
from zerogap.pipeline.preflight import run_checks


def main(job: Job) -> None:
    """Write the results to the log and, unlike other jobs, to the terminal too."""
    try:
        config = with_engine(from_snakemake(job.params.configfiles, job.params.command_line))
        options = {"conda": job.params.conda, "gpus_here": job.params.gpus_here}
        text = "\n".join(map(str, run_checks(config, **options)))
        exit_message = None
    except InputError as error:
        text = exit_message = f"error: {error}"
    Path(job.log[0]).write_text(f"{text}\n")
    if exit_message:
        sys.exit(exit_message)
    print(text)


if __name__ == "__main__":
    main(snakemake)  # noqa: F821 (Snakemake defines it)
