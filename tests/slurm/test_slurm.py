"""The workflow on a real Slurm: `snakemake --profile slurm`, and what Slurm says of its jobs."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.slurm_node import Cluster, missing
from zerogap.io import parquet
from zerogap.reporting.catalog import TABLES

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
PATIENCE = 1200  # seconds for anything; the slowest takes some minutes on two slow cores
MODEL = "results/micro/llama2/gsm8k/model"
SAMPLES = "results/micro/llama2/gsm8k/identity/samples.parquet"
CELL = ["preflight", "raw_questions", "split", "paraphrases", "questions", "exemplars"]
CELL += ["greedy_trajectories", "samples", "merged_samples"]


class Run:
    """A folder in which the workflow runs, with an overlay on the micro scale."""

    def __init__(self, cluster: Cluster, folder: Path, overlay: str) -> None:
        self.cluster, self.folder, self.overlay = cluster, folder, overlay
        for name in ("Snakefile", "config.yaml", "profiles", "slurm", "envs", "tests"):
            (folder / name).symlink_to(ROOT / name)
        # A copy: a checkout that is worked in during the run is another commit in the results.
        shutil.copytree(
            ROOT / "workflow", folder / "workflow", ignore=shutil.ignore_patterns("__pycache__")
        )

    def start(self, *arguments: str, overlays: tuple[str, ...] = ()) -> subprocess.Popen:
        line = [SNAKEMAKE, "--profile", "slurm", "--workflow-profile", "tests/slurm/node"]
        line += [*arguments, "--configfile", "profiles/quick/quick.yaml"]
        line += ["tests/end_to_end/micro.yaml", f"tests/slurm/{self.overlay}.yaml"]
        line += overlays
        path = os.pathsep.join([str(SNAKEMAKE.parent), self.cluster.environment["PATH"]])
        with (self.folder / "snakemake.log").open("w") as log:
            return subprocess.Popen(
                line,
                cwd=self.folder,
                env=self.cluster.environment | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def finish(self, going: subprocess.Popen) -> None:
        assert going.wait(PATIENCE) == 0, self.said()

    def said(self) -> str:
        logs = [self.folder / "snakemake.log", *self.folder.glob(".snakemake/slurm_logs/*/*/*.log")]
        return "\n".join(f"{path}:\n{path.read_text()[-2000:]}" for path in logs[:3])

    def taken(self) -> tuple[bytes, bytes]:
        """What is in the cell's two files, which are taken away."""
        paths = [self.folder / SAMPLES, (self.folder / SAMPLES).with_name("solve.parquet")]
        held = tuple(path.read_bytes() for path in paths)
        for path in paths:
            path.unlink()
        return held


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if missing():
        pytest.skip(f"no Slurm on this machine; not installed: {', '.join(missing())}")
    with tempfile.TemporaryDirectory(prefix="slurm-") as name, Cluster(Path(name)) as running:
        yield running


@pytest.fixture(scope="module")
def tables(cluster, tmp_path_factory) -> tuple[Run, list[dict[str, str]]]:
    """A run of every table, from one model in both benchmarks, and its jobs."""
    run = Run(cluster, tmp_path_factory.mktemp("tables"), "tables")
    run.finish(run.start("tables"))
    return run, cluster.jobs()


@pytest.fixture(scope="module")
def cell(cluster, tmp_path_factory) -> tuple[Run, tuple[bytes, bytes]]:
    """All but one cell is there, and what the cell is without a disturbance.

    Its model is the untrained base.
    """
    run = Run(cluster, tmp_path_factory.mktemp("cell"), "cell")
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", run.folder / MODEL)
    run.finish(run.start(SAMPLES, "--allowed-rules", *CELL))
    return run, run.taken()


def requests() -> dict[str, tuple[int, int, int]]:
    """Rule → GPUs, MB and minutes of a first attempt, as the rule's text has them."""
    found = {}
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        for block in re.split(r"(?m)^ *(?=rule )", path.read_text()):
            if memory := re.search(r"mem_mb=grown\((\d+)\)", block):
                minutes = re.search(r"runtime=grown\((\d+)\)", block)
                gpus = int("gpu=" in block)  # of a training: training.gpus, here 1
                name = re.match(r"rule (\w+)", block).group(1)
                found[name] = gpus, int(memory.group(1)), int(minutes.group(1))
    return found


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


def test_every_table_is_there_with_every_strategy(tables):
    run, _ = tables
    for name in TABLES:
        for ending in ("csv", "md", "tex", "html"):
            assert (run.folder / f"reports/micro/tables/{name}.{ending}").stat().st_size > 100
    for benchmark in ("gsm8k", "pq"):
        path = run.folder / f"results/micro/llama2/{benchmark}/metrics.parquet"
        read = {"identity", "ted", "shortcut", "lne_blocking", "railcap", "all_zero"}
        assert read <= set(parquet.read(path, "metrics").strategy)


def test_what_was_submitted_is_the_heavy_rules_once_a_job(tables):
    """Everything else ran where Snakemake runs: data, tables."""
    _, jobs = tables
    assert Counter(map(rule, jobs)) == {
        "lora_data": 3, "adapter": 3, "model": 3, "greedy_trajectories": 3, "clean_samples": 2,
        "samples": 2 * 4 + 1, "filtered_samples": 2, "neurons": 2, "ranks": 1, "metrics": 2,
    }  # fmt: skip
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}


def test_every_job_was_given_what_its_rule_asks_for(tables):
    _, jobs = tables
    asked = requests()
    assert asked["samples"][0] == 1
    assert asked["metrics"][0] == 0
    assert {(rule(job), allocated(job)) for job in jobs} == {
        (name, asked[name]) for name in set(map(rule, jobs))
    }


def until(ready: Callable[[], bool], going: subprocess.Popen, run: Run) -> None:
    """Wait for something while the workflow runs."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert going.poll() is None, f"Snakemake ended before it was disturbed: {run.said()}"
        assert time.monotonic() < end, run.said()
        time.sleep(0.05)


def test_a_job_preempted_and_cancelled_while_sampling_loses_nothing(cell, cluster):
    """Requeued by Slurm, then retried by Snakemake: the bytes of an undisturbed run."""
    run, undisturbed = cell
    before = len(cluster.jobs())
    work = run.folder / f"{SAMPLES}.work"
    written: dict[str, set[int]] = {}  # chunk → when

    def finished() -> int:
        for path in work.glob("chunk-*.parquet"):
            with contextlib.suppress(FileNotFoundError):  # the last is there: the parts go
                written.setdefault(path.name, set()).add(path.stat().st_mtime_ns)
        return len(written)

    def state() -> str:
        return cluster.run("squeue", "--noheader", "--format=%T", f"--jobs={number}").strip()

    going = run.start(SAMPLES, "--allowed-rules", *CELL)
    until(lambda: finished() > 0, going, run)
    (job,) = cluster.jobs()[before:]
    number = job["JobId"]
    cluster.run("scontrol", "requeue", number)
    # Were it started again before slurmctld has heard how it ended, that would end it again.
    until(lambda: state() == "PENDING" and not cluster.steps(number), going, run)
    cluster.run("scontrol", "update", f"JobId={number}", "StartTime=now")  # not in two minutes
    until(lambda: finished() > 1, going, run)
    cluster.run("scancel", number)
    while going.poll() is None:
        finished()
        time.sleep(0.05)
    run.finish(going)

    assert run.taken() == undisturbed
    assert all(len(times) == 1 for times in written.values()), "a part was sampled again"
    cancelled, again = cluster.jobs()[before:]
    assert (cancelled["JobState"], cancelled["Restarts"]) == ("CANCELLED", "1")
    assert again["JobState"] == "COMPLETED"
    gpus, memory, minutes = requests()["samples"]
    assert allocated(cancelled) == (gpus, memory, minutes)
    assert allocated(again) == (gpus, 2 * memory, 2 * minutes)


def test_shards_of_a_cell_are_tasks_of_one_array_and_merge(cell, cluster):
    run, whole = cell
    before = len(cluster.jobs())
    (run.folder / "shards.yaml").write_text("decoding: { shards: 3 }")
    array = ("--slurm-array-jobs", "samples")
    run.finish(run.start(SAMPLES, *array, "--allowed-rules", *CELL, overlays=("shards.yaml",)))
    assert run.taken() == whole
    *tasks, merging = cluster.jobs()[before:]
    assert [rule(task) for task in tasks] == ["samples"] * 3
    assert len({task["ArrayJobId"] for task in tasks}) == 1
    assert rule(merging) == "merged_samples"
    asked = requests()
    assert allocated(merging) == asked["merged_samples"]
    for task in tasks:
        gpus, memory, minutes = allocated(task)
        assert (gpus, minutes) == (asked["samples"][0], asked["samples"][2])
        assert asked["samples"][1] <= memory < asked["samples"][1] + 100  # and the array's own text
