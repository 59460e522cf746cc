"""A sampling job that is killed at several points writes the bytes of one that is not."""

import json
import signal
import subprocess
import sys
import time

import pytest

from helpers.job_inputs import BENCHMARK, SAMPLING, write_greedy, write_inputs
from helpers.paths import ROOT
from zerogap.sampling import jobs
from zerogap.sampling.tables import merge_shards

QUESTIONS = 420  # five chunks
PARAMETERS = {
    "strategy": {"class": "railcap", "parameters": {"n": 1}},
    "sampling": SAMPLING | {"num_samples": 50, "max_new_tokens": 4},
    "benchmark": BENCHMARK,
    "seed": 5,
    "stream": "strategies",
    "metadata": {},
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder, QUESTIONS)
    write_greedy(folder, [[1, 2, 3]] * QUESTIONS)
    return folder


def start(inputs, folder, *options):
    """Start a sampling job that writes into the folder."""
    folder.mkdir(exist_ok=True)
    command = [
        sys.executable, "workflow/scripts/sample_responses.py",
        "--parameters", json.dumps(PARAMETERS), "--batch-size", "90",
        "--model", inputs / "model", "--questions", inputs / "questions.parquet",
        "--exemplars", inputs / "exemplars.json", "--greedy", inputs / "greedy.parquet",
        "--samples", folder / "samples.parquet", "--solve", folder / "solve.parquet", *options,
    ]  # fmt: skip
    return subprocess.Popen(
        list(map(str, command)),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": "workflow", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )


@pytest.mark.slow
def test_a_job_killed_at_several_points_writes_the_bytes_of_an_undisturbed_one(inputs, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = start(inputs, whole)
    journal = killed / "samples.parquet.work/parts.jsonl"

    def num_parts():
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    for finished in (0, 1, 3):
        job = start(inputs, killed)
        while num_parts() <= finished and job.poll() is None:
            time.sleep(0.005)
        job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL, job.stderr.read()
        assert not (killed / "samples.parquet").exists()
        assert finished < num_parts() < 5
    assert undisturbed.wait() == 0, undisturbed.stderr.read()
    second = start(inputs, killed)
    assert second.wait() == 0, second.stderr.read()
    for name in ("samples.parquet", "solve.parquet"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not journal.parent.exists()


def test_merged_shards_have_the_bytes_of_an_undivided_job(tmp_path):
    inputs = write_inputs(tmp_path, 6) | {"greedy": write_greedy(tmp_path, [[1, 2, 3]] * 6)}

    def sample(name, **shard):
        (tmp_path / name).mkdir()
        samples, solve = (tmp_path / name / f"{table}.parquet" for table in ("samples", "solve"))
        jobs.sample_cell(**inputs, **PARAMETERS, samples=samples, solve=solve, **shard)
        return samples, solve

    whole = sample("whole")
    samples, solve = zip(*(sample(f"{k}", shard=(k, 2)) for k in range(2)), strict=True)
    merged = tmp_path / "samples.parquet", tmp_path / "solve.parquet"
    merge_shards(
        samples=samples,
        solve=solve,
        questions=inputs["questions"],
        merged_samples=merged[0],
        merged_solve=merged[1],
    )
    for one, other in zip(merged, whole, strict=True):
        assert one.read_bytes() == other.read_bytes()
