"""From YAML files and values of the command line to a checked :class:`Config`."""

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from zerogap.config.benchmark import Benchmark
from zerogap.config.config import Config
from zerogap.config.errors import ConfigError, KeyPath, explain
from zerogap.config.files import ROOT, Values, read_mapping
from zerogap.errors import InputError
from zerogap.plugins import import_object, installed

ENTRY_POINTS = "zerogap.benchmarks"  # of installed packages: mappings with a benchmark's keys
COMMAND_LINE = "config"  # in the place of a file, for what the command line has set
SECTIONS_WITH_NAMES = ("models", "benchmarks", "strategies", "ablation")
# All that a benchmark with `questions_of` may say; the rest is its owner's.
DEPENDENT_KEYS = ("label", "contamination", "questions_of", "paraphrases")
TRAINING_KINDS = ("clean", "contaminated")
# Keys that only files have, by section and depth.
FILE_KEYS = {("training", 2): ", clean, contaminated", ("benchmarks", 3): ", file"}


def load(paths: Sequence[str | Path], command_line: Mapping[str, Any] | None = None) -> Config:
    """Read a configuration: each file overlays those before it, Snakemake's `--config` all.

    Raises:
        InputError: a file cannot be read or is not a YAML mapping, or the whole is not valid.
    """
    sources = {str(path): read_mapping(Path(path)) for path in paths}
    sources[COMMAND_LINE] = _typed(dict(command_line or {}))
    values: Values = {}
    for name, source in sources.items():
        _check_removals(source, values, name)
        _check_training(source, values, name)
        values = _overlay(_without_other_bases(source, values), source)
    try:
        return _validated(values)
    except ConfigError as error:
        if len(error.path) == 1 and error.path[0] not in values:
            raise InputError(
                f"{paths[0]}: has no {error.path[0]}; the first file is a whole configuration, "
                "such as config.yaml, and overlays follow it"
            ) from error
        place = _source(error.path, sources)
        raise ConfigError(error.path, error.problem, place) from error


def from_snakemake(files: Sequence[str | Path], command_line: Mapping[str, Any]) -> Config:
    """Read `workflow.configfiles`: the overlays, then the Snakefile's own configuration.

    Raises:
        InputError: see :func:`load`.
    """
    return load([files[-1], *files[:-1]], command_line)


def load_benchmark(path: Path | str) -> Benchmark:
    """Read one benchmark from its file, or by its name in an installed package.

    Raises:
        InputError: the file cannot be read, is not valid, or names the questions of another
            benchmark.
    """
    values = read_mapping(path) if isinstance(path, Path) else _installed(path)
    if owner := values.get("questions_of"):
        raise InputError(
            f"{path}: has the questions and prompts of '{owner}'; use that benchmark instead"
        )
    try:
        return Benchmark.model_validate(values)
    except ValidationError as error:
        raise explain(error, values, str(path)) from error


def _typed(value: Any) -> Any:
    """Numbers, booleans and null where Snakemake left texts: everywhere inside a mapping."""
    if isinstance(value, Mapping):
        return {key: _typed(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_typed(entry) for entry in value]
    if not isinstance(value, str) or not value:
        return value
    try:
        scalar = yaml.safe_load(value)
    except yaml.YAMLError:
        return value
    return scalar if scalar is None or isinstance(scalar, int | float) else value


def _check_removals(source: Values, values: Values, place: str) -> None:
    """Reject a null that removes nothing because its key is misspelt.

    An overlay may name entries that only some scales have.

    Raises:
        ConfigError: `values`, of the files before, have no such entry, but one of a similar name.
    """
    for section in SECTIONS_WITH_NAMES:
        entries, known = source.get(section), values.get(section)
        if not isinstance(entries, Mapping) or not isinstance(known, Mapping):
            continue
        for name in entries.keys() - known.keys():
            meant = difflib.get_close_matches(str(name), map(str, known), cutoff=0.8)
            if entries[name] is None and meant:
                problem = f"is null, but there is no such entry to remove; did you mean {meant[0]}?"
                raise ConfigError((section, name), problem, place)


def _check_training(source: Values, values: Values, place: str) -> None:
    """Reject a value for all trainings that the files before have set for either kind.

    Raises:
        ConfigError: it would change nothing.
    """
    training, before = source.get("training"), values.get("training")
    entries = [*_mappings(values, "models").values(), *_mappings(source, "models").values()]
    prepared = [each["preparation"] for each in entries if each.get("preparation")]
    for key, value in training.items() if isinstance(training, Mapping) else ():
        paths = [(kind, key) for kind in TRAINING_KINDS]
        is_known = all(_has(before, path) for path in paths)
        is_set = all(_has(training, path) for path in paths)
        is_of_preparation = not all(_has(each, ("training", key)) for each in prepared)
        is_shared = key not in TRAINING_KINDS and not isinstance(value, Mapping)
        if is_shared and is_known and not is_set and not is_of_preparation:
            kinds = " and ".join(f"training.{kind}.{key}" for kind in TRAINING_KINDS)
            problem = f"has no effect: a file before sets {kinds}; set those"
            raise ConfigError(("training", key), problem, place)


def _without_other_bases(source: Values, values: Values) -> Values:
    """The values of the files before, without what they say of a base that the source replaces."""
    models = _mappings(values, "models")
    replaced = {
        name
        for name, entry in _mappings(source, "models").items()
        if "base" in entry and entry["base"] != models.get(name, {}).get("base")
    }
    if not replaced:
        return values
    for name in replaced & models.keys():
        models[name] |= {"gguf": None, "revision": None, "chat_template": None}
    without = values | {"scale_note": ""}  # it was about other models
    return without | ({"models": values["models"] | models} if models else {})


def _overlay(base: Any, overlay: Any) -> Any:
    """Join two mappings key by key; anything else is replaced."""
    if not isinstance(overlay, Mapping):
        return overlay
    base = base if isinstance(base, Mapping) else {}
    return {**base, **{key: _overlay(base.get(key), value) for key, value in overlay.items()}}


def _mappings(values: Any, key: str) -> dict[str, Values]:
    """The entries of a section that are mappings; validation reports what else there is."""
    section = values.get(key)
    entries = section.items() if isinstance(section, Mapping) else ()
    return {name: dict(entry) for name, entry in entries if isinstance(entry, Mapping)}


def _validated(values: Values) -> Config:
    for section in SECTIONS_WITH_NAMES:  # null removes an entry
        if isinstance(entries := values.get(section), Mapping):
            values = values | {section: {k: v for k, v in entries.items() if v is not None}}
    if benchmarks := _mappings(values, "benchmarks"):
        complete = {name: _with_file(name, entry) for name, entry in benchmarks.items()}
        values = values | {"benchmarks": values["benchmarks"] | complete}
    expanded = _expanded(values)
    try:
        return Config.model_validate(expanded)
    except ValidationError as error:
        mistake = explain(error, expanded)
        path, problem = _written_path(mistake.path, values), mistake.problem
        if problem.startswith(": unknown key"):
            problem += FILE_KEYS.get((str(path[0]), len(path)), "")
        raise ConfigError(path, problem) from error


def _with_file(name: str, entry: Values) -> Values:
    """A benchmark's file, relative to the working directory or the project, and its other keys.

    In the place of a file, the name of a benchmark of an installed package.
    """
    if "file" not in entry:
        return entry
    file = entry.pop("file")
    for folder in (Path(), ROOT) if isinstance(file, str) else ():
        if os.path.isfile(folder / file):
            return dict(_overlay(read_mapping(folder / file), entry))
    if isinstance(file, str) and file in installed(ENTRY_POINTS):
        return dict(_overlay(_installed(file), entry))
    raise ConfigError(
        f"benchmarks.{name}.file",
        f"is {file!r}, which does not exist or is not readable; "
        "give the path of a benchmark's YAML file",
    )


def _installed(name: str) -> Values:
    """The values of a benchmark of an installed package.

    Raises:
        InputError: its object cannot be imported, or is not a mapping.
    """
    values = import_object(installed(ENTRY_POINTS)[name], f"benchmark {name}", ())
    if not isinstance(values, Mapping):
        raise InputError(f"benchmark {name}: is not a mapping with a benchmark's keys")
    return dict(values)


def _expanded(values: Values) -> Values:
    """Copy what sections share to where it applies: the result has the shape of :class:`Config`.

    The values of `training` go to both kinds and to preparations, those of a benchmark to the ones
    with `questions_of`.
    """
    expanded = dict(values)
    benchmarks = _mappings(values, "benchmarks")
    dependent = {
        name: _with_owner(name, entry, benchmarks)
        for name, entry in benchmarks.items()
        if entry.get("questions_of") is not None
    }
    if dependent:
        expanded["benchmarks"] = values["benchmarks"] | dependent
    training = values.get("training")
    if isinstance(training, Mapping):
        shared = {key: value for key, value in training.items() if key not in TRAINING_KINDS}
        expanded["training"] = {
            kind: _overlay(shared, training.get(kind) or {}) for kind in TRAINING_KINDS
        }
        for name, entry in _mappings(values, "models").items():
            if isinstance(preparation := entry.get("preparation"), Mapping):
                own = _overlay(shared, preparation.get("training") or {})
                entry["preparation"] = {**preparation, "training": own}
                expanded["models"] = expanded["models"] | {name: entry}
    return expanded


def _with_owner(name: str, entry: Values, benchmarks: Mapping[str, Values]) -> Values:
    owner = entry["questions_of"]
    if extra := [key for key in entry if key not in DEPENDENT_KEYS]:
        raise ConfigError(
            f"benchmarks.{name}.{extra[0]}",
            "cannot be set, because the benchmark has "
            f"questions_of: {owner}; set it in benchmarks.{owner}",
        )
    owners = [key for key, each in benchmarks.items() if each.get("questions_of") is None]
    if owner not in owners:
        raise ConfigError(
            f"benchmarks.{name}.questions_of",
            f"is {owner!r}; it must name a benchmark of "
            f"this run that has questions of its own ({', '.join(owners) or 'there are none'})",
        )
    return {k: v for k, v in benchmarks[owner].items() if k not in DEPENDENT_KEYS} | entry


def _written_path(path: KeyPath, written: Values) -> KeyPath:
    """Where the value of an expanded path was written, e.g. in `training`, for both kinds."""
    if _has(written, path):
        return path
    match path:
        case ("training", "clean" | "contaminated", *rest):
            return ("training", *rest)
        case ("models", _, "preparation", "training", *rest):
            return ("training", *rest)
        case ("benchmarks", name, *rest):
            owner = written["benchmarks"][name].get("questions_of")
            return ("benchmarks", owner or name, *rest)
    return path


def _source(path: KeyPath, sources: dict[str, Values]) -> str:
    """The last file that has a key, or else the section that lacks it.

    A benchmark's keys may be in a file of its own.
    """
    is_in_benchmark = path[0] == "benchmarks" and len(path) > 2
    if is_in_benchmark and not any(_has(values, path) for values in sources.values()):
        for values in reversed(sources.values()):
            if _has(values, (*path[:2], "file")):
                return str(values["benchmarks"][path[1]]["file"])
    for length in range(len(path), 0, -1):
        for name, values in reversed(sources.items()):
            if _has(values, path[:length]):
                return name
    return COMMAND_LINE


def _has(values: Any, path: KeyPath) -> bool:
    for key in path:
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True
