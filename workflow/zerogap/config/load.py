"""From YAML files and values of the command line to a checked :class:`Config`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from zerogap.config.benchmark import Benchmark
from zerogap.config.checks import check
from zerogap.config.config import Config
from zerogap.config.errors import ConfigError, KeyPath, explain
from zerogap.config.files import ROOT, Values, read_mapping
from zerogap.config.section import Name, Section
from zerogap.errors import InputError

COMMAND_LINE = "config"  # in the place of a file, for what the command line has set
# All that a benchmark with `questions_of` may say; the rest is its owner's.
DEPENDENT_KEYS = ("label", "contamination", "questions_of", "paraphrases")
# Keys that only files have, by section and depth.
FILE_KEYS = {("training", 2): ", clean, contaminated", ("benchmarks", 3): ", file"}


class _BenchmarkFile(Section):
    """A configuration that has one benchmark and nothing else."""

    benchmarks: Mapping[Name, Benchmark]


def load(paths: Sequence[str | Path], command_line: Mapping[str, Any] | None = None) -> Config:
    """Read a configuration and its overlays.

    Args:
        paths: the base file first; every further file overlays those before it.
        command_line: the values of Snakemake's `--config`, which overlay all files.

    Raises:
        InputError: a file cannot be read or is not a YAML mapping, or the whole is not valid.
    """
    sources = {str(path): read_mapping(Path(path)) for path in paths}
    sources[COMMAND_LINE] = _typed(dict(command_line or {}))
    values: Values = {}
    for source in sources.values():
        if _states_a_base(source) and "scale_note" in values:
            values = {**values, "scale_note": ""}  # it was about other models
        values = _overlay(values, source)
    try:
        return _checked(values)
    except ConfigError as error:
        place = _source(error.path, sources)
        raise ConfigError(error.path, error.problem, place) from error


def from_snakemake(files: Sequence[str | Path], command_line: Mapping[str, Any]) -> Config:
    """Read the configuration that Snakemake has put together.

    Args:
        files: `workflow.configfiles`: the overlays, then the Snakefile's own configuration.
        command_line: `workflow.config_settings.config`.

    Raises:
        InputError: see :func:`load`.
    """
    return load([files[-1], *files[:-1]], command_line)


def load_benchmark(path: Path) -> Benchmark:
    """Read one benchmark's file on its own, without a configuration around it.

    Raises:
        InputError: the file cannot be read, is not valid, or names the questions of another
            benchmark.
    """
    values = read_mapping(path)
    if owner := values.get("questions_of"):
        raise InputError(
            f"{path}: has the questions and prompts of '{owner}'; use that benchmark instead"
        )
    written = {"benchmarks": {"file": values}}
    try:
        return _BenchmarkFile.model_validate(written).benchmarks["file"]
    except ValidationError as error:
        mistake = explain(error, written)
        raise ConfigError(mistake.path[2:], mistake.problem, str(path)) from error


def _overlay(base: Any, overlay: Any) -> Any:
    """Join two mappings key by key; anything else is replaced."""
    if not isinstance(overlay, Mapping):
        return overlay
    base = base if isinstance(base, Mapping) else {}
    return {**base, **{key: _overlay(base.get(key), value) for key, value in overlay.items()}}


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


def _states_a_base(values: Values) -> bool:
    models = values.get("models")
    return isinstance(models, Mapping) and any(
        isinstance(entry, Mapping) and "base" in entry for entry in models.values()
    )


def _source(path: KeyPath, sources: dict[str, Values]) -> str:
    """The last file that has a key, or else the section that lacks it."""
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


def _checked(written: Values) -> Config:
    values = dict(written)
    for section in ("models", "benchmarks", "strategies", "ablation"):
        if isinstance(values.get(section), Mapping):
            values[section] = {k: v for k, v in values[section].items() if v is not None}
    if isinstance(values.get("benchmarks"), Mapping):
        values["benchmarks"] = _with_files(values["benchmarks"])
    expanded = _expand(values)
    try:
        config = Config.model_validate(expanded)
    except ValidationError as error:
        mistake = explain(error, expanded)
        path, problem = _written_path(mistake.path, values), mistake.problem
        if problem.startswith(": unknown key"):
            problem += FILE_KEYS.get((str(path[0]), len(path)), "")
        raise ConfigError(path, problem) from error
    check(config)
    return config


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


def _with_files(benchmarks: Mapping[str, Any]) -> Values:
    """Each benchmark's file, overlaid by the entry's other keys."""
    complete: Values = {}
    for name, entry in benchmarks.items():
        if isinstance(entry, Mapping) and "file" in entry:
            own = {key: value for key, value in entry.items() if key != "file"}
            entry = _overlay(read_mapping(_benchmark_file(name, entry["file"])), own)
        complete[name] = entry
    return complete


def _benchmark_file(name: str, file: Any) -> Path:
    """The path of a benchmark's file: relative to the working directory, or to the project."""
    if isinstance(file, str):
        for folder in (Path(), ROOT):
            if (folder / file).is_file():
                return folder / file
    raise ConfigError(
        f"benchmarks.{name}.file",
        f"is {file!r}, which does not exist or is not readable; "
        "give the path of a benchmark's YAML file",
    )


def _expand(values: Values) -> Values:
    """Fill in what sections share.

    The result has the shape of :class:`Config`: the values of `training` are copied to
    where they apply, and a benchmark with `questions_of` gets its owner's values.
    """
    expanded = dict(values)
    if isinstance(benchmarks := values.get("benchmarks"), Mapping):
        expanded["benchmarks"] = {
            name: _with_owner(name, entry, benchmarks) for name, entry in benchmarks.items()
        }
    shared: Values = {}
    if isinstance(training := values.get("training"), Mapping):
        shared = {k: v for k, v in training.items() if k not in ("clean", "contaminated")}
        expanded["training"] = {
            kind: _overlay(shared, training.get(kind) or {}) for kind in ("clean", "contaminated")
        }
    if isinstance(models := values.get("models"), Mapping):
        expanded["models"] = {
            name: _with_shared(entry, shared) if isinstance(entry, Mapping) else entry
            for name, entry in models.items()
        }
    return expanded


def _with_shared(entry: Mapping[str, Any], training: Values) -> Values:
    """A model with the shared values of `training` for its preparation."""
    complete = dict(entry)
    if isinstance(preparation := entry.get("preparation"), Mapping):
        own = preparation.get("training") or {}
        complete["preparation"] = {**preparation, "training": _overlay(training, own)}
    return complete


def _with_owner(name: str, entry: Any, benchmarks: Mapping[str, Any]) -> Any:
    owner = entry.get("questions_of") if isinstance(entry, Mapping) else None
    if owner is None:
        return entry
    if extra := [key for key in entry if key not in DEPENDENT_KEYS]:
        raise ConfigError(
            f"benchmarks.{name}.{extra[0]}",
            "cannot be set, because the benchmark has "
            f"questions_of: {owner}; set it in benchmarks.{owner}",
        )
    shared = benchmarks.get(owner) if isinstance(owner, str) else None
    if not isinstance(shared, Mapping) or shared.get("questions_of") is not None:
        owners = [
            key
            for key, value in benchmarks.items()
            if isinstance(value, Mapping) and value.get("questions_of") is None
        ]
        raise ConfigError(
            f"benchmarks.{name}.questions_of",
            f"is {owner!r}; it must name a benchmark of "
            f"this run that has questions of its own ({', '.join(owners) or 'there are none'})",
        )
    return {k: v for k, v in shared.items() if k not in DEPENDENT_KEYS} | dict(entry)
