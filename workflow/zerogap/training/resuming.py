"""Checkpoints of an interrupted training: what they belong to, and which of them are complete."""

import importlib.metadata
import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from zerogap.io import meaning
from zerogap.io.digests import folder_digest, value_digest
from zerogap.training.llamafactory import trains_in_bf16

_PACKAGES = ("llamafactory", "transformers", "peft", "torch")


def training_fingerprint(
    model: Path, data: Path, family: str, training: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything an adapter depends on; checkpoints made from anything else are not resumed.

    `data` is the folder of the examples.
    """
    return {
        "training": {key: value for key, value in training.items() if key != "save_steps"},
        "bf16": trains_in_bf16(training),
        "family": family,
        "data": value_digest([path.read_text() for path in sorted(data.glob("*.json"))]),
        "model": folder_digest(model),
        "versions": [importlib.metadata.version(package) for package in _PACKAGES],
        "code": meaning.digest("zerogap.training.llamafactory"),
    }


def remove_incomplete_checkpoints(folder: Path, num_gpus: int) -> None:
    """Delete the checkpoints that a killed training left incomplete.

    LLaMA-Factory resumes from the last checkpoint that it finds and fails if that one is damaged.
    An output folder without a complete checkpoint is deleted.
    """
    checkpoints = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    complete = []
    for checkpoint in checkpoints:
        try:
            _check_complete(checkpoint, num_gpus)
            complete.append(checkpoint)
        except (OSError, ValueError, SafetensorError, zipfile.BadZipFile) as error:
            print(f"{checkpoint}: incomplete ({error}); ignoring it", flush=True)
            shutil.rmtree(checkpoint)
    if not complete:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"resuming from {complete[-1].name}", flush=True)


def _check_complete(checkpoint: Path, num_gpus: int) -> None:
    """Read weights, optimiser, scheduler, each device's random state and the trainer's state."""
    json.loads((checkpoint / "trainer_state.json").read_text())
    with safe_open(checkpoint / "adapter_model.safetensors", framework="numpy"):
        pass
    random_states = (
        [f"rng_state_{rank}.pth" for rank in range(num_gpus)] if num_gpus > 1 else ["rng_state.pth"]
    )
    for name in ("optimizer.pt", "scheduler.pt", *random_states):
        with zipfile.ZipFile(checkpoint / name) as archive:
            if damaged := archive.testzip():
                raise zipfile.BadZipFile(f"{name}: {damaged} is damaged")
