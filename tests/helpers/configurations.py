"""Configurations for tests: the project's files with an overlay given as flat keys."""

import copy
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.paths import ROOT
from zerogap.config import Config, load

PAPER = (ROOT / "config.yaml",)
QUICK = (*PAPER, ROOT / "profiles/quick/quick.yaml")


def overlaid(base: Sequence[Path], overlay: dict[str, Any]) -> Config:
    """The configuration of files, overlaid with {"sampling.num_samples": 7, …}."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "overlay.yaml")
        path.write_text(json.dumps(nested(overlay)))
        return load([*base, path])


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """{"a.b": 1} as {"a": {"b": 1}}."""
    values: dict[str, Any] = {}
    for key, value in copy.deepcopy(flat).items():
        *sections, last = key.split(".")
        section = values
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = value
    return values
