"""Trainings killed outright in the middle, in a process of their own, go on and end the same."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def start(script: str, *arguments) -> subprocess.Popen:
    """One of the workflow's scripts, leading a process group."""
    return subprocess.Popen(
        [sys.executable, f"workflow/scripts/{script}.py", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": "workflow", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        start_new_session=True,
    )


def finish(job: subprocess.Popen) -> str:
    """What it printed; it has to succeed."""
    said, _ = job.communicate()
    assert job.returncode == 0, said
    return said


def kill_after(job: subprocess.Popen, mark: str) -> None:
    """Kill the job and its children when it has printed a line with the mark."""
    for line in job.stdout:
        if mark in line:
            break
    os.killpg(job.pid, signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL


PRETRAINING = {
    "seed": 0, "vocabulary": 500, "width": 32, "layers": 2, "feed_forward": 48, "steps": 60,
    "batch_size": 2, "sequence_length": 64, "learning_rate": 0.004, "warmup_ratio": 0.03,
    "instruction_share": 0.12, "checkpoints": 10,
}  # fmt: skip


def test_a_killed_pretraining_ends_with_the_bytes_of_an_undisturbed_one(tmp_path):
    def begin(name):
        values = json.dumps(PRETRAINING)
        output = tmp_path / name
        return start(
            "pretrain_bases", "--family", "gemma4", "--pretraining", values, "--output", output
        )

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(begin("whole"))
    for step in (13, 34):
        kill_after(begin("killed"), f"step {step}/60")
        assert not killed.exists()
    assert "going on after step 30" in finish(begin("killed"))
    for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    curves = [
        [line.split("\t")[:3] for line in (folder / "loss.tsv").read_text().splitlines()]
        for folder in (whole, killed)
    ]
    assert len(curves[0]) == 61
    assert curves[0] == curves[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "whole"]
