"""What the files of a model folder say, read without torch: configuration, tokenizer, tensors.

A file that is missing, damaged or says something impossible is one line with a remedy.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zerogap.errors import InputError, first_line
from zerogap.io.text_files import read_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_AGAIN = "copy the model again, or save it with save_pretrained"


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object of a file of a model.

    Raises:
        InputError: it cannot be read or is something else.
    """
    if not path.exists():
        raise InputError(f"{path}: does not exist; {_AGAIN}")
    text = read_text(path)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not readable JSON ({first_line(error)}); {_AGAIN}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: must be a JSON object, not a {type(values).__name__}; {_AGAIN}")
    return values


def read_config(folder: str | Path) -> dict[str, Any]:
    """The content of a folder's `config.json`.

    Raises:
        InputError: it cannot be read, or names no type of model.
    """
    path = Path(folder) / "config.json"
    values = read_json(path)
    if not isinstance(values.get("model_type"), str):
        raise InputError(f"{path}: has no model_type; {_AGAIN}")
    return values


def text_values(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a `config.json` that describes the text decoder."""
    part = config.get("text_config")
    return part if isinstance(part, dict) else config


def read_tokenizer(folder: Path) -> "Tokenizer | None":
    """The tokenizer of a folder's `tokenizer.json`; None if it has no such file.

    Raises:
        InputError: it cannot be read or has no tokens.
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    try:
        tokenizer = Tokenizer.from_str(read_text(path))
    except InputError:
        raise
    except Exception as error:  # the library has no class for it
        raise InputError(
            f"{path}: is not a readable tokenizer ({first_line(error)}); copy the tokenizer again"
        ) from error
    if not tokenizer.get_vocab_size():
        raise InputError(f"{path}: has no tokens; copy the tokenizer again")
    return tokenizer


def tensor_names(folder: Path) -> set[str]:
    """The names of all tensors in a folder's safetensors files.

    Raises:
        InputError: there are none, a file is missing, cut off or damaged, or `config.json` has
            another number of layers than there could be.
    """
    from safetensors import SafetensorError, safe_open

    files = set(folder.glob("*.safetensors"))
    if not files:
        raise InputError(
            f"{folder}: has no safetensors weights, and other formats are not loaded; convert it "
            "with model.save_pretrained(folder)"
        )
    for index in folder.glob("*.safetensors.index.json"):
        shards = read_json(index).get("weight_map")
        if not isinstance(shards, dict) or not all(isinstance(x, str) for x in shards.values()):
            raise InputError(f"{index}: has no weight_map from tensors to files; {_AGAIN}")
        files |= {folder / name for name in shards.values()}
    names: set[str] = set()
    for path in sorted(files):
        try:
            with safe_open(path, framework="numpy") as opened:
                names.update(opened.keys())
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{path}: is not a complete safetensors file ({first_line(error)}); {_AGAIN}"
            ) from error
    num_layers = text_values(read_config(folder)).get("num_hidden_layers", 1)
    if isinstance(num_layers, int) and not 1 <= num_layers <= len(names):
        raise InputError(
            f"{folder / 'config.json'}: num_hidden_layers is {num_layers}, but the weights are "
            f"{len(names)} tensors; correct it"
        )
    return names
