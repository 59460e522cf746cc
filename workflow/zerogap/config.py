"""The configuration: checked against its schema and for what a schema cannot say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from zerogap.data import extraction
from zerogap.errors import InputError

SCHEMA = Path(__file__).parents[1] / "schemas" / "config.schema.yaml"


def drop_null_entries(config: dict[str, Any]) -> None:
    """Leave out, in place, the models, domains and strategies that an overlay set to null."""
    for part in ("models", "domains", "strategies", "ablation"):
        if isinstance(config.get(part), dict):
            config[part] = {
                name: entry for name, entry in config[part].items() if entry is not None
            }


def validate(config: dict[str, Any]) -> None:
    """Check a whole configuration.

    Raises:
        InputError: names the key and what is allowed there.
    """
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


def stage(config: dict[str, Any], domain: str) -> dict[str, Any]:
    """The training values of one model: those of all with what differs for its kind.

    Args:
        domain: "clean" or a contamination domain.
    """
    kind = "clean" if domain == "clean" else "contaminated"
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


def _explain(error: jsonschema.ValidationError) -> str:
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
            if path is None or not Path(path).is_file():
                raise InputError(
                    f"config: data.files.{split} is {path!r}, which is no file; give the path of "
                    "a JSON Lines file in OpenAI's GSM8K format"
                )
    extraction.rule(data["extraction"])
    instructions = data["instructions"]
    if instructions["source"] == "files":
        path = instructions.get("files")
        if path is None or not Path(path).is_file():
            raise InputError(f"config: data.instructions.files is {path!r}, which is no file")


def _check_strategies(config: dict[str, Any]) -> None:
    strategies = config["strategies"]
    twice = sorted(set(strategies) & set(config["ablation"]))
    if twice:
        raise InputError(f"config: ablation.{twice[0]} has the name of a strategy; rename it")
    for name, entry in (strategies | config["ablation"]).items():
        if name in ("all_zero", "clean_batch2"):
            raise InputError(f"config: strategies.{name}: this name is taken; rename it")
        source = entry.get("filters")
        if source is not None and (source not in strategies or "filters" in strategies[source]):
            raise InputError(
                f"config: strategies.{name}.filters is '{source}'; it must name a strategy that "
                "is sampled"
            )


def _check_setting(config: dict[str, Any]) -> None:
    for key, among in (("model", "models"), ("domain", "domains")):
        name = config["setting"][key]
        if name not in config[among]:
            raise InputError(
                f"config: setting.{key} is '{name}'; {among} has {', '.join(config[among])}"
            )


def _check_training(config: dict[str, Any]) -> None:
    for domain in ("clean", "contaminated"):
        values = stage(config, domain)
        accumulation_steps(values)
        if values["group_by_length"] and isinstance(values["checkpoints"], int):
            raise InputError(
                f"config: training.checkpoints is {values['checkpoints']}; group_by_length draws "
                "an epoch's order at its beginning, so make it epoch or null"
            )


def _check_pretraining(config: dict[str, Any]) -> None:
    for name, entry in config["models"].items():
        if entry["base"] != "pretrained" and "pretraining" not in config:
            continue
        path = pretraining(config, name).get("gsm8k")
        if path is not None and not Path(path).is_file():
            raise InputError(
                f"config: pretraining.gsm8k is {path!r}, which is no file; give the path of a JSON "
                "Lines file in OpenAI's GSM8K format, or null"
            )
