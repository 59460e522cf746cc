"""How large a model is, without loading it: from the headers of its files, here or on the hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerogap.errors import InputError
from zerogap.families import FAMILIES

if TYPE_CHECKING:
    from huggingface_hub.utils import SafetensorsRepoMetadata


@dataclass(frozen=True)
class Size:
    """A model's weights.

    Attributes:
        parameters: how many.
        stored: bytes of its files.
        widths: neurons of every layer's feed-forward block.
    """

    parameters: int
    stored: int
    widths: tuple[int, ...]


# The paper's, so that a plan needs no network; Gemma's as far as it is public.
KNOWN = {
    "meta-llama/Llama-2-7b-hf": Size(6_738_415_616, 13_476_831_232, (11_008,) * 32),
    "EleutherAI/pythia-12b": Size(11_846_072_320, 23_692_144_640, (20_480,) * 36),
    "google/gemma-4-E2B": Size(5_100_000_000, 10_200_000_000, (6_144,) * 15 + (12_288,) * 20),
}


def of_folder(folder: Path, family: str) -> Size:
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
    return _from_headers(found, family)


def from_scratch(family: str, sizes: Mapping[str, Any]) -> Size:
    """The size of a base that is still to be pretrained, to a few per cent.

    Args:
        sizes: config's `pretraining` of the model: vocabulary, width, layers, feed_forward.
    """
    width, layers = sizes["width"], sizes["layers"]
    neox = family == "gpt_neox"  # no gate, no grouped queries, no tied embeddings
    block = (4 if neox else 3) * width**2 + (2 if neox else 3) * width * sizes["feed_forward"]
    parameters = layers * block + (2 if neox else 1) * sizes["vocabulary"] * width
    if family == "gemma4":  # embeddings of 16 numbers a layer, and the ways into and out of them
        parameters += 16 * layers * (sizes["vocabulary"] + 3 * width)
    return Size(parameters, 2 * parameters, (sizes["feed_forward"],) * layers)


def on_hub(repository: str, revision: str | None, family: str) -> Size:
    """The size of a model on the hub; the paper's are known without asking.

    Raises:
        InputError: the hub does not tell.
    """
    if repository in KNOWN:
        return KNOWN[repository]
    import huggingface_hub

    try:
        found = huggingface_hub.HfApi().get_safetensors_metadata(repository, revision=revision)
    except Exception as error:  # whatever the hub's library raises: offline, not found, gated, …
        raise InputError(
            f"{repository}: the hub does not tell its size ({brief(error)}); check the name, the "
            "network and your login, or give a folder as its base"
        ) from error
    return _from_headers(found, family)


def brief(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _from_headers(metadata: "SafetensorsRepoMetadata", family: str) -> Size:
    tensors: dict[str, Any] = {}
    for file in metadata.files_metadata.values():
        tensors |= file.tensors
    down = f"{FAMILIES[family].down_projection}.weight"
    return Size(
        parameters=sum(tensor.parameter_count for tensor in tensors.values()),
        stored=sum(end - start for start, end in (t.data_offsets for t in tensors.values())),
        widths=tuple(t.shape[1] for name, t in tensors.items() if name.endswith(down)),
    )
