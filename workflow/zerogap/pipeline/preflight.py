"""Checks for what would otherwise fail after more than a minute of a run.

Hub access and licences, API keys, strategies, vLLM, tokenizers, disk space and GPU memory. What the
first jobs of a run report within seconds, such as a malformed file of questions, is left to them.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from zerogap import gpus
from zerogap.config import Benchmark, Config
from zerogap.config.benchmark import ChatEndpoint
from zerogap.data import gsm8k_format
from zerogap.data.extraction import extraction_rule
from zerogap.data.prompts import Exemplar, PromptTemplate, check_targets, exemplars
from zerogap.data.questions import Question
from zerogap.errors import InputError
from zerogap.families import HUB_SIZES, ModelSize
from zerogap.families.folders import read_config, read_json, read_tokenizer, text_values
from zerogap.io.hub import access_problem, hub_problem, is_weights
from zerogap.pipeline import jobs, targets
from zerogap.pipeline.models import base_files, model_size
from zerogap.pipeline.parameters import strategy
from zerogap.pipeline.plan import Rates, plan
from zerogap.sampling.engines import required_vllm
from zerogap.strategies.base import build, filters, response_filter
from zerogap.strategies.registry import BUILT_IN

OK, FAILED = "ok", "FAILED"
HUB = "hub"
# What caches and activations need at least, as a factor of the weights' memory.
DECODING_FACTOR, TRAINING_FACTOR = 1.2, 1.5


class CheckResult(NamedTuple):
    """The result of one check: OK or FAILED, what was checked, and what was found.

    The text of a failure says how to fix it.
    """

    status: str
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.status:8} {self.check}: {self.text}"


def run_checks(
    config: Config, *, only_values: bool = False, conda: bool = False, gpus_here: bool = False
) -> list[CheckResult]:
    """Run all checks, or only those of values, which take a second and suit a dry run.

    With `conda` Snakemake makes the environments of the jobs, that of vLLM among them. With
    `gpus_here` the jobs get the GPUs that are visible from here.

    Raises:
        InputError: a check failed; the message has one line per failure.
    """
    if only_values:
        results = value_checks(config)
    else:
        results = all_checks(config, conda=conda, gpus_here=gpus_here)
    if failures := [str(result) for result in results if result.status == FAILED]:
        summary = f"preflight: {len(failures)} of {len(results)} checks failed; nothing was started"
        raise InputError("\n".join([summary, *failures]))
    return results


def all_checks(
    config: Config, *, conda: bool = False, gpus_here: bool = False
) -> list[CheckResult]:
    """The results of all checks."""
    results = [
        *hub_checks(config),
        *(_run("API key", _api_key, *item) for item in _endpoints(config).items()),
        *value_checks(config),
    ]
    if config.decoding.engine == "vllm" and not conda:
        results.append(_run("vLLM", _vllm))
    failed = {result.check for result in results if result.status == FAILED}
    sizes: dict[str, ModelSize] = {}
    for model, entry in config.models.items():
        on_hub = entry.gguf is None and failed.isdisjoint({HUB, f"{HUB}, models.{model}"})
        is_readable = on_hub or targets.base_folder(config, model) is not None
        if is_readable:
            tokenizer = _run(f"tokenizer of {model}", _tokenizer, config, model)
            results.append(tokenizer)
            if tokenizer.status == OK:
                results.append(_run(f"context of {model}", _context, config, model))
        if is_readable or entry.base in HUB_SIZES:
            try:
                sizes[model] = model_size(config, model)
            except InputError as error:
                results.append(CheckResult(FAILED, f"weights of {model}", str(error)))
    results.append(_run("disk space", check_disk_space, config, sizes))
    return results + check_gpu_memory(config, sizes, gpu_memories() if gpus_here else [])


def value_checks(config: Config) -> list[CheckResult]:
    """Whether strategies, prompts and local files of questions are what the configuration says."""
    owners = config.question_owners
    return [
        *(_run(f"strategy {name}", _strategy, config, name) for name in config.all_strategies),
        *(_run(f"benchmarks.{owner}", _questions, config, owner) for owner in owners),
    ]


def _run(name: str, check: Callable[..., str], *arguments: Any) -> CheckResult:
    """The result of a check that returns what it found, or raises an InputError."""
    try:
        return CheckResult(OK, name, check(*arguments))
    except InputError as error:
        return CheckResult(FAILED, name, str(error))


def hub_resources(config: Config) -> dict[str, tuple[str, str, str | None]]:
    """What the run has yet to download: configuration key → kind, name on the hub and revision."""
    resources: dict[str, tuple[str, str, str | None]] = {}
    for model in jobs.fetched_models(config):
        if targets.base_folder(config, model) is None:
            entry = config.models[model]
            resources[f"models.{model}"] = "model", entry.base, entry.revision
    data = Path(config.results, "data")
    sections: dict[str, tuple[Any, Path]] = {
        "instructions": (config.instructions, data / "instructions.jsonl")
    }
    for owner in config.question_owners:
        questions = config.benchmarks[owner].questions
        sections[f"benchmarks.{owner}.questions"] = questions, data / owner / "train.jsonl"
    for key, (section, made) in sections.items():
        if section.source == "hub" and not made.exists():
            resources[key] = "dataset", section.hub.repository, section.hub.revision
    return resources


def hub_checks(config: Config) -> list[CheckResult]:
    """Whether all that is to be downloaded exists and may be read with this login.

    A hub that cannot be reached is one failure, however many resources there are.
    """
    results = []
    for key, (kind, repository, revision) in hub_resources(config).items():
        remedy = "a folder as its base" if kind == "model" else f"{key}.source: files"
        if config.offline:
            problem = (
                f"'{repository}' is not a local folder, and offline is true; give {remedy}, or set "
                "offline: false"
            )
            results.append(CheckResult(FAILED, f"{HUB}, {key}", problem))
            continue
        try:
            results.append(_run(f"{HUB}, {key}", _access, kind, repository, revision))
        except Exception as error:  # the next resource would meet the same
            problem = hub_problem(error, repository, revision, kind)
            return [*results, CheckResult(FAILED, HUB, f"{problem}, or avoid the hub: {remedy}")]
    return results


def _access(kind: str, repository: str, revision: str | None) -> str:
    """Whether a model has weights, or a data set exists, that may be read with this login."""
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        api.auth_check(repository, repo_type=kind)
        info = api.repo_info(repository, revision=revision, repo_type=kind, timeout=10)
    except Exception as error:  # the hub's library raises many types
        if problem := access_problem(error, repository, revision, kind):
            raise InputError(problem) from error
        raise
    names = [file.rfilename for file in getattr(info, "siblings", None) or []]
    if kind == "model" and not any(map(is_weights, names)):
        raise InputError(
            f"'{repository}' at '{revision}' has no safetensors weights, and other formats are "
            "not downloaded; name a revision that has them, or give a folder"
        )
    return f"'{repository}' at '{revision}' can be read"


def _endpoints(config: Config) -> dict[str, ChatEndpoint]:
    """Benchmark → the chat endpoint that has yet to write its paraphrases."""
    return {
        name: benchmark.paraphrases.chat
        for name, benchmark in config.benchmarks.items()
        if benchmark.paraphrases and benchmark.paraphrases.method == "chat"
        if benchmark.paraphrases.chat
        if not all(Path(path).exists() for path in targets.paraphrases(config, name))
    }


def _api_key(benchmark: str, chat: ChatEndpoint) -> str:
    if not os.environ.get(chat.api_key_env):
        raise InputError(
            f"{chat.api_key_env} is not set; export the key for {chat.base_url}, or set "
            f"benchmarks.{benchmark}.paraphrases.method: rules"
        )
    return f"{chat.api_key_env} is set"


def _strategy(config: Config, name: str) -> str:
    """Whether a strategy can be imported and accepts its parameters."""
    built, entry = build(strategy(config, name)), config.all_strategies[name]
    if entry.filter_of is not None:
        response_filter(built)
    elif entry.class_name not in BUILT_IN and filters(built):
        raise InputError(
            f"{type(built).__name__} filters the responses of another strategy; name that in "
            "filter_of"
        )
    return repr(built)


def _questions(config: Config, owner: str) -> str:
    """Whether trained answers are found again, and local files have the questions that are used."""
    benchmark = config.benchmarks[owner]
    rule, stop = extraction_rule(benchmark.extraction), benchmark.stop
    template, shots = _prompt(benchmark)
    examples = [Question("", "It is so.", gold) for gold in ("7", "1234")]
    if rule.function is None:
        check_targets(examples, template, stop, rule)
    else:
        rule.extract(template.response("It is so.", "7"))
    files = benchmark.questions.files if benchmark.questions.source == "files" else None
    for split, number in benchmark.num_questions.items() if files else ():
        path, maximum = getattr(files, split), benchmark.max_calculations
        entries = gsm8k_format.load_entries(path, rule.parse_gold)
        if split == "test":
            eligible = gsm8k_format.with_few_calculations(entries, maximum)
            entries = [entries[position] for position in eligible]
        if len(entries) < number:
            limit = f" of at most {maximum} calculations" if split == "test" and maximum else ""
            raise InputError(f"{path} has {len(entries)} questions{limit}, but {number} are needed")
        questions = [gsm8k_format.parse(entry, rule.parse_gold) for entry in entries]
        check_targets(questions, template, stop, rule)
    return f"{len(shots)} exemplars, answers found by {rule.name}"


def _prompt(benchmark: Benchmark) -> tuple[PromptTemplate, list[Exemplar]]:
    """The template and the exemplars of a benchmark."""
    prompt = benchmark.prompt.model_dump()
    return PromptTemplate.of(prompt), exemplars(prompt["exemplars"], prompt["num_shots"])


def _vllm() -> str:
    return "{1}, {0}".format(*required_vllm())


def _default_end_token(folder: Path) -> str | None:
    """That of the tokenizer's class or of a further file."""
    from transformers import AutoTokenizer  # imported here, since it takes seconds

    try:
        token: str | None = AutoTokenizer.from_pretrained(folder).eos_token
    except Exception:  # it raises many types
        return None
    return token


def _tokenizer(config: Config, model: str) -> str:
    """Whether the tokenizer has an end token and fits plain prompts.

    Without an end token no response would ever end. Prompts are plain text: a chat model continues
    them in a format that it was not tuned on.
    """
    folder = base_files(config, model)
    entry, values = config.models[model], read_json(folder / "tokenizer_config.json")
    token = values.get("eos_token")
    token = token.get("content") if isinstance(token, dict) else token
    if not token and "eos_token" not in values:
        token = _default_end_token(folder)
    if not token:
        raise InputError(
            "it has no end token, so no model would learn to end a response; set eos_token in "
            "tokenizer_config.json"
        )
    tokenizer = read_tokenizer(folder)
    if tokenizer and (not isinstance(token, str) or tokenizer.token_to_id(token) is None):
        raise InputError(
            f"{token!r} is not in its vocabulary; correct eos_token in tokenizer_config.json"
        )
    has_template = values.get("chat_template") or (folder / "chat_template.jinja").is_file()
    if has_template and entry.chat_template != "ignore":
        raise InputError(
            f"'{entry.base}' has a chat template, and benchmark prompts are plain text; use the "
            f"base model, or, if it is one, set models.{model}.chat_template: ignore"
        )
    return f"ends responses with {token!r}"


def _context(config: Config, model: str) -> str:
    """Whether exemplars leave room for a question: with a response, and in a training example."""
    folder = base_files(config, model)
    response = config.sampling.max_new_tokens
    cutoff = min(config.training_for(variant).cutoff_len for variant in config.variants)
    context = text_values(read_config(folder)).get("max_position_embeddings")
    tokenizer = read_tokenizer(folder)
    if tokenizer is None or not isinstance(context, int):
        return "not checked (no tokenizer.json, or no max_position_embeddings)"
    for owner in config.question_owners:
        template, shots = _prompt(config.benchmarks[owner])
        num_tokens = len(tokenizer.encode(template.few_shot_prefix(shots)).ids)
        if num_tokens + response >= context:
            raise InputError(
                f"it is {context} tokens, but the exemplars of {owner} have {num_tokens} and "
                f"sampling.max_new_tokens is {response}; lower it or "
                f"benchmarks.{owner}.prompt.num_shots"
            )
        if num_tokens >= cutoff:
            raise InputError(
                f"the exemplars of {owner} have {num_tokens} tokens, but training.cutoff_len is "
                f"{cutoff}; raise it"
            )
    return f"{context} tokens"


def check_disk_space(config: Config, sizes: Mapping[str, ModelSize]) -> str:
    """Whether the results still to be made fit on their disk; existing ones are subtracted."""
    if unknown := [model for model in config.models if model not in sizes]:
        return f"not checked, as the size of {', '.join(unknown)} is not known"
    results = Path(config.results)
    required = float(plan(config, sizes, Rates())["bytes"].sum())
    bases = {targets.unprepared_base(config, model) for model in config.models}
    bases |= {str(Path(targets.base_model(config, model)).parent) for model in config.models}
    folders = {results, *(Path(base) for base in bases if base.startswith(f"{jobs.BASES}/"))}
    remaining = max(0.0, required - sum(map(_stored, folders)))
    folder = next(f for f in (results, *results.absolute().parents) if f.exists())
    free = shutil.disk_usage(folder).free
    text = f"about {remaining / 1e9:,.1f} GB needed in {results}, {free / 1e9:,.1f} GB free"
    if free <= remaining:
        raise InputError(f"{text}; free some, or make results a link to a larger disk")
    return text


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
    return [float(size) * 2**20 for size in process.stdout.split() if size.isdigit()]  # not [N/A]


def check_gpu_memory(
    config: Config, sizes: Mapping[str, ModelSize], memories: list[float]
) -> list[CheckResult]:
    """Whether the largest job of every model fits into the smallest GPU; memories in bytes.

    There are none if the jobs run on other machines.
    """
    if not memories:
        text = "not checked, as the jobs run elsewhere or no GPU is visible"
        return [CheckResult(OK, "GPU memory", text)]
    return [
        _run("GPU memory", _fits_into, min(memories), config, model, size.parameters)
        for model, size in sizes.items()
    ]


def _fits_into(memory: float, config: Config, model: str, parameters: int) -> str:
    """Whether the jobs of a model fit; neuron localisation holds two models of the same size."""
    searches = any(jobs.needs_neurons(config, model, variant) for variant in config.variants)
    copies, decoding = (2, "2 × its weights") if searches else (1, "decoding")
    bytes_decoding = 4 if config.sampling.dtype == "float32" else 2
    trainings = [config.training_for(variant) for variant in config.variants]
    on_gpu = [training for training in trainings if training.num_gpus_used]
    bytes_training = max((2 if training.bf16 else 4 for training in on_gpu), default=0)
    required, job = max(
        (copies * bytes_decoding * DECODING_FACTOR * parameters, decoding),
        (bytes_training * TRAINING_FACTOR * parameters, "training"),
    )
    text = (
        f"{model} needs about {required / 1e9:,.1f} GB ({job}); the smallest visible GPU has "
        f"{memory / 1e9:,.1f} GB"
    )
    if required > memory:
        remedy = "use a larger GPU or a smaller model"
        if searches:
            remedy += ", or remove the strategies with needs_base_model (in the paper's, "
            remedy += "shortcut: null)"
        raise InputError(f"{text}; {remedy}")
    return text
