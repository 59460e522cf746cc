"""Snakemake called by a test, and the jobs that a dry run of it plans."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from helpers.paths import ROOT

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
CHECKOUT = ("Snakefile", "config.yaml", "workflow", "profiles", "slurm", "envs", "tests")


def environment(workdir: Path = ROOT) -> dict[str, str]:
    """The environment of a call in a folder: the package that is there, and this Python's tools."""
    package = f"{workdir}/workflow"
    return os.environ | {
        "PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH")))),
    }


def link_checkout(folder: Path) -> Path:
    """Make a folder in which the workflow runs and leaves its results."""
    folder.mkdir(exist_ok=True)
    for name in CHECKOUT:
        (folder / name).symlink_to(ROOT / name)
    return folder


def snakemake(
    *arguments: str | Path, workdir: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SNAKEMAKE, *arguments],
        cwd=workdir,
        capture_output=True,
        text=True,
        env=environment(workdir) | dict(env or {}),
        check=False,
    )


def jobs(*arguments: str | Path, workdir: Path = ROOT) -> Counter[str]:
    """Rule → number of its jobs that would run; empty if nothing is to be done."""
    process = snakemake("-n", *arguments, workdir=workdir)
    text = process.stdout + process.stderr
    assert process.returncode == 0, text
    return job_counts(text)


def job_counts(text: str) -> Counter[str]:
    """Rule → number of its jobs, from Snakemake's output."""
    if "Nothing to be done" in text:
        return Counter()
    table = text.split("Job stats:")[1].split("total")[0]
    return Counter({name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)$", table, re.M)})
