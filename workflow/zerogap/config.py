"""The configuration: checked against its schema and for what a schema cannot say."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from zerogap.data import extraction
from zerogap.errors import InputError
from zerogap.pipeline.jobs import PRETRAINED
from zerogap.strategies.base import CLASSES

if TYPE_CHECKING:
    import jsonschema

SCHEMA = Path(__file__).parents[1] / "schemas" / "config.schema.yaml"


def load(paths: Sequence[str | Path]) -> dict[str, Any]:
    """A configuration and its overlays, put together as Snakemake does it, and checked.

    Raises:
        InputError: a file is missing or no YAML mapping, or the whole is not valid.
    """
    config: dict[str, Any] = {}
    for path in paths:
        try:
            overlay = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; give a configuration") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: no YAML ({' '.join(str(error).split())})") from error
        if not isinstance(overlay, dict):
            raise InputError(f"{path}: not a mapping of keys to values; give a configuration")
        config = _overlaid(config, overlay)
    settle(config, paths)
    return config


def settle(config: dict[str, Any], files: Sequence[str | Path]) -> None:
    """What a configuration needs, in place, once its files are put together; then check it.

    Raises:
        InputError: a file names a key twice, or the whole is not valid.
    """
    for path in files:
        check_keys(path)
    drop_null_entries(config)
    validate(config)


def _overlaid(below: Any, above: Any) -> Any:
    """`above` on `below`: mappings are joined key by key, everything else is replaced."""
    if not isinstance(above, Mapping):
        return above
    base = below if isinstance(below, Mapping) else {}
    return {**base, **{key: _overlaid(base.get(key), value) for key, value in above.items()}}


def check_keys(path: str | Path) -> None:
    """Check that a file of the configuration names no key twice: YAML keeps the last in silence.

    Raises:
        InputError: names the file, the line and the key.
    """
    path = Path(path)
    try:
        tree = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return  # Snakemake has read it, and this is JSON indented by tabs
    for place, key in _keys_again(tree, ""):
        raise InputError(
            f"{path}, line {key.start_mark.line + 1}: {place}{key.value} stands there twice; "
            "rename or remove one of the two"
        )


def _keys_again(node: yaml.Node | None, place: str) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield place, key
            seen.add(key.value)
            yield from _keys_again(value, f"{place}{key.value}.")


def drop_null_entries(config: dict[str, Any]) -> None:
    """Leave out, in place, the models, benchmarks and strategies that an overlay set to null."""
    for part in ("models", "benchmarks", "strategies", "ablation"):
        if isinstance(config.get(part), dict):
            config[part] = {
                name: entry for name, entry in config[part].items() if entry is not None
            }


def restore_order(config: dict[str, Any], first: Mapping[str, Any]) -> None:
    """Put the keys, in place, into the order of the file below the overlays; further ones follow.

    Snakemake lets an overlay's keys stand first. The order is that of the tables, and a part of
    what a job is known by: to state a key again, unchanged, must not cost a sample.
    """
    for key in [*(k for k in first if k in config), *(k for k in config if k not in first)]:
        config[key] = config.pop(key)
        if isinstance(config[key], dict) and isinstance(first.get(key), Mapping):
            restore_order(config[key], first[key])


def validate(config: dict[str, Any]) -> None:
    """Check a whole configuration.

    Raises:
        InputError: names the key and what is allowed there.
    """
    import jsonschema  # where Snakemake is; the stages' environments do without

    schema = yaml.safe_load(SCHEMA.read_text())
    validator = jsonschema.Draft202012Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(config))
    if error is not None:
        place = ".".join(map(str, error.absolute_path)) or "(top level)"
        raise InputError(f"config: {place}: {_explain(error)}")
    _check_data(config["data"])
    _check_strategies(config)
    _check_setting(config)
    _check_training(config)
    _check_pretraining(config)


def doubts(config: dict[str, Any]) -> list[str]:
    """What is allowed and yet seldom meant, each with its reason."""
    bins, samples = config["metrics"]["bins"], config["decoding"]["samples"]
    if bins <= samples:
        return []
    return [
        f"config: metrics.bins is {bins}, more than decoding.samples ({samples}): a solve "
        f"probability has only {samples + 1} values, so no stratum holds two of them, most of "
        "the further strata are empty, and SA-PPG counts every value alike instead of evening out "
        f"neighbours. Set metrics.bins to {samples} or less, or draw more samples"
    ]


def stage(config: dict[str, Any], benchmark: str) -> dict[str, Any]:
    """The training values of one model: those of all with what differs for its kind.

    Args:
        benchmark: "clean" or a contamination benchmark.
    """
    kind = "clean" if benchmark == "clean" else "contaminated"
    common = {k: v for k, v in config["training"].items() if k not in ("clean", "contaminated")}
    special = dict(config["training"].get(kind, {}))
    lora = common["lora"] | special.pop("lora", {})
    return common | special | {"lora": lora}


def accumulation_steps(training: Mapping[str, Any]) -> int:
    """Gradient accumulation that makes the global batch: per device × accumulation × devices.

    Raises:
        InputError: the global batch is no multiple of what the devices take at once.
    """
    at_once = training["per_device_batch_size"] * training["gpus"]
    steps, rest = divmod(training["global_batch_size"], at_once)
    if rest:
        raise InputError(
            f"config: training.global_batch_size is {training['global_batch_size']}, no multiple "
            f"of per_device_batch_size × gpus = {at_once}"
        )
    return steps


def pretraining(config: dict[str, Any], model: str) -> dict[str, Any]:
    """The values by which a model's base is made from scratch.

    Raises:
        InputError: the configuration has none.
    """
    if "pretraining" not in config:
        raise InputError(
            f"config: pretraining is missing, and the base of models.{model} is to be made by it; "
            "give its sizes and steps (profiles/quick/embedded.yaml has an example)"
        )
    special = config["models"][model].get("pretraining", {})
    return config["pretraining"] | special | {"seed": config["seed"]}


def _explain(error: "jsonschema.ValidationError") -> str:
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(error.instance) - set(allowed))
        return f"unknown key {', '.join(unknown)}; the keys here are {', '.join(allowed)}"
    description = error.schema.get("description")
    return error.message + (f" ({description})" if description else "")


def _check_data(data: dict[str, Any]) -> None:
    if data["n_leaked"] >= data["n_test"]:
        raise InputError(
            f"config: data.n_leaked is {data['n_leaked']}; it must be below data.n_test "
            f"({data['n_test']}), so that unleaked questions remain"
        )
    if data["source"] == "generated" and data["generated"]["n_test"] < data["n_test"]:
        raise InputError(
            f"config: data.generated.n_test is {data['generated']['n_test']}, fewer than the "
            f"{data['n_test']} of data.n_test"
        )
    if data["source"] == "files":
        for split in ("train", "test"):
            path = data["files"].get(split)
            if not _readable(path):
                raise InputError(
                    f"config: data.files.{split} is {path!r}, which is no readable file; give "
                    "the path of a JSON Lines file in OpenAI's GSM8K format"
                )
    paraphrases = data["paraphrases"]
    if paraphrases["method"] == "local" and not paraphrases["local"]["model"]:
        raise InputError(
            "config: data.paraphrases.local.model is not set; name a folder or a model on the hub "
            "with a chat template"
        )
    extraction.rule(data["extraction"])
    instructions = data["instructions"]
    if instructions["source"] == "files":
        path = instructions.get("files")
        if not _readable(path):
            raise InputError(
                f"config: data.instructions.files is {path!r}, which is no readable file"
            )


def _readable(path: str | None) -> bool:
    return path is not None and Path(path).is_file() and os.access(path, os.R_OK)


def _check_strategies(config: dict[str, Any]) -> None:
    strategies = config["strategies"]
    twice = sorted(set(strategies) & set(config["ablation"]))
    if twice:
        raise InputError(f"config: ablation.{twice[0]} has the name of a strategy; rename it")
    for name, entry in (strategies | config["ablation"]).items():
        if name in ("all_zero", "clean_batch2"):
            raise InputError(f"config: strategies.{name}: this name is taken; rename it")
        _check_class(name, entry)
        source = entry.get("filters")
        if source is not None and (source not in strategies or "filters" in strategies[source]):
            raise InputError(
                f"config: strategies.{name}.filters is '{source}'; it must name a strategy that "
                "is sampled"
            )


# What a class of ours cannot do without.
NEEDED = {"ted": "filters", "shortcut": "borrows"}


def _check_class(name: str, entry: dict[str, Any]) -> None:
    kind = entry["class"]
    if kind not in CLASSES:
        if ":" not in kind:
            raise InputError(
                f"config: strategies.{name}.class is '{kind}'; it must be one of "
                f"{', '.join(CLASSES)}, or package.module:factory"
            )
        return
    for key in ("filters", "borrows"):
        needed = NEEDED.get(kind) == key
        if needed != bool(entry.get(key)):
            raise InputError(
                f"config: strategies.{name}: class '{kind}' "
                + (f"needs the key {key}" if needed else f"takes no key {key}; remove it")
            )


def _check_setting(config: dict[str, Any]) -> None:
    for key, among in (("model", "models"), ("benchmark", "benchmarks")):
        name = config["setting"][key]
        if name not in config[among]:
            raise InputError(
                f"config: setting.{key} is '{name}', which is not among {among} or left out there; "
                f"name one of {', '.join(config[among])}"
            )


def _check_training(config: dict[str, Any]) -> None:
    for benchmark in ("clean", "contaminated"):
        values = stage(config, benchmark)
        accumulation_steps(values)
        if values["group_by_length"] and isinstance(values["checkpoints"], int):
            raise InputError(
                f"config: training.checkpoints is {values['checkpoints']}; group_by_length draws "
                "an epoch's order at its beginning, so make it epoch or null"
            )


def _check_pretraining(config: dict[str, Any]) -> None:
    for name, entry in config["models"].items():
        if entry["base"] != PRETRAINED and "pretraining" not in config:
            continue
        path = pretraining(config, name).get("gsm8k")
        if path is not None and not Path(path).is_file():
            raise InputError(
                f"config: pretraining.gsm8k is {path!r}, which is no file; give the path of a JSON "
                "Lines file in OpenAI's GSM8K format, or null"
            )
