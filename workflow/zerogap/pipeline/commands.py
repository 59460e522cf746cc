"""Command lines that the workflow runs."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path


def snakemake_command(
    snakefile: str | Path, configfiles: Sequence[str | Path], config_args: Sequence[str]
) -> str:
    """The command that calls Snakemake again with the configuration of this run.

    This run holds the lock of the directory; the call within it only reads.

    Args:
        snakefile: The main Snakefile.
        configfiles: Those given on the command line.
        config_args: ``KEY=VALUE`` pairs given on the command line.
    """
    command = ["python", "-m", "snakemake", "--nolock", "--snakefile", os.path.relpath(snakefile)]
    if configfiles:
        command += ["--configfile", *map(os.path.relpath, configfiles)]
    if config_args:
        command += ["--config", *config_args]
    return shlex.join(command)
