"""Who made an artefact: versions, commit and machine, to go with every file."""

import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

import zerogap

PACKAGES = ("torch", "transformers", "peft", "llamafactory", "snakemake", "pandas", "pyarrow")


def provenance(**facts: Any) -> dict[str, Any]:
    """The given facts (run, model, benchmark, strategy, seed, …) with versions and the commit."""
    return {
        **facts,
        "zerogap": zerogap.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": platform.machine(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The checkout's commit, marked where the working tree differs; None outside a checkout."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return described.stdout.strip()
