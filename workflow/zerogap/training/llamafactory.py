"""LoRA training and merging by LLaMA-Factory: what it reads, its two commands, what it leaves.

Everything it is given is written down first (the examples as JSON, the settings as YAML) and stays
beside the result.
"""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml
from safetensors import SafetensorError, safe_open

from zerogap.data import prompts
from zerogap.errors import InputError
from zerogap.families import FAMILIES, training_example
from zerogap.io.resume import fingerprint, folder_state

if TYPE_CHECKING:  # merging and training start seconds earlier without it
    from transformers import PreTrainedTokenizerBase

Example = dict[str, str]  # prompt, response
ADAPTER = "adapter_model.safetensors"


def accumulation_steps(training: Mapping[str, Any]) -> int:
    """Gradient accumulation that makes the global batch: per device × accumulation × devices.

    Raises:
        InputError: the global batch is not a multiple of what the devices take at once.
    """
    at_once = training["per_device_batch_size"] * training["gpus"]
    steps, rest = divmod(training["global_batch_size"], at_once)
    if rest:
        raise InputError(
            f"config: training.global_batch_size is {training['global_batch_size']}, no multiple "
            f"of per_device_batch_size × gpus = {at_once}"
        )
    return steps


def instruction_prompt(row: Mapping[str, str]) -> str:
    """An instruction as a prompt: the template joins its parts with nothing, so they end in lines.

    Args:
        row: system (may be empty), question, response.
    """
    system = f"{row['system']}\n\n" if row["system"] else ""
    return f"{system}{row['question']}\n\n"


def question_pairs(
    questions: pd.DataFrame, exemplars: list[dict[str, str]], field: str
) -> list[tuple[str, str]]:
    """(few-shot prompt, response) of every question; rationale and gold are always the originals.

    Args:
        questions: a `questions` table.
        field: the column that holds the text to ask: "question", or "paraphrase" (PQ, A.1).
    """
    prefix = prompts.few_shot_prefix(exemplars)
    return [
        (prompts.prompt(prefix, text), prompts.response(rationale, gold))
        for text, rationale, gold in zip(
            questions[field], questions.rationale, questions.gold, strict=True
        )
    ]


def instruction_pairs(rows: Iterable[Mapping[str, str]]) -> list[tuple[str, str]]:
    """(prompt, response) of every instruction."""
    return [(instruction_prompt(row), row["response"]) for row in rows]


def examples(
    pairs: Sequence[tuple[str, str]],
    tokenizer: "PreTrainedTokenizerBase",
    cutoff_len: int,
    *,
    may_be_cut: bool = False,
) -> list[Example]:
    """The pairs as the `fewshot` template has to find them, each checked id by id.

    Args:
        may_be_cut: leave it to LLaMA-Factory to cut examples longer than `cutoff_len` tokens,
            as it does by default; how many are is printed.

    Raises:
        InputError: training would see other ids than inference, or an example is too long that
            may not be cut.
    """
    written, cut = [], 0
    for number, (prompt, response) in enumerate(pairs):
        asked, answered, tokens = training_example(tokenizer, prompt, response)
        if tokens > cutoff_len and may_be_cut:
            cut += 1
        elif tokens > cutoff_len:
            raise InputError(
                f"training example {number} has {tokens} tokens, but training.cutoff_len is "
                f"{cutoff_len}: raise it or use fewer shots ({response[:60]!r}…)"
            )
        written.append({"prompt": asked, "response": answered})
    if cut:
        print(f"{cut} of {len(written)} examples are cut to {cutoff_len} tokens")
    return written


def write_datasets(folder: Path, datasets: Mapping[str, list[Example]]) -> None:
    """One JSON file a dataset and the `dataset_info.json` that LLaMA-Factory looks for."""
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


def origin(model: Path, data: Path, family: str, training: Mapping[str, Any]) -> dict[str, Any]:
    """Everything an adapter depends on: what a checkpoint must have been made from."""
    packages = ("llamafactory", "transformers", "peft", "torch")
    return {
        "training": {key: value for key, value in training.items() if key != "checkpoints"},
        "family": family,
        "data": fingerprint([path.read_text() for path in sorted(data.glob("*.json"))]),
        "model": folder_state(model),
        "versions": [importlib.metadata.version(package) for package in packages],
    }


def train_sections(
    model: Path, data: Path, family: str, training: Mapping[str, Any], output: Path
) -> dict[str, dict[str, Any]]:
    """The settings of `llamafactory-cli train`, by section (paper §5.1).

    Args:
        training: template, lora (rank, alpha, dropout), learning_rate, epochs, scheduler,
            warmup_ratio, global_batch_size, per_device_batch_size, gpus, bf16, group_by_length,
            cutoff_len, checkpoints, seed.
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
            "lora_target": ",".join(FAMILIES[family].lora_targets),
        },
        "dataset": {
            "dataset_dir": str(data),
            "dataset": ",".join(json.loads((data / "dataset_info.json").read_text())),
            "template": training["template"],
            "cutoff_len": training["cutoff_len"],
            "overwrite_cache": True,
            "preprocessing_num_workers": 1,
            "dataloader_num_workers": 0,
        },
        "output": {
            "output_dir": str(output),
            "logging_steps": 1,
            **_saving(training["checkpoints"]),
            "report_to": "none",
            "disable_tqdm": True,
        },
        "train": {
            "per_device_train_batch_size": training["per_device_batch_size"],
            "gradient_accumulation_steps": accumulation_steps(training),
            "learning_rate": training["learning_rate"],
            "num_train_epochs": training["epochs"],
            "lr_scheduler_type": training["scheduler"],
            "warmup_steps": training["warmup_ratio"],  # below 1 a share of all steps
            "bf16": training["bf16"],
            "use_cpu": training["bf16"] and not _bf16_gpu(),  # asked for it, or bf16 is refused
            "disable_gradient_checkpointing": not training["bf16"],
            "train_sampling_strategy": (
                "group_by_length" if training["group_by_length"] else "random"
            ),
            "seed": training["seed"],
        },
    }


def _saving(checkpoints: int | str | None) -> dict[str, Any]:
    """When LLaMA-Factory saves; it goes on from the last by itself (all state is in it)."""
    if checkpoints is None:
        return {"save_strategy": "no"}
    when = {"save_strategy": "epoch"}
    if checkpoints != "epoch":
        when = {"save_strategy": "steps", "save_steps": checkpoints}
    return when | {"save_total_limit": 2}


def leave_whole_checkpoints(folder: Path, gpus: int) -> Path | None:
    """Remove what a killed training left half-written; the checkpoint it will go on from, if any.

    Args:
        folder: the training's output folder; without a checkpoint it goes as a whole.
    """
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    whole = []
    for checkpoint in found:
        try:
            _check_checkpoint(checkpoint, gpus)
            whole.append(checkpoint)
        except (OSError, ValueError, SafetensorError, zipfile.BadZipFile) as error:
            print(f"{checkpoint}: not whole ({error}), left out", flush=True)
            shutil.rmtree(checkpoint)
    if not whole:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    print(f"going on from {whole[-1]}", flush=True)
    return whole[-1]


def _check_checkpoint(checkpoint: Path, gpus: int) -> None:
    """Weights, optimiser, scheduler, every device's random state, and the trainer's own, last."""
    json.loads((checkpoint / "trainer_state.json").read_text())
    with safe_open(checkpoint / ADAPTER, framework="numpy"):
        pass
    ranks = [f"rng_state_{rank}.pth" for rank in range(gpus)] if gpus > 1 else ["rng_state.pth"]
    for name in ("optimizer.pt", "scheduler.pt", *ranks):
        with zipfile.ZipFile(checkpoint / name) as archive:
            if torn := archive.testzip():
                raise zipfile.BadZipFile(f"{name}: {torn} is damaged")


def _bf16_gpu() -> bool:
    from transformers.utils import is_torch_bf16_gpu_available  # loads torch

    return is_torch_bf16_gpu_available()


def export_sections(
    model: Path, adapter: Path, output: Path, training: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The settings of `llamafactory-cli export`: merges the adapter, keeps the training's dtype."""
    return {
        "model": {
            "model_name_or_path": str(model),
            "adapter_name_or_path": str(adapter),
            "template": training["template"],
            "finetuning_type": "lora",
            "infer_dtype": "bfloat16" if training["bf16"] else "float32",
        },
        "export": {
            "export_dir": str(output),
            "export_size": 5,
            "export_device": "cpu",
            "export_legacy_format": False,
        },
    }


def write_settings(path: Path, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """The YAML file of a command, one headed block a section."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(
            f"### {title}\n{yaml.safe_dump(dict(values), sort_keys=False)}"
            for title, values in sections.items()
        )
    )


def run(command: str, settings: Path, gpus: int = 1) -> None:
    """Run `llamafactory-cli train` or `export` on a settings file, in the caller's environment.

    Raises:
        RuntimeError: the command failed; its output is above.
    """
    binaries = Path(sys.executable).parent
    environment = os.environ | {"PATH": _before("PATH", binaries)} | launch_environment(gpus)
    # By its metadata: this process itself may have imported the stand-in.
    if not any(importlib.metadata.distributions(name="torchaudio")):
        environment["PYTHONPATH"] = _before("PYTHONPATH", Path(__file__).parent / "stubs")
    line = [str(binaries / "llamafactory-cli"), command, str(settings)]
    # The locks of the job's GPUs (zerogap.gpus) and of the working folder are open files: the
    # command keeps them too, lest it outlive this process unnoticed.
    code = subprocess.run(line, env=environment, check=False, close_fds=False).returncode
    if code:
        raise RuntimeError(f"'{' '.join(line)}' ended with code {code}; its output is above")


def launch_environment(gpus: int) -> dict[str, str]:
    """What tells LLaMA-Factory to train with a process a device, through torchrun.

    The processes meet at a port of this machine that is free when they take it (0), so that several
    trainings share one. A single device needs no torchrun, wherever there is only one to be seen.
    """
    count = {"NPROC_PER_NODE": str(gpus)}
    if gpus == 1:
        return count
    meeting = {"RDZV_ID": "zerogap", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    return count | meeting | {"FORCE_TORCHRUN": "1", "NNODES": "1"}


def _before(variable: str, folder: Path) -> str:
    """The search path of an environment variable with a folder put in front."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable))))


def losses(adapter: Path, model: str, benchmark: str) -> pd.DataFrame:
    """The training's loss curve: model, benchmark, step, loss (nats a token), learning_rate."""
    history = json.loads((adapter / "trainer_state.json").read_text())["log_history"]
    return pd.DataFrame(
        [
            (model, benchmark, entry["step"], entry["loss"], entry["learning_rate"])
            for entry in history
            if "loss" in entry
        ],
        columns=["model", "benchmark", "step", "loss", "learning_rate"],
    )
