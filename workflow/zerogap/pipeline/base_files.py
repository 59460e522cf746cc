"""The configuration and tokenizer files of a base model: local, in the hub's cache, or fetched."""

import json
from pathlib import Path

from zerogap.config import Config, ModelEntry
from zerogap.errors import InputError, first_line
from zerogap.io.hub import SMALL_FILES, WEIGHTS
from zerogap.pipeline import jobs

CHAT_TEMPLATE = "chat_template.jinja"


def base_files(config: Config, model: str, *, weights: bool = False) -> Path:
    """A folder with the files of a base model.

    Args:
        config: the configuration.
        model: a key of its models.
        weights: whether the weights are needed too.

    Raises:
        InputError: the base is neither a folder nor cached nor on a hub that answers, or it has
            not been converted yet.
    """
    entry = config.models[model]
    folder = jobs.base_folder(config, model)
    if folder is not None:
        return folder
    if entry.gguf is not None:
        raise InputError(
            f"models.{model}: {jobs.BASES}/{model}/base does not exist; convert it first with "
            f"snakemake {jobs.BASES}/{model}/base and the profile of this run"
        )
    from huggingface_hub import snapshot_download

    try:
        snapshot = snapshot_download(
            entry.base,
            revision=entry.revision,
            allow_patterns=[*SMALL_FILES, *(WEIGHTS if weights else ())],
            local_files_only=config.offline,
        )
    except Exception as error:  # offline, not found, gated: the hub's libraries raise many types
        raise InputError(
            f"models.{model}.base: '{entry.base}' is not a local folder, not in the hub's cache "
            f"and cannot be downloaded ({first_line(error)}); correct the name, or log in with "
            "`hf auth login` if it is gated, or give a folder"
        ) from error
    if not Path(snapshot, "config.json").is_file():
        raise InputError(
            f"models.{model}.base: '{entry.base}' has no config.json in the hub's cache; download "
            "it once with a network, or give a folder"
        )
    return Path(snapshot)


def check_chat_template(model: str, entry: ModelEntry, tokenizer_config: Path) -> None:
    """Refuse a tokenizer with a chat template unless the configuration says to ignore it.

    Prompts are plain text. A chat model continues them in a format that it was not tuned on.

    Args:
        model: a key of the configuration's models.
        entry: its value.
        tokenizer_config: the model's `tokenizer_config.json`; newer models have the template in
            `chat_template.jinja` in the same folder.

    Raises:
        InputError: it has a chat template.
    """
    if entry.chat_template == "ignore":
        return
    settings = json.loads(tokenizer_config.read_text(encoding="utf-8"))
    template = tokenizer_config.with_name(CHAT_TEMPLATE)
    if settings.get("chat_template") or template.is_file():
        raise InputError(
            f"'{entry.base}' has a chat template, and benchmark prompts are plain text; use the "
            f"base model, or, if it is one, set models.{model}.chat_template: ignore"
        )
