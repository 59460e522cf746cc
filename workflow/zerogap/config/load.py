"""From YAML files, or from Snakemake's dictionary, to a checked :class:`Config`."""

import copy
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from zerogap.config.benchmark import Benchmark
from zerogap.config.checks import check, check_prompt
from zerogap.config.config import Config
from zerogap.config.errors import ConfigError
from zerogap.config.explain import ABSENT, explain, value_at
from zerogap.config.section import Name, Section
from zerogap.errors import InputError

ROOT = Path(__file__).parents[3]

# All that a benchmark with `questions_of` may say; the rest is its owner's.
DEPENDENT_KEYS = ("label", "contamination", "questions_of", "paraphrases")

Values = dict[str, Any]


class _BenchmarkFile(Section):
    """A configuration that has one benchmark and nothing else."""

    benchmarks: Mapping[Name, Benchmark]


def project_file(path: str) -> Path | None:
    """A file of the project: in the checkout of this package, or in the working directory."""
    return next((home / path for home in (ROOT, Path()) if (home / path).is_file()), None)


def paper_config() -> Path:
    """The paper's configuration.

    Raises:
        InputError: the package is installed without a checkout, and this is not one.
    """
    path = project_file("config.yaml")
    if path is None:
        raise InputError(
            "config.yaml is part of a checkout of the project, and this is an installed package; "
            "run the command in a checkout, or give a configuration with --config"
        )
    return path


def load(paths: Sequence[str | Path]) -> Config:
    """Read a configuration and its overlays.

    Args:
        paths: the base file first; every further file overlays those before it.

    Raises:
        InputError: a file cannot be read or is not a YAML mapping, or the whole is not valid.
    """
    files = {str(path): read_mapping(Path(path)) for path in paths}
    return _build(_without_stale_note(_joined(files), files), files)


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
        benchmark = _BenchmarkFile.model_validate(written).benchmarks["file"]
        check_prompt("prompt", benchmark)
    except ValidationError as error:
        mistake = explain(error, written, written)
        key = mistake.key.removeprefix("benchmarks.file.")
        raise ConfigError(key, mistake.problem, str(path)) from error
    except ConfigError as error:
        raise ConfigError(error.key, error.problem, str(path)) from error
    return benchmark


def from_snakemake(config: Mapping[str, Any], files: Sequence[str | Path]) -> Config:
    """Check the configuration that Snakemake has put together.

    Args:
        config: Snakemake's `config`, overlays and `--config` included.
        files: `workflow.configfiles`: the overlays, then the Snakefile's own configuration.

    Raises:
        InputError: a file has a duplicate key, or the whole is not valid.
    """
    for path in files:
        check_duplicate_keys(Path(path))
    values = copy.deepcopy(dict(config))
    contents: dict[str, Values] = {}
    if files:
        base = read_mapping(Path(files[-1]))
        contents = {str(files[-1]): base}
        contents |= {str(path): _read_or_skip(path) for path in files[:-1]}
        values = _typed(values, _joined(contents))
        restore_order(values, base)
        values = _without_stale_note(values, contents)
    return _build(values, contents)


def _joined(files: Mapping[str, Values]) -> Values:
    """What a base file and its overlays, in this order, say together."""
    joined: Values = functools.reduce(_overlay, files.values(), {})
    return joined


def _without_stale_note(values: Values, files: Mapping[str, Values]) -> Values:
    """The values without a `scale_note` on models that a later file replaces.

    Args:
        values: all files and the command line together; a note of the command line is kept.
        files: the base file first.
    """
    note, is_stale = "", False
    for file in files.values():
        if "scale_note" in file:
            note, is_stale = file["scale_note"], False
        elif _states_a_base(file):
            is_stale = True
    if is_stale and values.get("scale_note") == note:
        return {**values, "scale_note": ""}
    return values


def _states_a_base(values: Values) -> bool:
    models = values.get("models")
    return isinstance(models, Mapping) and any(
        isinstance(entry, Mapping) and "base" in entry for entry in models.values()
    )


def _typed(values: Any, written: Any) -> Any:
    """The values with numbers, booleans and None where Snakemake left texts.

    It reads everything inside the mappings of `--config` as texts. Texts that a file has are kept.

    Args:
        values: files and command line together.
        written: the same entry in the files; None if they do not have it.
    """
    if isinstance(values, dict):
        entries = written if isinstance(written, Mapping) else {}
        return {key: _typed(value, entries.get(key)) for key, value in values.items()}
    if values == written:
        return values
    if isinstance(values, list):
        return [_typed(value, None) for value in values]
    return _scalar(values) if isinstance(values, str) else values


def _scalar(text: str) -> Any:
    """What a text is in YAML if it is a number, a boolean or null; else the text."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if text and (value is None or isinstance(value, int | float)) else text


def restore_order(values: Values, base: Mapping[str, Any]) -> None:
    """Put keys, in place, into the order of the base file; keys that only overlays have follow.

    Snakemake puts an overlay's keys first. The order of models, benchmarks and strategies is that
    of the tables, and must not depend on which of them an overlay names.
    """
    for key in [*(k for k in base if k in values), *(k for k in values if k not in base)]:
        values[key] = values.pop(key)
        if isinstance(values[key], dict) and isinstance(base.get(key), Mapping):
            restore_order(values[key], base[key])


def check_duplicate_keys(path: Path) -> None:
    """Check that a YAML file has no duplicate key; YAML itself silently keeps the last.

    Raises:
        InputError: names the file, the line and the key.
    """
    try:
        tree = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return  # Snakemake has read it: this is JSON that is indented by tabs
    for parent, key in _duplicate_keys(tree, ""):
        raise InputError(
            f"{path}, line {key.start_mark.line + 1}: duplicate key {parent}{key.value}; "
            "rename or remove one of the two"
        )


def _duplicate_keys(node: yaml.Node | None, parent: str) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield parent, key
            seen.add(key.value)
            yield from _duplicate_keys(value, f"{parent}{key.value}.")


def read_mapping(path: Path) -> Values:
    """Read a YAML file that is a mapping.

    Raises:
        InputError: it cannot be read, is not a mapping, or has a duplicate key.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: does not exist or is not readable") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not valid YAML ({' '.join(str(error).split())})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: must be a mapping of keys to values")
    check_duplicate_keys(path)
    return values


def _read_or_skip(path: str | Path) -> Values:
    """A file that Snakemake has read; empty for JSON indented by tabs, which is not YAML."""
    try:
        return read_mapping(Path(path))
    except InputError:
        return {}


def _overlay(base: Any, overlay: Any) -> Any:
    """Join two mappings key by key; anything else is replaced."""
    if not isinstance(overlay, Mapping):
        return overlay
    base = base if isinstance(base, Mapping) else {}
    return {**base, **{key: _overlay(base.get(key), value) for key, value in overlay.items()}}


def _build(values: Values, files: Mapping[str, Values]) -> Config:
    """The checked configuration; a mistake is reported with the file that it is in.

    Args:
        values: all files and the command line together.
        files: the base file first.
    """
    try:
        return _checked(values)
    except ConfigError as error:
        source = _source(error.key, values, files)
        raise ConfigError(error.key, error.problem, source) from error


def _source(key: str, values: Values, files: Mapping[str, Values]) -> str:
    """The last file that has a key; "config" for what the command line has set.

    If no file has it, the section that lacks it counts.
    """
    path = tuple(int(part) if part.isdecimal() else part for part in key.split("."))
    joined = _joined(files)
    while value_at(joined, path) is ABSENT:
        path = path[:-1]
    if not path or value_at(values, path) != value_at(joined, path):
        return "config"
    *_, last = (name for name, file in files.items() if value_at(file, path) is not ABSENT)
    return last


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
        raise explain(error, expanded, values) from error
    check(config)
    return config


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

    The result has the shape of :class:`Config`: the values of `training` and `pretraining` are
    copied to where they apply, and a benchmark with `questions_of` gets its owner's values.
    """
    expanded = dict(values)
    benchmarks = values.get("benchmarks")
    if isinstance(benchmarks, Mapping):
        expanded["benchmarks"] = {
            name: _with_owner(name, entry, benchmarks) for name, entry in benchmarks.items()
        }
    training, pretraining = values.get("training"), expanded.pop("pretraining", None)
    shared: Values = {}
    if isinstance(training, Mapping):
        shared = {k: v for k, v in training.items() if k not in ("clean", "contaminated")}
        expanded["training"] = {
            kind: _overlay(shared, training.get(kind) or {}) for kind in ("clean", "contaminated")
        }
    if isinstance(models := values.get("models"), Mapping):
        expanded["models"] = {
            name: _with_shared(entry, shared, pretraining) if isinstance(entry, Mapping) else entry
            for name, entry in models.items()
        }
    return expanded


def _with_shared(entry: Mapping[str, Any], training: Values, pretraining: Any) -> Values:
    """A model with the shared values of `pretraining`, and of `training` for its preparation."""
    complete = dict(entry)
    if pretraining is not None:
        complete["pretraining"] = _overlay(pretraining, entry.get("pretraining", {}))
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
