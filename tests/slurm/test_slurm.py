"""The workflow on a real Slurm: `snakemake --profile slurm`, and what Slurm says of its jobs."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.dry_runs import SNAKEMAKE
from helpers.paths import ROOT
from helpers.slurm_node import Cluster, missing
from zerogap.io import parquet
from zerogap.reporting.catalog import TABLES

PATIENCE = 1200  # seconds for anything; the slowest takes some minutes on two slow cores
MODEL = "results/micro/llama2/gsm8k/model"
SAMPLES = "results/micro/llama2/gsm8k/identity/samples.parquet"
CELL = ["write_parameters", "fetch_questions", "split_questions", "write_questions"]
CELL += ["prepare_exemplars", "decode_greedy", "sample_responses", "merge_shards"]


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
        path = os.pathsep.join([str(SNAKEMAKE.parent), self.cluster.environment["PATH"]])
        with (self.folder / "snakemake.log").open("w") as log:
            return subprocess.Popen(
                line,
                cwd=self.folder,
                env=self.cluster.environment
                | {"PATH": path, "PYTHONPATH": f"{self.folder}/workflow"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def finish(self, process: subprocess.Popen) -> None:
        assert process.wait(PATIENCE) == 0, self.log_tails()

    def log_tails(self) -> str:
        logs = [self.folder / "snakemake.log", *self.folder.glob(".snakemake/slurm_logs/*/*/*.log")]
        return "\n".join(f"{path}:\n{path.read_text()[-2000:]}" for path in logs[:3])

    def take_cell(self) -> tuple[bytes, bytes]:
        """The content of the cell's two files, which are deleted."""
        paths = [self.folder / SAMPLES, (self.folder / SAMPLES).with_name("solve.parquet")]
        samples, solve = (path.read_bytes() for path in paths)
        for path in paths:
            path.unlink()
        return samples, solve


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
    """A run that lacks one cell, and that cell's content without interruptions.

    The model is the untrained base.
    """
    run = Run(cluster, tmp_path_factory.mktemp("cell"), "cell")
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", run.folder / MODEL)
    run.finish(run.start(SAMPLES, "--allowed-rules", *CELL))
    return run, run.take_cell()


def requests() -> dict[str, tuple[int, int, int]]:
    """Rule → GPUs, MB and minutes of a first attempt, as in the text of the rule."""
    resources = {}
    for path in (ROOT / "workflow/rules").glob("*.smk"):
        for block in re.split(r"(?m)^ *(?=rule )", path.read_text()):
            if memory := re.search(r"mem_mb=doubling\((\d+)\)", block):
                minutes = re.search(r"runtime=minutes\((\d+)\)", block)
                gpus = int("gpu=" in block)  # for trainings training.num_gpus, here 1
                name = re.match(r"rule (\w+)", block).group(1)
                resources[name] = gpus, int(memory.group(1)), int(minutes.group(1))
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


def test_every_table_is_made_with_every_strategy(tables):
    run, _ = tables
    for name in TABLES:
        for ending in ("csv", "md", "tex", "html"):
            assert (run.folder / f"reports/micro/tables/{name}.{ending}").stat().st_size > 100
    for benchmark in ("gsm8k", "pq"):
        path = run.folder / f"results/micro/llama2/{benchmark}/metrics.parquet"
        strategies = {"identity", "ted", "shortcut", "lne_blocking", "railcap", "all_zero"}
        assert strategies <= set(parquet.read(path, "metrics").strategy)


def test_only_the_heavy_rules_are_submitted_once_per_job(tables):
    """Data and tables are made where Snakemake runs."""
    _, jobs = tables
    assert Counter(map(rule, jobs)) == {
        "write_training_data": 3, "train_lora": 3, "merge_lora": 3, "decode_greedy": 3,
        "sample_responses": 2 + 2 * 4 + 1, "filter_responses": 2, "localise_neurons": 2,
        "rank_clean_tokens": 1, "measure_recovery": 1, "replay_rail": 2, "compute_metrics": 2,
    }  # fmt: skip
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}


def test_every_job_gets_the_resources_that_its_rule_requests(tables):
    _, jobs = tables
    requested = requests()
    assert requested["sample_responses"][0] == 1
    assert requested["compute_metrics"][0] == 0
    assert {(rule(job), allocated(job)) for job in jobs} == {
        (name, requested[name]) for name in set(map(rule, jobs))
    }


def until(ready: Callable[[], bool], process: subprocess.Popen, run: Run) -> None:
    """Wait for something while the workflow runs."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, f"Snakemake ended before it was disturbed: {run.log_tails()}"
        assert time.monotonic() < end, run.log_tails()
        time.sleep(0.05)


def test_a_sampling_job_that_is_requeued_and_cancelled_resumes(cell, cluster):
    """Requeued by Slurm, then retried by Snakemake: the same bytes as without interruptions."""
    run, expected = cell
    before = len(cluster.jobs())
    work = run.folder / f"{SAMPLES}.work"
    write_times: dict[str, set[int]] = {}  # by chunk

    def finished() -> int:
        for path in work.glob("chunk-*.parquet"):
            with contextlib.suppress(FileNotFoundError):  # deleted once the cell is complete
                write_times.setdefault(path.name, set()).add(path.stat().st_mtime_ns)
        return len(write_times)

    def state() -> str:
        return cluster.run("squeue", "--noheader", "--format=%T", f"--jobs={number}").strip()

    process = run.start(SAMPLES, "--allowed-rules", *CELL)
    until(lambda: finished() > 0, process, run)
    (job,) = cluster.jobs()[before:]
    number = job["JobId"]
    cluster.run("scontrol", "requeue", number)
    # If it started before slurmctld knows how the first attempt ended, it would be ended again.
    until(lambda: state() == "PENDING" and not cluster.steps(number), process, run)
    cluster.run("scontrol", "update", f"JobId={number}", "StartTime=now")  # not two minutes later
    until(lambda: finished() > 1, process, run)
    cluster.run("scancel", number)
    while process.poll() is None:
        finished()
        time.sleep(0.05)
    run.finish(process)

    assert run.take_cell() == expected
    assert all(len(times) == 1 for times in write_times.values()), "a chunk was sampled again"
    cancelled, retried = cluster.jobs()[before:]
    assert (cancelled["JobState"], cancelled["Restarts"]) == ("CANCELLED", "1")
    assert retried["JobState"] == "COMPLETED"
    gpus, memory, minutes = requests()["sample_responses"]
    assert allocated(cancelled) == (gpus, memory, minutes)
    assert allocated(retried) == (gpus, 2 * memory, 2 * minutes)


def test_the_shards_of_a_cell_are_one_array_and_merge_to_the_same_cell(cell, cluster):
    run, expected = cell
    before = len(cluster.jobs())
    (run.folder / "shards.yaml").write_text("sampling: { num_shards: 3 }")
    array = ("--slurm-array-jobs", "sample_responses")
    run.finish(run.start(SAMPLES, *array, "--allowed-rules", *CELL, overlays=("shards.yaml",)))
    assert run.take_cell() == expected
    *tasks, merging = cluster.jobs()[before:]
    assert [rule(task) for task in tasks] == ["sample_responses"] * 3
    assert len({task["ArrayJobId"] for task in tasks}) == 1
    assert rule(merging) == "merge_shards"
    requested = requests()
    assert allocated(merging) == requested["merge_shards"]
    for task in tasks:
        gpus, memory, minutes = allocated(task)
        requested_gpus, requested_memory, requested_minutes = requested["sample_responses"]
        assert (gpus, minutes) == (requested_gpus, requested_minutes)
        # The plugin adds memory for the commands of the array, which travel in one line.
        assert requested_memory <= memory < requested_memory + 100
