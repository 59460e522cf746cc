"""LoRA training and merging by LLaMA-Factory: what it reads, its two commands, what it leaves.

Everything it is given is written down first (the examples as JSON, the settings as YAML) and stays
beside the result.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from zerogap.data import prompts
from zerogap.errors import InputError
from zerogap.training.families import FAMILIES, training_example

if TYPE_CHECKING:  # merging and training start seconds earlier without it
    from transformers import PreTrainedTokenizerBase

Example = dict[str, str]  # prompt, response


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
    pairs: Sequence[tuple[str, str]], tokenizer: "PreTrainedTokenizerBase", cutoff_len: int
) -> list[Example]:
    """The pairs as the `fewshot` template has to find them, each checked id by id.

    Raises:
        InputError: training would see other ids than inference, or an example is longer than
            `cutoff_len` tokens, so that LLaMA-Factory would cut it.
    """
    written = []
    for number, (prompt, response) in enumerate(pairs):
        asked, answered, tokens = training_example(tokenizer, prompt, response)
        if tokens > cutoff_len:
            raise InputError(
                f"training example {number} has {tokens} tokens, but training.cutoff_len is "
                f"{cutoff_len}: raise it or use fewer shots ({response[:60]!r}…)"
            )
        written.append({"prompt": asked, "response": answered})
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


def accumulation_steps(training: Mapping[str, Any]) -> int:
    """Gradient accumulation that makes the global batch.

    Raises:
        InputError: the global batch is no multiple of what the devices take at once.
    """
    at_once = training["per_device_batch_size"] * training["gpus"]
    steps, rest = divmod(training["global_batch_size"], at_once)
    if rest or not steps:
        raise InputError(
            f"training.global_batch_size is {training['global_batch_size']}, no multiple of "
            f"per_device_batch_size × gpus = {at_once}"
        )
    return steps


def train_sections(
    model: Path, data: Path, output: Path, family: str, training: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The settings of `llamafactory-cli train`, by section (paper §5.1).

    Args:
        training: template, lora (rank, alpha, dropout), learning_rate, epochs, scheduler,
            warmup_ratio, global_batch_size, per_device_batch_size, gpus, bf16, group_by_length,
            cutoff_len, seed.
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
            "save_strategy": "no",
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
    environment = os.environ | {
        "PATH": _before("PATH", binaries),  # where torchrun is
        "NPROC_PER_NODE": str(gpus),
    }
    if importlib.util.find_spec("torchaudio") is None:
        environment["PYTHONPATH"] = _before("PYTHONPATH", Path(__file__).parent / "absent")
    line = [str(binaries / "llamafactory-cli"), command, str(settings)]
    # The locks of the job's GPUs (zerogap.devices) are open files, which the command keeps too.
    code = subprocess.run(line, env=environment, check=False, close_fds=False).returncode
    if code:
        raise RuntimeError(f"'{' '.join(line)}' ended with code {code}; its output is above")


def _before(variable: str, folder: Path) -> str:
    """The search path of an environment variable with a folder put in front."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable))))


def losses(adapter: Path, model: str, domain: str) -> pd.DataFrame:
    """The training's loss curve: model, domain, step, loss (nats a token), learning_rate."""
    history = json.loads((adapter / "trainer_state.json").read_text())["log_history"]
    return pd.DataFrame(
        [
            (model, domain, entry["step"], entry["loss"], entry["learning_rate"])
            for entry in history
            if "loss" in entry
        ],
        columns=["model", "domain", "step", "loss", "learning_rate"],
    )
