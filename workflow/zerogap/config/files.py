"""YAML files of the configuration: where they are, what they say, which of them a profile has."""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from zerogap.errors import InputError

ROOT = Path(__file__).parents[3]

Values = dict[str, Any]


def project_file(path: str) -> Path | None:
    """A file of the project: in the checkout of this package, or in the working directory."""
    return next((home / path for home in (ROOT, Path()) if (home / path).is_file()), None)


def paper_config() -> Path:
    """The paper's configuration.

    Raises:
        InputError: the package is installed without a checkout, and this is not one.
    """
    return _file_of_checkout("config.yaml")


def checkout() -> Path:
    """The root of the checkout to run in: that of this package, or the working directory.

    Raises:
        InputError: there is none, or the working directory is in another checkout, in which the
            results would be expected.
    """
    snakefile = _file_of_checkout("Snakefile")
    root, here = snakefile.parent.resolve(), Path.cwd()
    around = (path for path in (here, *here.parents) if (path / "workflow/zerogap").is_dir())
    if (other := next(around, root)) != root:
        raise InputError(
            f"{other} is a checkout of its own, but this zerogap is installed from {root}; "
            "activate the environment of the checkout that you want to run"
        )
    return root


def _file_of_checkout(name: str) -> Path:
    path = project_file(name)
    if path is None:
        raise InputError(
            f"{name} is part of a checkout of the project, and this is an installed package; run "
            "the command in a checkout"
        )
    return path


def read_mapping(path: Path) -> Values:
    """Read a YAML file that is a mapping.

    Raises:
        InputError: it cannot be read, is not a mapping, or has a duplicate key, of which YAML
            itself would silently keep the last.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values, tree = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise InputError(f"{path}: does not exist or is not readable") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not valid YAML ({' '.join(str(error).split())})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: must be a mapping of keys to values")
    for key, node in _duplicate_keys(tree, ""):
        raise InputError(
            f"{path}, line {node.start_mark.line + 1}: duplicate key {key}; rename or remove one "
            "of the two"
        )
    return values


def _duplicate_keys(node: yaml.Node | None, parent: str) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield f"{parent}{key.value}", key
            seen.add(key.value)
            yield from _duplicate_keys(value, f"{parent}{key.value}.")


def read_overlays(profile: str) -> list[str]:
    """The overlays that a profile, a folder, lists; none if it is not in the checkout.

    Raises:
        InputError: the profile's config.yaml is not a YAML mapping.
    """
    path = Path(profile, "config.yaml")
    if not path.is_file():
        return []
    overlays = read_mapping(path).get("configfile", [])
    return [overlays] if isinstance(overlays, str) else overlays


def check_overlays(arguments: Sequence[str], files: Sequence[str | Path]) -> None:
    """Check that a run under a profile has the profile's scale: the first of its overlays.

    Snakemake silently takes `--configfile` of the command line instead of the profile's: with
    `--profile profiles/quick --configfile mine.yaml`, the paper would run.

    Args:
        arguments: Snakemake's command line.
        files: The configuration files of the run; the last one is config.yaml.

    Raises:
        InputError: It does not; the message has the option that fixes it.
    """
    used = [Path(file).resolve() for file in files]
    for option, value in pairwise([*arguments, ""]):
        name, _, joined = option.partition("=")
        overlays = read_overlays(joined or value) if name == "--profile" else []
        if overlays and Path(overlays[0]).resolve() not in used:
            own = [os.path.relpath(file) for file in files[:-1]]
            raise InputError(
                f"--configfile replaces the overlays of {joined or value}; give both: "
                f"--configfile {' '.join([*overlays, *own])}"
            )
