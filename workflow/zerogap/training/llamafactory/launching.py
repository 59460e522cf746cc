"""Running LLaMA-Factory, and the loss curve that a training leaves."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

_STUBS = Path(__file__).parents[1] / "stubs"


def train(settings: Path, num_gpus: int = 1) -> None:
    """Run `llamafactory-cli train` on a settings file.

    Raises:
        RuntimeError: the command failed; its output is above.
    """
    binaries = Path(sys.executable).parent
    environment = os.environ | {"PATH": _prepended("PATH", binaries)} | launch_environment(num_gpus)
    environment["PYTHONHASHSEED"] = "0"  # adapter_config.json lists a set in its order
    # Looked up by its metadata: this process itself may have imported the stub.
    if not any(importlib.metadata.distributions(name="torchaudio")):
        environment["PYTHONPATH"] = _prepended("PYTHONPATH", _STUBS)
    arguments = [str(binaries / "llamafactory-cli"), "train", str(settings)]
    # The locks of the job's GPUs (zerogap.gpus) and of the working folder are open files. The
    # command inherits them, so that they stay locked if it outlives this process.
    process = subprocess.run(  # noqa: S603
        arguments, env=environment, check=False, close_fds=False
    )
    if process.returncode:
        raise RuntimeError(
            f"'{' '.join(arguments)}' failed with exit code {process.returncode}; see above"
        )


def launch_environment(num_gpus: int) -> dict[str, str]:
    """Environment variables that make LLaMA-Factory train with one process per device.

    With several devices it goes through torchrun. The processes meet at a free port of this machine
    (port 0), so that several trainings can share a machine, and they divide the threads that
    Snakemake gives to the job (OMP_NUM_THREADS).
    """
    processes = {"NPROC_PER_NODE": str(num_gpus)}
    if num_gpus == 1:
        return processes
    rendezvous = {"RDZV_ID": "zerogap", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", num_gpus)) // num_gpus)
    torchrun = {"FORCE_TORCHRUN": "1", "NNODES": "1", "OMP_NUM_THREADS": str(threads)}
    return processes | rendezvous | torchrun


def loss_curve(adapter: Path, model: str, variant: str) -> pd.DataFrame:
    """The training's loss curve.

    Returns:
        One row per step: model, benchmark (the variant), step, loss (nats per token),
        learning_rate.
    """
    history = json.loads((adapter / "trainer_state.json").read_text())["log_history"]
    return pd.DataFrame(
        [
            (model, variant, entry["step"], entry["loss"], entry["learning_rate"])
            for entry in history
            if "loss" in entry
        ],
        columns=["model", "benchmark", "step", "loss", "learning_rate"],
    )


def _prepended(variable: str, folder: Path) -> str:
    """The search path of an environment variable with a folder put in front."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable))))
