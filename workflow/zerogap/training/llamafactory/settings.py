"""The files that LLaMA-Factory reads: data sets as JSON, settings as YAML."""

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from zerogap.errors import InputError
from zerogap.families import family_of_folder
from zerogap.training.llamafactory.precision import trains_in_bf16

TEMPLATE = "fewshot"  # the one that zerogap.training.examples spells the examples for
Sections = dict[str, dict[str, Any]]  # heading → settings


def write_datasets(folder: Path, datasets: Mapping[str, list[dict[str, str]]]) -> None:
    """Write one JSON file per data set and the `dataset_info.json` that describes them.

    Args:
        folder: where the files go; created if it does not exist.
        datasets: name → examples, each with prompt and response.
    """
    folder.mkdir(parents=True, exist_ok=True)
    info = {
        name: {
            "file_name": f"{name}.json",
            "columns": {"prompt": "prompt", "response": "response"},
        }
        for name in datasets
    }
    for name, content in {**datasets, "dataset_info": info}.items():
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n")


def train_settings(
    model: Path, data: Path, family: str, training: Mapping[str, Any], output: Path
) -> Sections:
    """The settings of `llamafactory-cli train` (paper §5.1).

    Args:
        model: folder of the model to start from.
        data: folder written by :func:`write_datasets`.
        family: a model family or "auto" (:mod:`zerogap.families`), which decides the LoRA targets.
        training: the configuration's `training` section for this model, and the seed.
        output: folder of the adapter.
    """
    lora = training["lora"]
    return {
        "model": {"model_name_or_path": str(model)},
        "method": {
            "stage": "sft",
            "do_train": True,
            "finetuning_type": "lora",
            "lora_rank": lora["rank"],
            "lora_alpha": lora["alpha"],
            "lora_dropout": lora["dropout"],
            "lora_target": ",".join(family_of_folder(model, family).lora_targets),
        },
        "dataset": {
            "dataset_dir": str(data),
            "dataset": ",".join(json.loads((data / "dataset_info.json").read_text())),
            "template": TEMPLATE,
            "cutoff_len": training["cutoff_len"],
            "overwrite_cache": True,
            "preprocessing_num_workers": 1,
            "dataloader_num_workers": 0,
        },
        "output": {
            "output_dir": str(output),
            "logging_steps": 1,
            **_save_settings(training["save_steps"]),
            "report_to": "none",
            "disable_tqdm": True,
        },
        "train": {
            "per_device_train_batch_size": training["per_device_batch_size"],
            "gradient_accumulation_steps": accumulation_steps(training),
            "learning_rate": training["learning_rate"],
            "num_train_epochs": training["num_epochs"],
            "lr_scheduler_type": training["lr_scheduler"],
            "warmup_steps": training["warmup_ratio"],  # below 1: a fraction of all steps
            "bf16": trains_in_bf16(training),
            "use_cpu": training["device"] == "cpu",
            "disable_gradient_checkpointing": not training["bf16"] or training["device"] == "cpu",
            "train_sampling_strategy": (
                "group_by_length" if training["group_by_length"] else "random"
            ),
            "seed": training["seed"],
        },
    }


def check_device(training: Mapping[str, Any]) -> None:
    """Check that a training in bfloat16 has a GPU, unless the configuration names the CPU.

    Raises:
        InputError: it has none, and the configuration does not name the CPU.
    """
    if training["bf16"] and training["device"] == "auto" and not _gpu_supports_bf16():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
        raise InputError(
            f"config: training.bf16 is true, but {platform.node()} has no visible GPU for bfloat16 "
            f"(CUDA_VISIBLE_DEVICES: {visible}); run the job where there is one (on Slurm: "
            "set-resources, train_lora, slurm_partition), or set training.device: cpu"
        )


def accumulation_steps(training: Mapping[str, Any]) -> int:
    """Gradient accumulation steps: global batch / (batch per device × devices).

    The configuration's check makes sure that nothing remains.
    """
    batch_per_step = training["per_device_batch_size"] * training["num_gpus"]
    return int(training["global_batch_size"] // batch_per_step)


def write_settings(path: Path, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the YAML file of a command, one block per section under its heading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(
            f"### {title}\n{yaml.safe_dump(dict(values), sort_keys=False)}"
            for title, values in sections.items()
        )
    )


def _save_settings(save_steps: int | str | None) -> dict[str, Any]:
    """When LLaMA-Factory writes checkpoints, which hold all it needs to resume."""
    if save_steps is None:
        return {"save_strategy": "no"}
    if save_steps == "epoch":
        return {"save_strategy": "epoch", "save_total_limit": 2}
    return {"save_strategy": "steps", "save_steps": save_steps, "save_total_limit": 2}


def _gpu_supports_bf16() -> bool:
    from transformers.utils import is_torch_bf16_gpu_available  # loads torch

    return bool(is_torch_bf16_gpu_available())
