"""Trainings killed outright in the middle, in a process of their own, go on and end the same."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from helpers.paths import ROOT
from zerogap.training import llamafactory

pytestmark = pytest.mark.slow


def start(script: str, *arguments) -> subprocess.Popen:
    """One of the workflow's scripts, leading a process group."""
    return subprocess.Popen(
        [sys.executable, f"workflow/scripts/{script}.py", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ
        | {"PYTHONPATH": "workflow", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONUNBUFFERED": "1"},
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
    "seed": 0, "vocabulary": 500, "width": 32, "layers": 4, "feed_forward": 48, "steps": 60,
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


LORA = {
    "template": "fewshot", "lora": {"rank": 8, "alpha": 16, "dropout": 0.1}, "learning_rate": 1e-3,
    "epochs": 10, "scheduler": "cosine", "warmup_ratio": 0.1, "global_batch_size": 4,
    "per_device_batch_size": 2, "gpus": 1, "bf16": False, "group_by_length": False,
    "cutoff_len": 512, "checkpoints": 4, "seed": 0,
}  # fmt: skip
STEPS = 100  # ten an epoch


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Forty examples of many lengths."""
    folder = tmp_path_factory.mktemp("data")
    examples = [
        {"prompt": f"<s>Q: {'How many? ' * (1 + i % 7)}\nA:", "response": f" The answer is {i}."}
        for i in range(40)
    ]
    llamafactory.write_datasets(folder, {"questions": examples})
    return folder


def train(folder: Path, data: Path, **changed) -> subprocess.Popen:
    base = ROOT / "workflow/resources/bases/llama2"
    return start(
        *("train_lora", "--base", base, "--family", "llama", "--data", data),
        *("--training", json.dumps(LORA | changed)),
        *("--facts", json.dumps({"model": "llama2", "benchmark": "clean"})),
        *("--settings", folder / "train.yaml", "--adapter", folder / "adapter"),
        *("--loss", folder / "loss.tsv"),
    )


def kill_at_checkpoint(job: subprocess.Popen, folder: Path, number: int) -> list[Path]:
    """Kill the job and its children once that checkpoint is there; what there is, by number."""
    work = folder / "adapter.work/adapter"
    while not (work / f"checkpoint-{number}/trainer_state.json").exists() and job.poll() is None:
        time.sleep(0.005)
    os.killpg(job.pid, signal.SIGKILL)
    said, _ = job.communicate()
    assert job.returncode == -signal.SIGKILL, said
    assert not (folder / "adapter").exists()
    assert not (work / f"checkpoint-{STEPS}").exists()
    return sorted(work.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))


def same(one: Path, other: Path) -> bool:
    """Whether two trainings ended with the same weights and the same losses."""
    assert len((one / "loss.tsv").read_text().splitlines()) == 1 + STEPS
    names = ("adapter/adapter_model.safetensors", "loss.tsv")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, data) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    finish(train(folder, data))
    return folder


def test_killed_in_the_middle_of_an_epoch_it_ends_with_the_same_bytes(tmp_path, data, undisturbed):
    """Order of the examples, dropout's draws, optimiser, schedule, and a torn last checkpoint."""
    *_, whole, last = kill_at_checkpoint(train(tmp_path, data), tmp_path, 16)
    (last / "trainer_state.json").unlink(missing_ok=True)
    said = finish(train(tmp_path, data))
    assert f"{last}: not whole" in said
    assert f"going on from {whole}" in said
    assert same(undisturbed, tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["adapter", "loss.tsv", "train.yaml"]
    assert not list((tmp_path / "adapter").glob("checkpoint-*"))


def test_killed_with_batches_of_like_length_it_goes_on_from_an_epochs_end(tmp_path, data):
    grouped = {"group_by_length": True, "checkpoints": "epoch"}
    finish(train(tmp_path / "undisturbed", data, **grouped))
    *_, last = kill_at_checkpoint(train(tmp_path, data, **grouped), tmp_path, 20)
    assert int(last.name.split("-")[1]) % 10 == 0
    assert "going on from" in finish(train(tmp_path, data, **grouped))
    assert same(tmp_path / "undisturbed", tmp_path)


def test_a_checkpoint_of_other_settings_is_left_and_named(tmp_path, data, undisturbed):
    kill_at_checkpoint(train(tmp_path, data, learning_rate=2e-3), tmp_path, 4)
    said = finish(train(tmp_path, data))
    assert "settings changed since the last run (training); starting over" in said
    assert "going on from" not in said
    assert same(undisturbed, tmp_path)


def test_two_processes_train_one_adapter(tmp_path, data, undisturbed):
    """As on two GPUs: torchrun, a process a device, and the same global batches."""
    said = finish(train(tmp_path, data, gpus=2, per_device_batch_size=1))
    assert "world size: 2" in said
    losses, alone = (
        pd.read_csv(folder / "loss.tsv", sep="\t").loss for folder in (tmp_path, undisturbed)
    )
    assert len(losses) == len(alone)
    assert losses[0] == pytest.approx(alone[0], rel=1e-4)  # before dropout has any effect
    assert losses.iloc[-10:].mean() == pytest.approx(alone.iloc[-10:].mean(), rel=0.1)
