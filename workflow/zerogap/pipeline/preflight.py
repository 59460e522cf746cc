"""Checks for what would otherwise fail after more than a minute of a run.

Hub access and licences, API keys, strategies, vLLM, tokenizers, disk space and GPU memory. What the
first jobs of a run report within seconds, such as a malformed file of questions, is left to them.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from zerogap import gpus
from zerogap.config import Config
from zerogap.data import prompts
from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError, first_line
from zerogap.families import ModelSize, published_size
from zerogap.io.hub import access_problem, hub_problem
from zerogap.pipeline import jobs, targets
from zerogap.pipeline.models import model_size, small_file
from zerogap.pipeline.parameters import strategy
from zerogap.pipeline.plan import Rates, plan
from zerogap.sampling.engines import required_vllm
from zerogap.strategies.base import build, response_filter

OK, SKIPPED, FAILED = "ok", "skipped", "FAILED"
HUB = "hub"
# What caches and activations need at least, as a factor of the weights' memory.
DECODING_FACTOR, TRAINING_FACTOR = 1.2, 1.5


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        status: OK, SKIPPED or FAILED.
        check: what was checked.
        text: what was found; for a failure, followed by how to fix it.
    """

    status: str
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.status:8} {self.check}: {self.text}"


def run_checks(config: Config) -> list[CheckResult]:
    """Run all checks.

    Raises:
        InputError: a check failed; the message has one line per failure.
    """
    results = all_checks(config)
    if failures := [str(result) for result in results if result.status == FAILED]:
        summary = f"preflight: {len(failures)} of {len(results)} checks failed; nothing was started"
        raise InputError("\n".join([summary, *failures]))
    return results


def all_checks(config: Config) -> list[CheckResult]:
    """The results of all checks; none once all long jobs are done."""
    if all(Path(job.output).exists() for job in targets.timed_jobs(config)):
        return []
    results = check_hub_access(hub_resources(config), config.offline)
    results += [*check_api_keys(config), *check_strategies(config), *check_answers(config)]
    results += check_vllm(config)
    failed_checks = {result.check for result in results if result.status == FAILED}
    sizes: dict[str, ModelSize] = {}
    for model, entry in config.models.items():
        is_local = jobs.base_folder(config, model) is not None
        is_readable = is_local or failed_checks.isdisjoint({HUB, f"{HUB}, models.{model}"})
        if is_readable and (is_local or model in jobs.fetched_models(config)):
            results += [check_tokenizer(config, model), check_context_length(config, model)]
        if is_readable or published_size(entry.base):
            with _failure(results, f"weights of {model}"):
                sizes[model] = model_size(config, model)
    results.append(check_disk_space(config, sizes))
    return results + check_gpu_memory(config, sizes, gpu_memories())


@contextlib.contextmanager
def _failure(results: list[CheckResult], check: str) -> Iterator[None]:
    """Append a failure to the results if the block raises an InputError."""
    try:
        yield
    except InputError as error:
        results.append(CheckResult(FAILED, check, str(error)))


class HubResource(NamedTuple):
    """A model or data set that the run has yet to download.

    Attributes:
        key: its configuration key.
        kind: "model" or "dataset".
        repository: its name on the hub.
        revision: branch, tag or commit; None for the default branch.
        alternative: what to configure instead if the hub cannot be used.
    """

    key: str
    kind: str
    repository: str
    revision: str | None
    alternative: str


def hub_resources(config: Config) -> list[HubResource]:
    """What the run will download and does not have yet."""
    resources = []
    for model in jobs.fetched_models(config):
        base, revision = config.models[model].base, config.models[model].revision
        if jobs.base_folder(config, model) is None:
            key, folder = f"models.{model}", "a folder as its base"
            resources.append(HubResource(key, "model", base, revision, folder))
    data = Path(targets.results(config), "data")
    sections: list[tuple[str, Any, Path]] = [
        ("instructions", config.instructions, data / "instructions.jsonl")
    ]
    for owner in config.question_owners:
        questions = config.benchmarks[owner].questions
        sections.append((f"benchmarks.{owner}.questions", questions, data / owner / "train.jsonl"))
    for key, section, made in sections:
        if section.source == "hub" and section.hub and not made.exists():
            place = section.hub.repository, section.hub.revision
            resources.append(HubResource(key, "dataset", *place, f"{key}.source: files"))
    return resources


def _has_paraphrases(config: Config, benchmark: str) -> bool:
    return all(Path(path).exists() for path in targets.paraphrases(config, benchmark))


def check_hub_access(resources: list[HubResource], offline: bool) -> list[CheckResult]:
    """Whether each resource exists at its revision and may be read with this login.

    A hub that cannot be reached is one failure, however many resources there are.
    """
    results = []
    for resource in resources:
        if offline:
            text = (
                f"'{resource.repository}' is not a local folder, and offline is true; give "
                f"{resource.alternative}, or set offline: false"
            )
            results.append(CheckResult(FAILED, f"{HUB}, {resource.key}", text))
            continue
        results.append(_check_resource(resource))
        if results[-1].check == HUB:
            break
    return results


def _check_resource(resource: HubResource) -> CheckResult:
    from huggingface_hub import HfApi

    check, repository = f"{HUB}, {resource.key}", resource.repository
    api = HfApi()
    try:
        api.auth_check(repository, repo_type=resource.kind)
        info = api.repo_info(
            repository, revision=resource.revision, repo_type=resource.kind, timeout=10
        )
    except Exception as error:  # the hub's library raises many types
        place = (repository, resource.revision, resource.kind)
        if problem := access_problem(error, *place):
            return CheckResult(FAILED, check, problem)
        # Whatever else it is, the next resource would meet the same.
        problem = hub_problem(error, *place)
        return CheckResult(FAILED, HUB, f"{problem}, or avoid the hub: {resource.alternative}")
    files = [file.rfilename for file in getattr(info, "siblings", None) or []]
    if resource.kind == "model" and not any(file.endswith(".safetensors") for file in files):
        text = (
            f"'{repository}' at '{resource.revision}' has no safetensors weights, and other "
            "formats are not downloaded; name a revision that has them, or give a folder"
        )
        return CheckResult(FAILED, check, text)
    return CheckResult(OK, check, f"'{repository}' at '{resource.revision}' can be read")


def check_api_keys(config: Config) -> list[CheckResult]:
    """Whether the key of each chat endpoint that is still to be used is in the environment."""
    results: list[CheckResult] = []
    for name, benchmark in config.benchmarks.items():
        paraphrases = benchmark.paraphrases
        if paraphrases is None or paraphrases.method != "chat" or paraphrases.chat is None:
            continue
        if _has_paraphrases(config, name):
            continue
        variable = paraphrases.chat.api_key_env
        with _failure(results, "API key"):
            if not os.environ.get(variable):
                raise InputError(
                    f"{variable} is not set; export the key for {paraphrases.chat.base_url}, or "
                    f"set benchmarks.{name}.paraphrases.method: rules"
                )
            results.append(CheckResult(OK, "API key", f"{variable} is set"))
    return results


def check_strategies(config: Config) -> list[CheckResult]:
    """Whether every strategy can be imported and accepts its parameters."""
    results: list[CheckResult] = []
    for name, entry in config.all_strategies.items():
        with _failure(results, f"strategy {name}"):
            built = build(strategy(config, name))
            if entry.filter_of is not None:
                response_filter(built)
            results.append(CheckResult(OK, f"strategy {name}", repr(built)))
    return results


def check_answers(config: Config) -> list[CheckResult]:
    """Whether the answer of every benchmark's target is found again by its extraction rule."""
    results: list[CheckResult] = []
    for owner in config.question_owners:
        benchmark, check = config.benchmarks[owner], f"benchmarks.{owner}.prompt.target"
        with _failure(results, check):
            rule = extraction_rule(benchmark.extraction)
            template = prompts.PromptTemplate.of(benchmark.prompt.model_dump())
            text = template.response("It is so.", "7")
            if rule.function is None and not rule.grade(text, "7").correct:
                raise InputError(
                    f"the rule '{rule.name}' does not find the answer 7 in {text!r}; change the "
                    f"target or benchmarks.{owner}.extraction"
                )
            results.append(CheckResult(OK, check, repr(text)))
    return results


def check_vllm(config: Config) -> list[CheckResult]:
    """Whether vLLM is installed, and recent enough, if the configuration asks for it."""
    check, results = "vLLM", list[CheckResult]()
    if config.decoding.engine != "vllm":
        return []
    if Path(sys.prefix, "conda-meta").is_dir():
        return [CheckResult(SKIPPED, check, "the environment of envs/vllm.yaml is not checked")]
    with _failure(results, check):
        vllm = required_vllm()
        results.append(CheckResult(OK, check, f"{vllm.version}, {vllm.python}"))
    return results


def check_tokenizer(config: Config, model: str) -> CheckResult:
    """Whether the tokenizer has an end token and fits plain prompts.

    Without an end token no response would ever end. Prompts are plain text: a chat model continues
    them in a format that it was not tuned on.
    """
    check, entry = f"tokenizer of {model}", config.models[model]
    try:
        path, values = _read_json(config, model, "tokenizer_config.json")
        template = values.get("chat_template") or small_file(config, model, "chat_template.jinja")
    except Exception as error:  # not a file here or on the hub, or not JSON
        problem = f"its tokenizer_config.json cannot be read ({first_line(error)})"
        return CheckResult(FAILED, check, f"{problem}; copy the tokenizer again")
    token = values.get("eos_token")
    token = token["content"] if isinstance(token, dict) else token
    if not token:
        text = "it has no end token, so no model would learn to end a response; set eos_token in "
        return CheckResult(FAILED, check, f"{text}tokenizer_config.json")
    if (tokenizer := path.with_name("tokenizer.json")).is_file():
        from tokenizers import Tokenizer

        if Tokenizer.from_file(str(tokenizer)).token_to_id(token) is None:
            text = f"{token!r} is not in its vocabulary; correct eos_token in tokenizer_config.json"
            return CheckResult(FAILED, check, text)
    if template and entry.chat_template != "ignore":
        text = (
            f"'{entry.base}' has a chat template, and benchmark prompts are plain text; use the "
            f"base model, or, if it is one, set models.{model}.chat_template: ignore"
        )
        return CheckResult(FAILED, check, text)
    return CheckResult(OK, check, f"ends responses with {token!r}")


def check_context_length(config: Config, model: str) -> CheckResult:
    """Whether exemplars and a response of `sampling.max_new_tokens` leave room for a question.

    Exemplars count if the model's tokenizer is here.
    """
    check, response = f"context of {model}", config.sampling.max_new_tokens
    try:
        path, values = _read_json(config, model, "config.json")
        context = values.get("text_config", values)["max_position_embeddings"]
        exemplars = {owner: _shot_tokens(config, path, owner) for owner in config.question_owners}
    except InputError as error:  # of the exemplars
        return CheckResult(FAILED, check, str(error))
    except Exception as error:  # not a file here or on the hub, or not JSON
        return CheckResult(SKIPPED, check, f"not checked: {first_line(error)}")
    owner = max(exemplars, key=lambda name: exemplars[name])
    if exemplars[owner] + response < context:
        return CheckResult(OK, check, f"{context} tokens")
    text = (
        f"it is {context} tokens, but the exemplars of {owner} have {exemplars[owner]} and "
        f"sampling.max_new_tokens is {response}; lower it or benchmarks.{owner}.prompt.num_shots"
    )
    return CheckResult(FAILED, check, text)


def _read_json(config: Config, model: str, name: str) -> tuple[Path, dict[str, Any]]:
    path = small_file(config, model, name)
    if path is None:
        raise FileNotFoundError(f"there is no {name}")
    return path, json.loads(path.read_text(encoding="utf-8"))


def _shot_tokens(config: Config, model_config: Path, benchmark: str) -> int:
    """Tokens of all exemplars of a prompt; 0 if the model's tokenizer is not here."""
    path = model_config.with_name("tokenizer.json")
    if not path.is_file():
        return 0
    from tokenizers import Tokenizer

    prompt = config.benchmarks[benchmark].prompt.model_dump()
    shots = prompts.exemplars(prompt["exemplars"], prompt["num_shots"])
    prefix = prompts.PromptTemplate.of(prompt).few_shot_prefix(shots)
    return len(Tokenizer.from_file(str(path)).encode(prefix).ids)


def check_disk_space(config: Config, sizes: Mapping[str, ModelSize]) -> CheckResult:
    """Whether the results still to be made fit on their disk; existing ones are subtracted."""
    check, results = "disk space", Path(targets.results(config))
    if missing := ", ".join(sorted(set(config.models) - set(sizes))):
        return CheckResult(SKIPPED, check, f"the size of {missing} is not known")
    required = float(plan(config, sizes, Rates())["bytes"].sum())
    bases = {targets.unprepared_base(config, model) for model in config.models}
    bases |= {str(Path(targets.base_model(config, model)).parent) for model in config.models}
    folders = {results, *(Path(base) for base in bases if base.startswith(f"{jobs.BASES}/"))}
    remaining = max(0.0, required - sum(map(_stored, folders)))
    folder = results.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    text = f"about {remaining / 1e9:,.1f} GB needed in {results}, {free / 1e9:,.1f} GB free"
    if free > remaining:
        return CheckResult(OK, check, text)
    text += "; free some, or make results a link to a larger disk"
    return CheckResult(FAILED, check, text)


def _stored(folder: Path) -> int:
    """The bytes of all files in a folder."""
    num_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            # Another process may just have moved it, and a link may lead nowhere.
            with contextlib.suppress(FileNotFoundError):
                num_bytes += Path(parent, name).stat().st_size
    return num_bytes


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
        searches = any(jobs.needs_neurons(config, model, variant) for variant in config.variants)
        job, bytes_per_parameter = _largest_job(config, searches)
        required = bytes_per_parameter * size.parameters
        text = (
            f"{model} needs about {required / 1e9:,.1f} GB ({job}); the smallest visible GPU has "
            f"{smallest / 1e9:,.1f} GB"
        )
        if required > smallest:
            text += "; use a larger GPU or a smaller model"
            if searches:
                text += ", or remove the strategies with needs_base_model (in the paper's, "
                text += "shortcut: null)"
        results.append(CheckResult(OK if required <= smallest else FAILED, check, text))
    return results


def _largest_job(config: Config, searches: bool) -> tuple[str, float]:
    """A model's job that needs most memory, and its bytes per parameter.

    Neuron localisation holds two models of the same size.
    """
    bytes_decoding = 4 if config.sampling.dtype == "float32" else 2
    trainings = [config.training_for(variant) for variant in config.variants]
    on_gpu = [training for training in trainings if training.num_gpus_used]
    bytes_training = max((2 if training.bf16 else 4 for training in on_gpu), default=0)
    copies, job = (2, "2 × its weights") if searches else (1, "decoding")
    needs = {
        job: copies * bytes_decoding * DECODING_FACTOR,
        "training": bytes_training * TRAINING_FACTOR,
    }
    return max(needs.items(), key=lambda item: item[1])
