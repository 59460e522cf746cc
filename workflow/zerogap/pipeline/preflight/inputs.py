"""Checks of local data, exemplars, API keys and tokenizers."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from zerogap.config import Config, ModelEntry
from zerogap.config.benchmark import Benchmark
from zerogap.data import gsm8k_format, gsm_symbolic, openorca, prompts
from zerogap.data.extraction import extraction_rule
from zerogap.errors import InputError, first_line
from zerogap.pipeline import base_files, jobs, targets
from zerogap.pipeline.preflight.result import (
    OK,
    SKIPPED,
    CheckResult,
    failed,
    input_errors_as_failures,
)
from zerogap.pipeline.text_lengths import few_shot_tokens
from zerogap.plugins import package_file


def check_data_files(config: Config) -> list[CheckResult]:
    """Whether local data are readable, well-formed and sufficient, and the exemplars available."""
    results: list[CheckResult] = []
    for owner in config.question_owners:
        benchmark = config.benchmarks[owner]
        if benchmark.questions.source == "files":
            results += _check_questions(owner, benchmark)
        if benchmark.questions.source == "gsm_symbolic" and benchmark.questions.gsm_symbolic:
            check = f"benchmarks.{owner}.questions.gsm_symbolic"
            with input_errors_as_failures(results, check):
                gsm_symbolic.entries(**benchmark.questions.gsm_symbolic.model_dump())
                results.append(CheckResult(OK, check, "enough questions"))
    instructions = config.instructions
    if instructions.source == "files" and instructions.files:
        check, path = "instructions.files", instructions.files
        with input_errors_as_failures(results, check), _unreadable_as_input_error(path):
            openorca.load(path, instructions.num_examples, config.seed)
            results.append(CheckResult(OK, check, f"at least {instructions.num_examples} examples"))
    for owner in config.question_owners:
        prompt = config.benchmarks[owner].prompt.model_dump()
        with input_errors_as_failures(results, f"benchmarks.{owner}.prompt.exemplars"):
            prompts.exemplars(prompt["exemplars"], prompt["num_shots"])
    return results


def _check_questions(name: str, benchmark: Benchmark) -> list[CheckResult]:
    results: list[CheckResult] = []
    gold = extraction_rule(benchmark.extraction).parse_gold
    train_names = "num_train + num_preparation" if benchmark.num_preparation else "num_train"
    needed = {
        "train": (benchmark.num_train + benchmark.num_preparation, train_names),
        "test": (benchmark.num_test, "num_test"),
    }
    for split, (required, names) in needed.items():
        check = f"benchmarks.{name}.questions.files.{split}"
        path = getattr(benchmark.questions.files, split)
        with input_errors_as_failures(results, check), _unreadable_as_input_error(path):
            num_questions = len(gsm8k_format.load(path, gold))
            if num_questions < required:
                raise InputError(
                    f"{path} has {num_questions} questions, fewer than the {required} of "
                    f"{names}; add questions or lower {names}"
                )
            results.append(CheckResult(OK, check, f"{num_questions} questions"))
    return results


@contextlib.contextmanager
def _unreadable_as_input_error(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read ({first_line(error)}); fix its permissions or encoding, or "
            "copy it again"
        ) from error


def check_gguf_files(config: Config) -> list[CheckResult]:
    """Whether the packages are installed that bring GGUF files, and the one that reads them."""
    results: list[CheckResult] = []
    for model in jobs.converted_models(config):
        gguf, check = config.models[model].gguf, f"models.{model}.gguf"
        if gguf is None or jobs.base_folder(config, model) is not None:
            continue
        with input_errors_as_failures(results, check):
            package_file("gguf", "gguf")
            results.append(CheckResult(OK, check, str(package_file(gguf.package, gguf.file))))
    return results


def check_api_keys(config: Config) -> list[CheckResult]:
    """Whether the key of each chat endpoint that is still to be used is in the environment."""
    results = []
    for name, benchmark in config.benchmarks.items():
        paraphrases = benchmark.paraphrases
        if paraphrases is None or paraphrases.method != "chat" or paraphrases.chat is None:
            continue
        if all(Path(path).exists() for path in targets.paraphrases(config, name)):
            continue
        variable = paraphrases.chat.api_key_env
        if os.environ.get(variable):
            results.append(CheckResult(OK, "API key", f"{variable} is set"))
        else:
            text = (
                f"{variable} is not set; export the key for {paraphrases.chat.base_url}, or set "
                f"benchmarks.{name}.paraphrases.method: rules"
            )
            results.append(failed("API key", text))
    return results


def check_end_token(config: Config, model: str) -> CheckResult:
    """Whether the tokenizer has an end token, without which no response would ever end."""
    check, folder = f"end token of {model}", jobs.base_folder(config, model)
    try:
        path = _tokenizer_config(config.models[model], folder)
        token = json.loads(path.read_text(encoding="utf-8")).get("eos_token")
    except Exception as error:  # not a file here or on the hub, or not JSON
        text = (
            f"its tokenizer_config.json cannot be read ({first_line(error)}); copy the tokenizer "
            "again"
        )
        return failed(check, text)
    token = token["content"] if isinstance(token, dict) else token
    if not token:
        text = (
            "the tokenizer has none, so no model would learn to end a response; set eos_token in "
            "tokenizer_config.json"
        )
        return failed(check, text)
    if folder and (folder / "tokenizer.json").is_file():
        from tokenizers import Tokenizer

        if Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(token) is None:
            text = f"{token!r} is not in its vocabulary; correct eos_token in tokenizer_config.json"
            return failed(check, text)
    return CheckResult(OK, check, repr(token))


def check_chat_template(config: Config, model: str) -> CheckResult:
    """Whether the tokenizer has a chat template, as that of a chat model has."""
    check, entry = f"chat template of {model}", config.models[model]
    try:
        path = _tokenizer_config(entry, jobs.base_folder(config, model))
        base_files.check_chat_template(model, entry, path)
    except InputError as error:
        return failed(check, str(error))
    except Exception as error:  # the check of the end token says how to fix it
        return CheckResult(SKIPPED, check, f"not checked: {first_line(error)}")
    return CheckResult(OK, check, "ignored" if entry.chat_template else "the tokenizer has none")


def check_context_length(config: Config, model: str) -> CheckResult:
    """Whether exemplars and a response of `sampling.max_new_tokens` leave room for a question.

    Exemplars count if the model's tokenizer is here.
    """
    check, response = f"context of {model}", config.sampling.max_new_tokens
    try:
        path = _small_file(config.models[model], jobs.base_folder(config, model), "config.json")
        values = json.loads(path.read_text(encoding="utf-8"))
    except Exception as error:  # not a file here or on the hub, or not JSON
        return CheckResult(SKIPPED, check, f"not checked: {first_line(error)}")
    context = values.get("text_config", values).get("max_position_embeddings")
    if context is not None and response >= context:
        text = f"it is {context} tokens, but sampling.max_new_tokens is {response}; lower it"
        return failed(check, text)
    for owner in config.question_owners:
        exemplars = 0
        with contextlib.suppress(InputError):  # another check says that they are missing
            exemplars = few_shot_tokens(config, model, owner) or 0
        if context is not None and exemplars + response >= context:
            text = (
                f"it is {context} tokens, but the exemplars of {owner} have {exemplars} and "
                f"sampling.max_new_tokens is {response}; lower it or "
                f"benchmarks.{owner}.prompt.num_shots"
            )
            return failed(check, text)
    return CheckResult(OK, check, f"{context} tokens")


def _tokenizer_config(entry: ModelEntry, folder: Path | None) -> Path:
    """A model's tokenizer_config.json: a few kilobytes, downloaded if the model is on the hub.

    Newer models have their chat template in a file of its own, which is downloaded to the same
    folder if it exists.
    """
    if folder is None:
        from huggingface_hub.errors import EntryNotFoundError

        with contextlib.suppress(EntryNotFoundError):
            _small_file(entry, folder, base_files.CHAT_TEMPLATE)
    return _small_file(entry, folder, "tokenizer_config.json")


def _small_file(entry: ModelEntry, folder: Path | None, name: str) -> Path:
    """A file of a model folder, or downloaded from the hub."""
    if folder:
        return folder / name
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(entry.base, name, revision=entry.revision))
