"""LoRA training with LLaMA-Factory: its input files, its precision and its command.

The examples (JSON) and the settings (YAML) are written to files first and kept with the result.

LLaMA-Factory loads weights in the type that they are stored in, whatever its setting `bf16` is:
Llama 2 and Pythia-12B, stored in float16, would be trained in another precision than the models
made from them. So every training gets a folder from which its base is loaded in the precision of
the training: bfloat16, or float32.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.errors import InputError
from zerogap.families import family_of_folder

# Files.


def write_datasets(folder: Path, datasets: Mapping[str, list[dict[str, str]]]) -> None:
    """Write one JSON file per data set (name → examples), and `dataset_info.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = {"prompt": "prompt", "response": "response"}
    info = {name: {"file_name": f"{name}.json", "columns": columns} for name in datasets}
    for name, content in {**datasets, "dataset_info": info}.items():
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n")


def train_settings(
    model: Path, data: Path, family: str, training: Mapping[str, Any], output: Path
) -> dict[str, Any]:
    """The settings of `llamafactory-cli train` (paper §5.1).

    Args:
        model: folder of the model to start from.
        data: folder written by :func:`write_datasets`.
        family: a model family or "auto", which decides the LoRA targets.
        training: the configuration's `training` section for this model, and the seed.
        output: folder of the adapter.
    """
    lora, save_steps = training["lora"], training["save_steps"]
    at_once = training["per_device_batch_size"] * training["num_gpus"]
    strategy = {None: "no", "epoch": "epoch"}.get(save_steps, "steps")
    return {
        "model_name_or_path": str(model),
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "lora",
        "lora_rank": lora["rank"],
        "lora_alpha": lora["alpha"],
        "lora_dropout": lora["dropout"],
        "lora_target": ",".join(family_of_folder(model, family).lora_targets),
        "dataset_dir": str(data),
        "dataset": ",".join(json.loads((data / "dataset_info.json").read_text())),
        "template": "fewshot",  # the one that zerogap.training.examples spells the examples for
        "cutoff_len": training["cutoff_len"],
        "overwrite_cache": True,
        "preprocessing_num_workers": 1,
        "dataloader_num_workers": 0,
        "output_dir": str(output),
        "logging_steps": 1,
        "save_strategy": strategy,  # of checkpoints, which hold all that is needed to resume
        **({"save_total_limit": 2} if save_steps else {}),
        **({"save_steps": save_steps} if strategy == "steps" else {}),
        "report_to": "none",
        "disable_tqdm": True,
        "per_device_train_batch_size": training["per_device_batch_size"],
        "gradient_accumulation_steps": training["global_batch_size"] // at_once,
        "learning_rate": training["learning_rate"],
        "num_train_epochs": training["num_epochs"],
        "lr_scheduler_type": training["lr_scheduler"],
        "warmup_steps": training["warmup_ratio"],  # below 1: a fraction of all steps
        "bf16": trains_in_bf16(training),
        "use_cpu": training["device"] == "cpu",
        "disable_gradient_checkpointing": not training["bf16"] or training["device"] == "cpu",
        # The other kind would lose the gradients of keys and values that layers share (Gemma 4).
        "use_reentrant_gc": False,
        "train_sampling_strategy": "group_by_length" if training["group_by_length"] else "random",
        "seed": training["seed"],
    }


def check_device(training: Mapping[str, Any]) -> None:
    """InputError if a training in bfloat16 has no GPU and its configuration names no CPU."""
    if not training["bf16"] or training["device"] != "auto":
        return
    import torch  # takes seconds; other trainings do not wait for it

    cuda = torch.cuda
    if not (cuda.is_available() and cuda.is_bf16_supported(including_emulation=False)):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
        raise InputError(
            f"config: training.bf16 is true, but {platform.node()} has no visible GPU for bfloat16 "
            f"(CUDA_VISIBLE_DEVICES: {visible}); run the job where there is one (on Slurm: "
            "set-resources, train_lora, slurm_partition), or set training.device: cpu"
        )


# Precision.


def trains_in_bf16(training: Mapping[str, Any]) -> bool:
    """Whether a training runs in bfloat16, which a CPU that is slow in it replaces by float32."""
    if not training["bf16"] or training["device"] != "cpu":
        return bool(training["bf16"])
    import torch  # takes seconds; other trainings do not wait for it

    from zerogap.precision import usable_dtype

    return usable_dtype(torch.bfloat16, torch.device("cpu")) == torch.bfloat16


def base_to_load(model: Path, training: Mapping[str, Any], folder: Path) -> Path:
    """The folder from which a training loads its base in the precision that it runs in.

    For a base that is stored in another type it is `folder`, which may exist already: a
    `config.json` of its own and links to the other files.
    """
    dtype = "bfloat16" if trains_in_bf16(training) else "float32"
    config = json.loads((model / "config.json").read_text())
    wanted = {**_with_dtype(config, dtype), "dtype": dtype}
    if config == wanted:
        return model
    folder.mkdir(exist_ok=True)
    for path in model.iterdir():
        link = folder / path.name
        link.unlink(missing_ok=True)
        if path.name == "config.json":
            link.write_text(json.dumps(wanted, indent=2) + "\n")
        else:
            link.symlink_to(path.resolve())
    return folder


def name_base(adapter: Path, model: Path) -> None:
    """Make an adapter name the base itself, not the folder that it was loaded from."""
    path = adapter / "adapter_config.json"
    config = json.loads(path.read_text()) | {"base_model_name_or_path": str(model)}
    path.write_text(json.dumps(config, indent=2, sort_keys=True))


def _with_dtype(config: Any, dtype: str) -> Any:
    """A configuration with one type in place of every other, those of towers included."""
    if not isinstance(config, dict):
        return config
    return {
        key: dtype if key in ("dtype", "torch_dtype") else _with_dtype(value, dtype)
        for key, value in config.items()  # `torch_dtype` is of transformers 4
    }


# The command.


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
        environment["PYTHONPATH"] = _prepended("PYTHONPATH", Path(__file__).parent / "stubs")
    arguments = [str(binaries / "llamafactory-cli"), "train", str(settings)]
    # The locks of the job's GPUs (zerogap.gpus) and of the working folder are open files. The
    # command inherits them, so that they stay locked if it outlives this process.
    code = subprocess.call(arguments, env=environment, close_fds=False)  # noqa: S603
    if code:
        raise RuntimeError(f"'{' '.join(arguments)}' failed with exit code {code}; see above")


def launch_environment(num_gpus: int) -> dict[str, str]:
    """Environment variables that make LLaMA-Factory train with one process per device."""
    if num_gpus == 1:
        return {"NPROC_PER_NODE": "1"}
    # The processes of a job divide its threads.
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", num_gpus)) // num_gpus)
    return {
        "FORCE_TORCHRUN": "1",
        "NNODES": "1",
        "NPROC_PER_NODE": str(num_gpus),
        "OMP_NUM_THREADS": str(threads),
        "RDZV_ID": "zerogap",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",  # any free one, so that several trainings can share a machine
    }


def loss_curve(adapter: Path, model: str, variant: str) -> pd.DataFrame:
    """The training's loss, one row per step: model, benchmark, step, loss (nats), learning_rate."""
    history = json.loads((adapter / "trainer_state.json").read_text())["log_history"]
    steps = [entry for entry in history if "loss" in entry]
    curve = pd.DataFrame(steps, columns=["step", "loss", "learning_rate"])
    curve.insert(0, "benchmark", variant)
    curve.insert(0, "model", model)
    return curve


def _prepended(variable: str, folder: Path) -> str:
    """The search path of an environment variable with a folder put in front."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable))))
