"""The precision that a training runs in, and the base model in it.

LLaMA-Factory loads weights in the type that the model's configuration names, whatever its setting
`bf16` is: without `bf16`, it still multiplies with a base stored in bfloat16. On a CPU that is slow
in bfloat16 (:mod:`zerogap.precision`) such a training hardly moves, so it gets a folder from which
the same weights are loaded in float32.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DTYPE_KEYS = ("dtype", "torch_dtype")  # of transformers 5, and of configurations written earlier


def trains_in_bf16(training: Mapping[str, Any]) -> bool:
    """Whether a training runs in bfloat16, which a CPU that is slow in it replaces by float32.

    Args:
        training: the configuration's `training` section for this model.
    """
    if not training["bf16"] or training["device"] != "cpu":
        return bool(training["bf16"])
    import torch  # takes seconds; other trainings do not wait for it

    from zerogap.precision import usable_dtype

    return usable_dtype(torch.bfloat16, torch.device("cpu")) == torch.bfloat16


def base_to_load(model: Path, training: Mapping[str, Any], folder: Path) -> Path:
    """Return the folder from which a training loads its base in the precision that it runs in.

    Args:
        model: folder of the base.
        training: as for :func:`trains_in_bf16`.
        folder: for a training in float32 with a base in another type, this folder is returned. It
            gets a `config.json` of its own and links to the other files, and may exist already.
    """
    config = json.loads((model / "config.json").read_text())
    in_float32 = {**_with_float32(config), "dtype": "float32"}
    if config == in_float32 or trains_in_bf16(training):
        return model
    folder.mkdir(exist_ok=True)
    for path in model.iterdir():
        link = folder / path.name
        link.unlink(missing_ok=True)
        if path.name == "config.json":
            link.write_text(json.dumps(in_float32, indent=2) + "\n")
        else:
            link.symlink_to(path.resolve())
    return folder


def name_base(adapter: Path, model: Path) -> None:
    """Make an adapter name the base itself, not the folder that it was loaded from."""
    path = adapter / "adapter_config.json"
    config = json.loads(path.read_text())
    config["base_model_name_or_path"] = str(model)
    path.write_text(json.dumps(config, indent=2, sort_keys=True))


def _with_float32(config: Any) -> Any:
    """A configuration with float32 in place of every type, those of towers included."""
    if not isinstance(config, dict):
        return config
    return {
        key: "float32" if key in _DTYPE_KEYS else _with_float32(value)
        for key, value in config.items()
    }
