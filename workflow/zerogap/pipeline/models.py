"""What is known of a base model before a job loads it: its small files and its size."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from zerogap.config import Config
from zerogap.errors import InputError, first_line
from zerogap.families import (
    AUTO,
    FAMILIES,
    HUB_SIZES,
    Family,
    ModelSize,
    family_from_config,
    family_of_folder,
)
from zerogap.families.folders import tensor_names
from zerogap.io.digests import SMALL_FILES
from zerogap.io.hub import hub_problem
from zerogap.pipeline import targets

if TYPE_CHECKING:
    from huggingface_hub.utils._safetensors import SafetensorsRepoMetadata


def base_files(config: Config, model: str) -> Path:
    """A folder with the configuration and tokenizer of a base model: local, cached or fetched.

    Raises:
        InputError: the base is neither a folder nor cached nor on a hub that answers, or it has
            not been converted yet.
    """
    entry = config.models[model]
    folder = targets.base_folder(config, model)
    if folder is not None:
        return folder
    if entry.gguf is not None:
        made = targets.unprepared_base(config, model)
        raise InputError(
            f"models.{model}: {made} does not exist; convert it first with snakemake {made} and "
            "the profile of this run"
        )
    from huggingface_hub import snapshot_download

    try:
        snapshot = snapshot_download(
            entry.base,
            revision=entry.revision,
            allow_patterns=list(SMALL_FILES),
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


def model_size(config: Config, model: str) -> ModelSize:
    """The size of a model of the configuration, from its folder or from the hub.

    Raises:
        InputError: the size cannot be determined.
    """
    entry, folder = config.models[model], targets.base_folder(config, model)
    if folder:
        return size_of_folder(folder, entry.family)
    return size_on_hub(entry.base, entry.revision, entry.family)


def size_of_folder(folder: Path, family: str) -> ModelSize:
    """The size of a local model.

    Raises:
        InputError: the folder has no readable safetensors files, or its family is not known.
    """
    import huggingface_hub
    from huggingface_hub.errors import NotASafetensorsRepoError, SafetensorsParsingError

    tensor_names(folder)
    try:
        metadata = huggingface_hub.get_local_safetensors_metadata(folder)
    except (OSError, NotASafetensorsRepoError, SafetensorsParsingError) as error:
        raise InputError(
            f"{folder}: has no readable safetensors files ({first_line(error)}); copy the model "
            "again, or convert it with save_pretrained"
        ) from error
    known = family_of_folder(folder, family)
    return _from_headers(metadata, known)


def size_on_hub(repository: str, revision: str | None, family: str) -> ModelSize:
    """The size of a model on the hub; those of some are known without asking.

    Raises:
        InputError: the hub cannot be asked.
    """
    if repository in HUB_SIZES:
        return HUB_SIZES[repository]
    import huggingface_hub

    try:
        metadata = huggingface_hub.HfApi().get_safetensors_metadata(repository, revision=revision)
        path = huggingface_hub.hf_hub_download(repository, "config.json", revision=revision)
        model_config = json.loads(Path(path).read_text(encoding="utf-8"))
        known = FAMILIES[family] if family != AUTO else family_from_config(model_config)
    except InputError:
        raise
    except Exception as error:  # whatever the hub's library raises: offline, not found, gated, …
        raise InputError(
            f"{repository}: its size cannot be read from the hub: "
            f"{hub_problem(error, repository, revision)}, or give a folder as its base"
        ) from error
    return _from_headers(metadata, known)


def _from_headers(metadata: "SafetensorsRepoMetadata", family: Family) -> ModelSize:
    tensors = {
        name: tensor
        for file in metadata.files_metadata.values()
        for name, tensor in file.tensors.items()
    }
    weights = f"{family.down_projection}.weight"
    return ModelSize(
        parameters=sum(tensor.parameter_count for tensor in tensors.values()),
        stored=sum(
            end - start for start, end in (tensor.data_offsets for tensor in tensors.values())
        ),
        widths=tuple(tensor.shape[1] for name, tensor in tensors.items() if name.endswith(weights)),
    )
