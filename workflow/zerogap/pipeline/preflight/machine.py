"""Checks of the machine: package versions, disk space and GPU memory."""

import contextlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from zerogap import gpus
from zerogap.config import Config
from zerogap.errors import InputError
from zerogap.families import ModelSize
from zerogap.pipeline import jobs, planning, targets
from zerogap.pipeline.preflight.result import (
    OK,
    SKIPPED,
    CheckResult,
    failed,
    input_errors_as_failures,
)
from zerogap.sampling.engines import required_vllm

# Tested together: this LLaMA-Factory accepts no newer transformers, and Gemma 4 needs this one.
VERSIONS = {"llamafactory": "0.9.5", "transformers": "5.6.0"}

# What caches and activations need at least, as a factor of the weights' memory.
DECODING_FACTOR, TRAINING_FACTOR = 1.2, 1.5


def check_versions() -> list[CheckResult]:
    """Whether LLaMA-Factory and transformers have the versions that are tested together."""
    results = []
    for package, expected in VERSIONS.items():
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            version = "missing"
        if version == expected:
            results.append(CheckResult(OK, "versions", f"{package} {version}"))
        else:
            tested = " and ".join(f"{name} {version}" for name, version in VERSIONS.items())
            text = (
                f"{package} is {version}, but only {tested} are tested together; install the "
                "versions of requirements.lock"
            )
            results.append(failed("versions", text))
    return results


def check_vllm(config: Config) -> list[CheckResult]:
    """Whether vLLM is installed, and recent enough, if the configuration asks for it."""
    check, results = "vLLM", list[CheckResult]()
    if config.decoding.engine != "vllm":
        return []
    if Path(sys.prefix, "conda-meta").is_dir():
        return [CheckResult(SKIPPED, check, "the environment of envs/vllm.yaml is not checked")]
    with input_errors_as_failures(results, check):
        vllm = required_vllm()
        results.append(CheckResult(OK, check, f"{vllm.version}, {vllm.python}"))
    return results


def check_disk_space(config: Config, sizes: Mapping[str, ModelSize]) -> CheckResult:
    """Whether the results still to be made fit on their disk; existing ones are subtracted."""
    check, results = "disk space", Path(targets.results(config))
    try:
        if missing := ", ".join(sorted(set(config.models) - set(sizes))):
            raise InputError(f"the size of {missing} is not known")
        texts = planning.texts_by_owner(config, sizes)
        required = float(planning.plan(config, sizes, texts)["bytes"].sum())
    except InputError as error:  # its remedy is among the other results
        return CheckResult(SKIPPED, check, f"not estimated: {error}")
    existing = sum(
        _size(Path(parent, name))
        for folder in (results, *_shared_folders(config))
        for parent, _, names in os.walk(folder)
        if not Path(parent).is_relative_to(targets.rehearsal(config))
        for name in names
    )
    remaining = max(0.0, required - existing)
    folder = results.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    text = f"about {remaining / 1e9:,.1f} GB needed in {results}, {free / 1e9:,.1f} GB free"
    if free > remaining:
        return CheckResult(OK, check, text)
    return failed(check, f"{text}; free some, or make results a link to a larger disk")


def _size(path: Path) -> int:
    """The bytes of a file; 0 if another process has just moved it, or a link leads nowhere."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _shared_folders(config: Config) -> list[Path]:
    """Where the converted and prepared bases of the run are; other runs may use them too."""
    converted = [targets.unprepared_base(config, model) for model in jobs.converted_models(config)]
    prepared = [Path(targets.base_model(config, m)).parent for m in jobs.prepared_models(config)]
    return [*map(Path, converted), *prepared]


def gpu_memories() -> list[float]:
    """Bytes of memory of every GPU that CUDA_VISIBLE_DEVICES names, or of all that there are.

    Empty without nvidia-smi, or if the variable names no GPU that it knows. A GPU without memory of
    its own is left out.
    """
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    devices = gpus.named()
    if devices is not None:  # nvidia-smi does not read the variable
        command.append(f"--id={','.join(dict.fromkeys(devices))}")
    try:
        process = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return []
    sizes = process.stdout.split()
    return [float(size) * 2**20 for size in sizes if size.isdigit()]  # not "[N/A]"


def check_gpu_memory(
    config: Config, sizes: Mapping[str, ModelSize], memories: list[float]
) -> list[CheckResult]:
    """Whether the largest job of every model fits into the smallest GPU.

    Args:
        config: the configuration.
        sizes: the sizes of the models.
        memories: bytes of the visible GPUs; empty if the jobs run on other machines.
    """
    check = "GPU memory"
    if not memories:
        text = "no GPU is visible from here; the machines of the jobs are not checked"
        return [CheckResult(SKIPPED, check, text)]
    smallest, results = min(memories), []
    for model, size in sizes.items():
        job, bytes_per_parameter = _largest_job(config, model)
        required = bytes_per_parameter * size.parameters
        text = (
            f"{model} needs about {required / 1e9:,.1f} GB ({job}); the smallest visible GPU has "
            f"{smallest / 1e9:,.1f} GB"
        )
        if required <= smallest:
            results.append(CheckResult(OK, check, text))
            continue
        remedy = "use a larger GPU or a smaller model"
        if _localises_neurons(config, model):
            remedy += (
                ", or remove the strategies with needs_base_model (in the paper's, shortcut: null)"
            )
        results.append(failed(check, f"{text}; {remedy}"))
    return results


def _largest_job(config: Config, model: str) -> tuple[str, float]:
    """A model's job that needs most memory, and its bytes per parameter."""
    bytes_decoding = 4 if config.sampling.dtype == "float32" else 2
    trainings = [config.training_for(variant) for variant in config.variants]
    on_gpu = [training for training in trainings if training.num_gpus_used]
    bytes_training = max((2 if training.bf16 else 4 for training in on_gpu), default=0)
    # Neuron localisation holds two models of the same size.
    copies, job = (2, "2 × its weights") if _localises_neurons(config, model) else (1, "decoding")
    needs = {
        job: copies * bytes_decoding * DECODING_FACTOR,
        "training": bytes_training * TRAINING_FACTOR,
    }
    return max(needs.items(), key=lambda item: item[1])


def _localises_neurons(config: Config, model: str) -> bool:
    return any(jobs.needs_neurons(config, model, variant) for variant in config.variants)
