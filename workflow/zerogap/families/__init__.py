"""Model families: those of :mod:`zerogap.families.registered`, and a generic one.

The configuration names a family or says `auto`, the default. `auto` takes the registered family of
the model's `model_type`; for any other model :mod:`zerogap.families.structure` derives what
training and localisation need from the modules. Importing this package does not import torch.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zerogap.errors import InputError
from zerogap.families.family import Family, ModelSize
from zerogap.families.registered import FAMILIES, HUB_SIZES

__all__ = [
    "AUTO",
    "FAMILIES",
    "Family",
    "ModelSize",
    "family_from_config",
    "family_of_folder",
    "fits_shared_prompt_decoder",
    "published_size",
]

AUTO = "auto"


def family_of_folder(folder: str | Path, name: str = AUTO) -> Family:
    """The family of a model folder.

    Args:
        folder: the model.
        name: a registered family, or "auto" to read it from the folder's `config.json`.

    Raises:
        InputError: no readable `config.json`, a model of another family, or one that the generic
            family does not support.
    """
    path = Path(folder) / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path}: does not exist or is not readable; pass a model folder as saved by "
            "save_pretrained"
        ) from error
    if name == AUTO:
        return family_from_config(config)
    family = FAMILIES[name]
    if config.get("model_type") not in family.model_types:
        raise InputError(
            f"{path}: model_type is {config.get('model_type')!r}, which is not of the family "
            f"'{name}' ({', '.join(family.model_types)}); set family: {AUTO}"
        )
    return family


def family_from_config(config: Mapping[str, Any]) -> Family:
    """The family of the model that a `config.json` describes: a registered or the generic one.

    Raises:
        InputError: a model that the generic family does not support.
    """
    if family := _registered(config.get("model_type")):
        return family
    from zerogap.families import structure  # loads torch

    return structure.family_from_config(config)


def _registered(model_type: str | None) -> Family | None:
    return next((f for f in FAMILIES.values() if model_type in f.model_types), None)


def fits_shared_prompt_decoder(model_type: str) -> bool:
    """Whether tests compare the shared-prompt decoder for models of this `model_type`."""
    return _registered(model_type) is not None


def published_size(repository: str) -> ModelSize | None:
    """The size of a model of the paper or of a shipped overlay, without asking the hub."""
    return HUB_SIZES.get(repository)
