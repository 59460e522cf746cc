"""What would fail hours into a run, looked at before it: every failure in one line, with its mend.

Each check takes what it needs and returns findings; `check` runs them all. None loads torch, and
what the configuration does not call for is not looked at: an offline scale asks nothing of a hub.
"""

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerogap.data import gsm8k_format, openorca, prompts
from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError
from zerogap.families import published_size
from zerogap.pipeline import jobs, model_sizes, planning
from zerogap.pipeline.jobs import Config
from zerogap.pipeline.model_sizes import ModelSize, brief

OK, SKIPPED, FAILED = "ok", "skipped", "FAILED"
HUB = "hub"

# Known to work together: LLaMA-Factory takes no newer transformers, Gemma-4 trains on no older one.
VERSIONS = {"llamafactory": "0.9.5", "transformers": "5.6.0"}

# Of the weights' memory: what caches and activations need beside them, at the least.
DECODING_HEADROOM, TRAINING_HEADROOM = 1.2, 1.5


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; a failure's text ends with its mend."""

    verdict: str
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.verdict:8} {self.check}: {self.text}"


@dataclass(frozen=True)
class Source:
    """Something on the hub that the run has yet to fetch; `key` is its place in the config."""

    key: str
    kind: str  # model or dataset
    repository: str
    revision: str | None
    instead: str  # what to configure where the hub cannot be had


def pass_or_stop(config: Config) -> list[Finding]:
    """All findings.

    Raises:
        InputError: something failed; a line each.
    """
    found = check(config)
    if failed := [str(finding) for finding in found if finding.verdict == FAILED]:
        summary = f"preflight: {len(failed)} of {len(found)} checks failed; nothing was started"
        raise InputError("\n".join([summary, *failed]))
    return found


def check(config: Config) -> list[Finding]:
    """All findings for a configuration; none where nothing that takes long is left to do."""
    if all(jobs.made(config, job).exists() for job in jobs.on_device(config)):
        return []
    sources = hub_sources(config)
    found = hub_access(sources, config["offline"])
    found += [*data_files(config), *api_key(config), *versions()]
    closed = {finding.check for finding in found if finding.verdict == FAILED}
    sizes: dict[str, ModelSize] = {}
    for model, entry in config["models"].items():
        here = jobs.base_folder(config, model) is not None
        reached = here or closed.isdisjoint({HUB, f"{HUB}, models.{model}"})
        made_first = entry["base"] == jobs.PRETRAINED and not here  # its tokenizer too
        if reached and not made_first:
            found += end_token(config, model)
        if reached or published_size(entry["base"]):
            with _noted(found, f"weights of {model}"):
                sizes[model] = planning.size(config, model)
    return [*found, disk_space(config, sizes), *gpu_memory(config, sizes, gpus())]


@contextlib.contextmanager
def _noted(found: list[Finding], name: str) -> Iterator[None]:
    """Bad input inside the block becomes a finding."""
    try:
        yield
    except InputError as error:
        found.append(Finding(FAILED, name, str(error)))


def hub_sources(config: Config) -> list[Source]:
    """What the run will fetch from the hub and does not have yet."""
    data, results = config["data"], Path("results", config["run"])
    sources = [
        Source(
            f"models.{model}",
            "model",
            config["models"][model]["base"],
            config["models"][model].get("revision"),
            "a folder as its base",
        )
        for model in jobs.fetched(config)
        if jobs.base_folder(config, model) is None
    ]
    paraphrases = data["paraphrases"]
    chat, made = paraphrases["local"], results / "data" / "paraphrases.jsonl"
    if paraphrases["method"] == "local" and not Path(chat["model"]).is_dir() and not made.exists():
        key, mend = "data.paraphrases.local", "a folder as its model"
        sources.append(Source(key, "model", chat["model"], chat["revision"], mend))
    for key, part, made in (
        ("data", data, "train.jsonl"),
        ("data.instructions", data["instructions"], "instructions.jsonl"),
    ):
        if part["source"] == "hub" and not (results / "data" / made).exists():
            hub = part["hub"]
            sources.append(
                Source(
                    key, "dataset", hub["repository"], hub.get("revision"), f"{key}.source: files"
                )
            )
    return sources


def hub_access(sources: list[Source], offline: bool) -> list[Finding]:
    """Whether every source is there, at its revision, and may be read with this login."""
    if offline:
        return [
            Finding(
                FAILED,
                f"{HUB}, {source.key}",
                f"'{source.repository}' is no folder here, and offline is true; give "
                f"{source.instead}, or set offline: false",
            )
            for source in sources
        ]
    if not sources:
        return []
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    api, found = HfApi(), []
    for source in sources:
        name = f"{HUB}, {source.key}"
        prefix = "datasets/" if source.kind == "dataset" else ""
        page = f"{constants.ENDPOINT}/{prefix}{source.repository}"
        try:
            api.auth_check(source.repository, repo_type=source.kind)
            info = api.repo_info(
                source.repository, revision=source.revision, repo_type=source.kind, timeout=10
            )
        except GatedRepoError:
            text = (
                f"'{source.repository}' is gated and not open to you; accept its licence on {page} "
                "and log in with `hf auth login` or HF_TOKEN"
            )
            found.append(Finding(FAILED, name, text))
        except (RepositoryNotFoundError, HFValidationError):
            text = (
                f"'{source.repository}' is neither a folder here nor on the hub; correct the name, "
                "or log in with `hf auth login` or HF_TOKEN if it is private"
            )
            found.append(Finding(FAILED, name, text))
        except RevisionNotFoundError:
            text = f"'{source.repository}' has no revision '{source.revision}'; {page} lists them"
            found.append(Finding(FAILED, name, text))
        except Exception as error:  # no network, a proxy, the hub down: the same for all the rest
            text = (
                f"{constants.ENDPOINT} does not answer for '{source.repository}' ({brief(error)}); "
                f"check network and proxy, or do without it: {source.instead}"
            )
            return [*found, Finding(FAILED, HUB, text)]
        else:
            files = [file.rfilename for file in info.siblings or []]
            if source.kind == "model" and not any(f.endswith(".safetensors") for f in files):
                text = (
                    f"'{source.repository}' at '{source.revision}' has no safetensors weights, and "
                    "others are not fetched; name a revision that has them, or give a folder"
                )
                found.append(Finding(FAILED, name, text))
            else:
                text = f"'{source.repository}' at '{source.revision}' can be read"
                found.append(Finding(OK, name, text))
    return found


def data_files(config: Config) -> list[Finding]:
    """Whether local data are readable, well-formed and enough, and the exemplars there."""
    data = config["data"]
    found: list[Finding] = []
    if data["source"] == "files":
        wanted = {"train": "n_train", "test": "n_test"}
        for split, count in wanted.items():
            name, path = f"data.files.{split}", data["files"][split]
            with _noted(found, name), _readable(path):
                rows = len(gsm8k_format.load(path, extraction_rule(data["extraction"]).parse_gold))
                if rows < data[count]:
                    raise InputError(
                        f"{path} has {rows} questions, fewer than the {data[count]} of "
                        f"data.{count}; lower it or give more"
                    )
                found.append(Finding(OK, name, f"{rows} questions"))
    instructions = data["instructions"]
    if instructions["source"] == "files":
        name, path = "data.instructions.files", instructions["files"]
        with _noted(found, name), _readable(path):
            openorca.load(path, instructions["n"], config["seed"])
            found.append(Finding(OK, name, f"{instructions['n']} examples or more"))
    with _noted(found, "prompt.exemplars"):
        prompts.exemplars(config["prompt"]["exemplars"], config["prompt"]["shots"])
    return found


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read ({brief(error)}); mend its permissions or encoding, or copy "
            "it again"
        ) from error


def api_key(config: Config) -> list[Finding]:
    """Whether the chat endpoint's key is in the environment, while paraphrases are to come."""
    paraphrases = config["data"]["paraphrases"]
    made = Path("results", config["run"], "data", "paraphrases.jsonl")
    if paraphrases["method"] != "chat" or made.exists():
        return []
    variable, url = (paraphrases["chat"][key] for key in ("api_key_env", "base_url"))
    if os.environ.get(variable):
        return [Finding(OK, "API key", f"{variable} is set")]
    text = f"{variable} is not set; export the key for {url}, or set data.paraphrases.method: rules"
    return [Finding(FAILED, "API key", text)]


def versions() -> list[Finding]:
    """Whether LLaMA-Factory and transformers are the pair that is known to work."""
    found = []
    for package, known in VERSIONS.items():
        try:
            here = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            here = "missing"
        if here == known:
            found.append(Finding(OK, "versions", f"{package} {known}"))
        else:
            pair = " and ".join(f"{name} {version}" for name, version in VERSIONS.items())
            text = (
                f"{package} is {here}, and only {pair} are known to work together; install what "
                "requirements.lock has"
            )
            found.append(Finding(FAILED, "versions", text))
    return found


def end_token(config: Config, model: str) -> list[Finding]:
    """Whether the tokenizer names an end token that it has: without one no response ever ends."""
    name, folder = f"end token of {model}", jobs.base_folder(config, model)
    try:
        settings = json.loads(_tokenizer_settings(config["models"][model], folder).read_text())
    except Exception as error:  # no such file here or on the hub, or no JSON
        text = (
            f"its tokenizer_config.json cannot be read ({brief(error)}); copy the tokenizer again"
        )
        return [Finding(FAILED, name, text)]
    token = settings.get("eos_token")
    token = token["content"] if isinstance(token, dict) else token
    if not token:
        text = (
            "the tokenizer has none, so training would teach no end and no response would have "
            "one; set eos_token in tokenizer_config.json"
        )
        return [Finding(FAILED, name, text)]
    if folder and (folder / "tokenizer.json").is_file():
        from tokenizers import Tokenizer

        if Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(token) is None:
            text = (
                f"{token!r} is no token of its vocabulary; correct eos_token in "
                "tokenizer_config.json"
            )
            return [Finding(FAILED, name, text)]
    return [Finding(OK, name, repr(token))]


def _tokenizer_settings(entry: Mapping[str, Any], folder: Path | None) -> Path:
    """tokenizer_config.json of a model: some kilobytes of it are fetched where it is on the hub."""
    if folder:
        return folder / "tokenizer_config.json"
    from huggingface_hub import hf_hub_download

    fetched = hf_hub_download(
        entry["base"], "tokenizer_config.json", revision=entry.get("revision")
    )
    return Path(fetched)


def disk_space(config: Config, sizes: Mapping[str, ModelSize]) -> Finding:
    """Whether what the run will leave has room where its results go; what is there is taken off."""
    name, results = "disk space", Path("results", config["run"])
    try:
        if missing := ", ".join(sorted(set(config["models"]) - set(sizes))):
            raise InputError(f"the size of {missing} is not known")
        needed = float(planning.plan(config, sizes)["bytes"].sum())
    except InputError as error:  # whose mend is among the other findings
        return Finding(SKIPPED, name, f"not estimated: {error}")
    there = sum(path.stat().st_size for path in results.rglob("*") if path.is_file())
    to_come = max(0.0, needed - there)
    place = results.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    amounts = f"about {to_come / 1e9:,.1f} GB to come in {results}, {free / 1e9:,.1f} GB free"
    if free > to_come:
        return Finding(OK, name, amounts)
    return Finding(FAILED, name, f"{amounts}; free some, or make results a link to a larger disk")


def gpus() -> list[float]:
    """Bytes of memory of every GPU that is visible from here."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return []
    return [float(line) * 2**20 for line in done.stdout.split("\n") if line.strip()]


def gpu_memory(
    config: Config, sizes: Mapping[str, ModelSize], memories: list[float]
) -> list[Finding]:
    """Whether every model's largest job has room in the smallest of the GPUs.

    Args:
        memories: bytes of the GPUs that are visible; none where the jobs run elsewhere.
    """
    name = "GPU memory"
    if not memories:
        text = "no GPU is visible from here; the jobs' own machines are not looked at"
        return [Finding(SKIPPED, name, text)]
    smallest, found = min(memories), []
    decoding = 4 if config["decoding"]["dtype"] == "float32" else 2
    training = 2 if training_values(config, jobs.CLEAN)["bf16"] else 4
    for model, size in sizes.items():
        three = any(jobs.localised(config, model, benchmark) for benchmark in config["benchmarks"])
        copies = 3 if three else 1
        needs = {
            f"{copies} × its weights" if three else "decoding": copies
            * decoding
            * DECODING_HEADROOM,
            "training": training * TRAINING_HEADROOM,
        }
        job, share = max(needs.items(), key=lambda item: item[1])
        text = (
            f"{model} needs about {share * size.parameters / 1e9:,.1f} GB ({job}), the smallest "
            f"GPU here has {smallest / 1e9:,.1f}"
        )
        if share * size.parameters <= smallest:
            found.append(Finding(OK, name, text))
            continue
        mend = "use a larger GPU or a smaller model"
        if three:
            mend += ", or leave out the strategies that borrow (in the paper's, shortcut: null)"
        found.append(Finding(FAILED, name, f"{text}; {mend}"))
    return found
