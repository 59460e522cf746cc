"""The provenance of an artefact: versions, commit and platform, stored with every file."""

import importlib.metadata
import itertools
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import zerogap

PACKAGES = (
    "torch",
    "transformers",
    "peft",
    "llamafactory",
    "snakemake",
    "pandas",
    "pyarrow",
    "reasoning-gym",
    "lm-eval",
)
_DRAWN = ("engine", "sampling", "seed", "extraction", "prompt", "chat_template", "stop")


def provenance(**metadata: Any) -> dict[str, Any]:
    """The given metadata (run, model, benchmark, strategy, seed, …) with versions and commit."""
    return {
        **metadata,
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
    """The commit of the checkout, marked `-dirty` if files differ; None outside a checkout."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / ".git").exists():  # installed, perhaps inside of another repository
        return None
    try:
        describe = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],  # noqa: S607
            cwd=checkout,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return describe.stdout.strip()


def merged_provenance(shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Provenance of a table merged from shards: that of the shards if they all have the same.

    Shards differ if, for example, the package was updated between two of them.
    """
    if all(shard == shards[0] for shard in shards):
        return dict(shards[0])
    return {**shards[0], "shards": list(shards)}


def draws(made_by: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How a file's responses were drawn: those of all shards, and those that it filters.

    Values are the engine's name, `sampling`, the seed, the extraction rule, prompt, chat template
    and stops.
    """
    own = {name: made_by[name] for name in _DRAWN if name in made_by}
    if "engine" in own:
        own["engine"] = own["engine"].partition(" ")[0]
    source = made_by.get("source")
    sources = [source] if isinstance(source, Mapping) else []
    return [own, *itertools.chain(*map(draws, [*made_by.get("shards", []), *sources]))]


def engines(made_by: Mapping[str, Any]) -> set[str]:
    """The engines that drew a file's responses: of all shards, and of those that it filters."""
    return {drawn["engine"] for drawn in draws(made_by) if "engine" in drawn}
