"""How large a model is, without loading it: from the headers of its files, here or on the hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerogap.errors import InputError
from zerogap.families import (
    Family,
    ModelSize,
    ToySize,
    family_of_folder,
    published_size,
    toy_architecture,
)

if TYPE_CHECKING:
    from huggingface_hub.utils import SafetensorsRepoMetadata


def of_folder(folder: Path, family: str) -> ModelSize:
    """The size of a model whose files are here.

    Raises:
        InputError: the folder has no safetensors files that can be read.
    """
    import huggingface_hub
    from huggingface_hub.errors import NotASafetensorsRepoError, SafetensorsParsingError

    try:
        found = huggingface_hub.get_local_safetensors_metadata(folder)
    except (OSError, NotASafetensorsRepoError, SafetensorsParsingError) as error:
        raise InputError(
            f"{folder}: no safetensors files that can be read ({brief(error)}); copy the model "
            "again, or convert it by save_pretrained"
        ) from error
    return _from_headers(found, family_of_folder(folder, family))


def from_scratch(family: str, pretraining: Mapping[str, Any]) -> ModelSize:
    """The size of a toy base that is still to be pretrained, to a few per cent.

    Args:
        family: a family with a toy model.
        pretraining: the configuration's `pretraining` section for the model.
    """
    return toy_architecture(family).size(ToySize.of(pretraining))


def on_hub(repository: str, revision: str | None, family: str) -> ModelSize:
    """The size of a model on the hub; the paper's are known without asking.

    Raises:
        InputError: the hub does not tell.
    """
    if size := published_size(repository):
        return size
    import huggingface_hub

    try:
        found = huggingface_hub.HfApi().get_safetensors_metadata(repository, revision=revision)
        path = huggingface_hub.hf_hub_download(repository, "config.json", revision=revision)
    except Exception as error:  # whatever the hub's library raises: offline, not found, gated, …
        raise InputError(
            f"{repository}: the hub does not tell its size ({brief(error)}); check the name, the "
            "network and your login, or give a folder as its base"
        ) from error
    return _from_headers(found, family_of_folder(Path(path).parent, family))


def brief(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _from_headers(metadata: "SafetensorsRepoMetadata", family: Family) -> ModelSize:
    tensors: dict[str, Any] = {}
    for file in metadata.files_metadata.values():
        tensors |= file.tensors
    down = f"{family.down_projection}.weight"
    return ModelSize(
        parameters=sum(tensor.parameter_count for tensor in tensors.values()),
        stored=sum(end - start for start, end in (t.data_offsets for t in tensors.values())),
        # The network is wider than the model; GPT-2 stores the transposed weight.
        widths=tuple(max(t.shape) for name, t in tensors.items() if name.endswith(down)),
    )
