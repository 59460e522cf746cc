"""Snakemake called by a test, and what a dry run of it would do."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from helpers.paths import ROOT

SNAKEMAKE = Path(sys.executable).with_name("snakemake")


def snakemake(*arguments: str | Path, workdir: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SNAKEMAKE, *arguments],
        cwd=workdir,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{SNAKEMAKE.parent}:{os.environ['PATH']}"},
        check=False,
    )


def jobs(*arguments: str | Path, workdir: Path = ROOT) -> Counter[str]:
    """Rule → number of its jobs that would run; none where nothing is to be done."""
    done = snakemake("-n", *arguments, workdir=workdir)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    if "Nothing to be done" in text:
        return Counter()
    table = text.split("Job stats:")[1].split("total")[0]
    return Counter({name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)$", table, re.M)})
