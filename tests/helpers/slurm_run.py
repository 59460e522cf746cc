"""The workflow on the one-node Slurm of a test: `snakemake --profile slurm`, and its jobs."""

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from helpers.dry_runs import SNAKEMAKE
from helpers.paths import ROOT
from helpers.slurm_node import Cluster
from helpers.workflow_rules import rule_texts
from zerogap.pipeline.jobs import TIME_LIMITS

PATIENCE = 1200  # seconds for anything; the slowest takes some minutes on two slow cores


class Run:
    """A folder in which the workflow runs, with an overlay on the micro scale."""

    def __init__(self, cluster: Cluster, folder: Path, overlay: str) -> None:
        self.cluster, self.folder, self.overlay = cluster, folder, overlay
        for name in ("Snakefile", "config.yaml", "profiles", "slurm", "envs", "tests"):
            (folder / name).symlink_to(ROOT / name)
        # A copy, so that edits during the run change neither its code nor its recorded commit.
        shutil.copytree(
            ROOT / "workflow", folder / "workflow", ignore=shutil.ignore_patterns("__pycache__")
        )

    def start(self, *arguments: str, overlays: tuple[str, ...] = ()) -> subprocess.Popen:
        line = [SNAKEMAKE, "--profile", "slurm", "--workflow-profile", "tests/slurm/node"]
        line += [*arguments, "--configfile", "profiles/quick/quick.yaml"]
        line += ["tests/end_to_end/micro.yaml", f"tests/slurm/{self.overlay}.yaml"]
        line += overlays
        with (self.folder / "snakemake.log").open("w") as log:
            return subprocess.Popen(
                line,
                cwd=self.folder,
                env=self.cluster.environment
                | {"PYTHONPATH": f"{self.folder}/workflow:{self.folder}/tests"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def finish(self, process: subprocess.Popen) -> None:
        assert process.wait(PATIENCE) == 0, self.log_tails()

    def wait_until(self, ready: Callable[[], bool], process: subprocess.Popen) -> None:
        """Wait for something while the workflow runs."""
        end = time.monotonic() + PATIENCE
        while not ready():
            assert process.poll() is None, f"Snakemake ended too early: {self.log_tails()}"
            assert time.monotonic() < end, self.log_tails()
            time.sleep(0.05)

    def log_tails(self) -> str:
        logs = [self.folder / "snakemake.log", *self.folder.glob(".snakemake/slurm_logs/*/*/*.log")]
        return "\n".join(f"{path}:\n{path.read_text()[-2000:]}" for path in logs[:3])

    def take(self, *names: str) -> dict[str, bytes]:
        """The contents of files, which are deleted."""
        contents = {name: (self.folder / name).read_bytes() for name in names}
        for name in names:
            (self.folder / name).unlink()
        return contents


def requests() -> dict[str, tuple[int, int, int]]:
    """Rule → GPUs, MB and minutes of a first attempt, as in the text of the rule."""
    resources = {}
    for name, text in rule_texts().items():
        if memory := re.search(r"mem_mb=doubling\((\d+)\)", text):
            limit = re.search(r'runtime=minutes\((?:jobs.TIME_LIMITS\["(\w+)"]|(\d+))\)', text)
            minutes = TIME_LIMITS[limit[1]] if limit[1] else int(limit[2])
            gpus = int("gpu=" in text)  # for trainings training.num_gpus, here 1
            resources[name] = gpus, int(memory.group(1)), minutes
    return resources


def rule(job: dict[str, str]) -> str:
    """The rule that a job runs, from the comment that it was submitted with."""
    return re.fullmatch(r"rule_(\w+?)(_wildcards_.*)?", job["Comment"]).group(1)


def allocated(job: dict[str, str]) -> tuple[int, int, int]:
    """GPUs, MB and minutes that Slurm gave a job."""
    gpus = re.search(r"gpu:(\d+)", job.get("TresPerJob", "(null)"))
    days, hours, minutes = re.match(r"(?:(\d+)-)?(\d+):(\d+):", job["TimeLimit"]).groups("0")
    return (
        int(gpus.group(1)) if gpus else 0,
        round(float(job["mem"][:-1]) * {"M": 1, "G": 1024}[job["mem"][-1]]),
        int(days) * 1440 + int(hours) * 60 + int(minutes),
    )
