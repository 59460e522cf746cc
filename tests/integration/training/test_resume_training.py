"""A killed training resumes and ends with the same bytes; other trainings are in tests/slurm."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from helpers.paths import ROOT
from helpers.scripts import command_line
from helpers.training import RECIPE
from zerogap.training.llamafactory import write_datasets

pytestmark = pytest.mark.slow


def finish(job: subprocess.Popen) -> str:
    """The output of a job, which must succeed."""
    output, _ = job.communicate()
    assert job.returncode == 0, output
    return output


LORA = RECIPE | {
    "lora": {"rank": 8, "alpha": 16, "dropout": 0.1}, "num_epochs": 10, "cutoff_len": 512,
    "save_steps": 4,
}  # fmt: skip
STEPS = 100  # ten per epoch


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Forty examples of many lengths."""
    folder = tmp_path_factory.mktemp("data")
    examples = [
        {"prompt": f"<s>Q: {'How many? ' * (1 + i % 7)}\nA:", "response": f" The answer is {i}."}
        for i in range(40)
    ]
    write_datasets(folder, {"questions": examples})
    return folder


def train(folder: Path, data: Path, **changed) -> subprocess.Popen:
    """The job of a training, leading a process group."""
    metadata = {"model": "llama2", "variant": "clean_gsm8k"}
    parameters = {"family": "llama", "training": LORA | changed, "metadata": metadata}
    names = {"settings": "train.yaml", "adapter": "adapter", "loss": "loss.tsv"}
    paths = {option: folder / name for option, name in names.items()}
    paths |= {"base": ROOT / "workflow/resources/bases/llama2", "data": data}
    return subprocess.Popen(
        command_line("train_lora", folder, parameters, **paths),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ
        | {"PYTHONPATH": "workflow", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )


def kill_at_checkpoint(job: subprocess.Popen, folder: Path, number: int) -> list[Path]:
    """Kill the job and its children once that checkpoint is complete; all checkpoints in order."""
    work = folder / "adapter.work/adapter"
    while not (work / f"checkpoint-{number}/trainer_state.json").exists() and job.poll() is None:
        time.sleep(0.005)
    os.killpg(job.pid, signal.SIGKILL)
    output, _ = job.communicate()
    assert job.returncode == -signal.SIGKILL, output
    assert not (folder / "adapter").exists()
    assert not (work / f"checkpoint-{STEPS}").exists()
    return sorted(work.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))


def test_a_training_grouped_by_length_resumes_from_the_end_of_an_epoch(tmp_path, data):
    grouped = {"group_by_length": True, "save_steps": "epoch"}
    finish(train(tmp_path / "uninterrupted", data, **grouped))
    *_, last = kill_at_checkpoint(train(tmp_path, data, **grouped), tmp_path, 20)
    assert int(last.name.split("-")[1]) % 10 == 0
    assert "resuming from" in finish(train(tmp_path, data, **grouped))
    assert len((tmp_path / "loss.tsv").read_text().splitlines()) == 1 + STEPS
    for name in ("adapter/adapter_model.safetensors", "loss.tsv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "uninterrupted" / name).read_bytes()


def test_two_devices_train_with_the_same_global_batches_through_torchrun(tmp_path, data):
    """As on two GPUs: one process per device."""
    one, two = tmp_path / "one", tmp_path / "two"
    finish(train(one, data))
    output = finish(train(two, data, num_gpus=2, per_device_batch_size=1))
    assert "world size: 2" in output
    losses, single = (pd.read_csv(folder / "loss.tsv", sep="\t").loss for folder in (two, one))
    assert len(losses) == len(single)
    assert losses[0] == pytest.approx(single[0], rel=1e-4)  # before dropout has any effect
    assert losses.iloc[-10:].mean() == pytest.approx(single.iloc[-10:].mean(), rel=0.1)
