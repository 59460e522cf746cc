"""Snakemake called by a test, and the jobs that a dry run of it plans."""

import functools
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from multiprocessing import forkserver
from pathlib import Path

import pytest

from helpers.paths import ROOT

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
MICRO = (
    *("--profile", "profiles/quick"),
    *("--configfile", "profiles/quick/quick.yaml", "tests/end_to_end/micro.yaml"),
)  # the smallest complete run
CHECKOUT = ("Snakefile", "config.yaml", "workflow", "profiles", "slurm", "envs", "tests")


def environment(workdir: Path = ROOT) -> dict[str, str]:
    """The environment of a call in a folder: the package that is there."""
    package = f"{workdir}/workflow"
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    return os.environ | {"PYTHONPATH": path}


def link_checkout(folder: Path) -> Path:
    """Make a folder in which the workflow runs and leaves its results."""
    folder.mkdir(exist_ok=True)
    for name in CHECKOUT:
        (folder / name).symlink_to(ROOT / name)
    return folder


def snakemake(
    *arguments: str | Path, workdir: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Call Snakemake's program in a process that is forked from one with `helpers.preloaded`."""
    command = [str(SNAKEMAKE), *map(str, arguments)]
    with tempfile.TemporaryDirectory() as name:
        outputs = [Path(name, stream) for stream in ("stdout", "stderr")]
        variables = environment(workdir) | dict(env or {})
        process = _forks().Process(target=_main, args=(command, workdir, variables, outputs))
        process.start()
        process.join()
        texts = (path.read_text() for path in outputs)
        return subprocess.CompletedProcess(command, process.exitcode, *texts)


@functools.cache
def _forks() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["helpers.preloaded"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}/workflow{os.pathsep}{ROOT}/tests")
        forkserver.ensure_running()
    return context


def _main(
    command: list[str], workdir: Path, variables: dict[str, str], outputs: list[Path]
) -> None:
    for descriptor, path in enumerate(outputs, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(workdir)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[:], sys.path[:0] = command, variables["PYTHONPATH"].split(os.pathsep)
    if Path("workflow").resolve() != ROOT / "workflow":  # code of its own
        for name in [name for name in sys.modules if name.partition(".")[0] == "zerogap"]:
            del sys.modules[name]
    from snakemake.cli import main

    main(command[1:])


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
