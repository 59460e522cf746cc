"""YAML files of the configuration: where they are, what they say, which of them a profile has."""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from zerogap.errors import InputError

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE.parents[1]

Values = dict[str, Any]
MAX_BYTES, MAX_DEPTH, MAX_VALUES, MAX_DIGITS = 1_000_000, 30, 20_000, 40  # of a YAML file
# Also halves of surrogate pairs, which no file can hold.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
KINDS = ("str", "int", "float", "bool", "null", "map", "seq")  # what JSON has too


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
    """A file in the checkout of this package, or in the working directory."""
    for path in (ROOT / name, Path(name)):
        if path.is_file():
            return path
    raise InputError(
        f"{name} is part of a checkout of the project, and this is an installed package; run the "
        "command in a checkout"
    )


def read_mapping(path: Path) -> Values:
    """Read a YAML file that is a mapping.

    Raises:
        InputError: it cannot be read, is not a mapping, has a duplicate key, of which YAML itself
            would silently keep the last, a value that JSON does not have, or exceeds the limits.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(f"{path}: has more than {MAX_BYTES:,} bytes; name another file")
        loader = yaml.SafeLoader(content.decode())
        tree = loader.get_single_node()
        if not isinstance(tree, yaml.MappingNode):
            raise InputError(f"{path}: must be a mapping of keys to values")
        for node, problem in _problems(tree, (), itertools.count()):
            raise InputError(f"{path}, line {node.start_mark.line + 1}: {problem}")
        return dict(loader.construct_document(tree))
    except RecursionError as error:
        raise InputError(f"{path}: has too many values inside each other") from error
    except OSError as error:
        raise InputError(f"{path}: does not exist or is not readable") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not valid YAML ({' '.join(str(error).split())})") from error


def _problems(
    node: yaml.Node, path: tuple[str, ...], number: Iterator[int]
) -> Iterator[tuple[yaml.Node, str]]:
    """Where the value at a path is not a configuration, and why.

    `number` counts the values, those of an alias wherever it appears.
    """
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if next(number) > MAX_VALUES or len(path) > MAX_DEPTH:
        yield node, "too many values, or an alias within itself; write the values out"
        return
    if kind not in KINDS:
        yield node, f"{'.'.join(path)}: is read as a {kind}; put it in quotes to make it a text"
    elif isinstance(node, yaml.ScalarNode):
        if kind in ("int", "float") and len(node.value) > MAX_DIGITS:
            yield node, f"{'.'.join(path)}: is a number with more than {MAX_DIGITS} digits"
        elif control := _CONTROL.search(node.value):
            yield node, f"{'.'.join(path)}: has the control character {control[0]!a}; remove it"
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _problems(value, (*path, str(index)), number)
    else:
        seen = set()
        for key, value in node.value:
            name = (*path, str(key.value))
            if not isinstance(key, yaml.ScalarNode):
                yield key, f"{'.'.join(path)}: a key must be a name"
            elif key.value in seen:
                yield key, f"duplicate key {'.'.join(name)}; rename or remove one of the two"
            seen.add(str(key.value))
            yield from _problems(value, name, number)


def read_overlays(profile: str) -> list[str]:
    """The overlays that a profile, a folder or its file, lists; none if it is not in the checkout.

    Raises:
        InputError: the profile's config.yaml is not a YAML mapping.
    """
    path = Path(profile) if Path(profile).is_file() else Path(profile, "config.yaml")
    if not path.is_file():
        return []
    overlays = read_mapping(path).get("configfile", [])
    return [overlays] if isinstance(overlays, str) else overlays


def check_overlays(arguments: Sequence[str], files: Sequence[str | Path]) -> None:
    """Check that a run under a profile has the profile's scale: the first of its overlays.

    Snakemake silently takes `--configfile` of the command line instead of the profile's: with
    `--profile profiles/quick --configfile mine.yaml`, the paper would run. It also ignores a
    workflow profile that does not exist. The last of the run's files is config.yaml.

    Raises:
        InputError: It does not; the message has the option that fixes it. Or there is no such
            workflow profile.
    """
    used = [Path(file).resolve() for file in files]
    options = [
        (name, joined or value)
        for option, value in itertools.pairwise([*arguments, ""])
        for name, _, joined in [option.partition("=")]
    ]
    if "--profile" not in dict(options):
        options.append(("--profile", os.environ.get("SNAKEMAKE_PROFILE", "none")))
    for name, folder in options:
        places = [folder]
        if name == "--workflow-profile":
            places = [folder, f"profiles/{folder}"]  # where Snakemake looks
            if not any(map(os.path.exists, places)) and folder != "none":
                raise InputError(f"--workflow-profile {folder}: no such folder; correct the path")
        elif name != "--profile":
            continue
        overlays = next(filter(None, map(read_overlays, places)), [])
        if overlays and Path(overlays[0]).resolve() not in used:
            own = [os.path.relpath(file) for file in files[:-1]]
            raise InputError(
                f"--configfile replaces the overlays of {folder}; give both: "
                f"--configfile {' '.join([*overlays, *own])}"
            )
