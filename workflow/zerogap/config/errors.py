"""Mistakes in the configuration as one line: the key, what is wrong, what is allowed."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from zerogap.errors import InputError

KeyPath = tuple[str | int, ...]

MAX_VALUE_LENGTH = 80  # characters
NAME = r"^[A-Za-z0-9_]{1,64}$"  # of a run or an entry
NAME_RULE = "may only have letters, digits and underscores, 64 at most"


class ConfigError(InputError):
    """A mistake in the configuration, in one line.

    Args:
        path: the keys that lead to it, as a tuple or joined by dots.
        problem: what is wrong with it and how to fix it; it continues the sentence that the key
            begins, or starts with a colon.
        source: the file with the mistake, or "config" where files are joined.
    """

    def __init__(self, path: KeyPath | str, problem: str, source: str = "config") -> None:
        self.path = tuple(path.split(".")) if isinstance(path, str) else path
        self.problem = problem
        separator = "" if problem.startswith(":") else " "
        super().__init__(f"{source}: {'.'.join(map(str, self.path))}{separator}{problem}")


def mistake(key: str, problem: str) -> PydanticCustomError:
    """What a validator raises: a mistake at a key of its section; "" for the section itself."""
    return PydanticCustomError("mistake", "{problem}", {"key": key, "problem": problem})


def explain(
    error: ValidationError, values: Mapping[str, Any], source: str = "config"
) -> ConfigError:
    """The most deeply nested mistake in `values`, as an error of one line.

    Less nested ones may be those of a union's other members, which do not fit at all.
    """
    errors = error.errors()
    paths = [_path(each, values) for each in errors]
    deepest = max(paths, key=len)
    same_key = [each for each, path in zip(errors, paths, strict=True) if path == deepest]
    return ConfigError(deepest, _problem(same_key, str(deepest[-1])), source)


def _path(error: ErrorDetails, values: Mapping[str, Any]) -> KeyPath:
    """The keys of the input that lead to an error; pydantic adds the names of union members."""
    path: list[str | int] = []
    value: Any = values
    for key in error["loc"]:
        if isinstance(value, Mapping) and key != "[key]":
            value = value.get(key)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            if isinstance(key, str):
                continue
            value = value[key]
        else:
            break
        path.append(key)
    if error["type"] == "mistake" and (key := error["ctx"]["key"]):
        path += key.split(".")
    return tuple(path)


def _problem(errors: Sequence[ErrorDetails], key: str) -> str:
    """What is wrong with a key, in words."""
    first = errors[0]
    if first["type"] == "mistake":
        return first["msg"]
    if first["type"] == "value_error":  # an InputError, which may begin with the key
        return str(first["ctx"]["error"]).removeprefix(key)
    if first["type"] == "too_short":
        return "must have at least one entry"
    if first["loc"][-1] == "[key]":
        return f": the name {NAME_RULE}"
    requirements = list(dict.fromkeys(map(_requirement, errors)))
    value = repr(first["input"])
    value = value if len(value) <= MAX_VALUE_LENGTH else f"{value[:MAX_VALUE_LENGTH]}…"
    return f"must {' or '.join(requirements)} (got {value})"


def _requirement(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "greater_than_equal" and context["ge"] == 1:
        return "be a positive integer"
    if error["type"] in ("model_type", "model_attributes_type"):
        return "be a mapping"
    if error["type"] == "string_pattern_mismatch":
        pattern = context["pattern"]
        return {r"\.jsonl$": "be a .jsonl file", NAME: f"be a name, which {NAME_RULE}"}.get(
            pattern, f"match {pattern}"
        )
    if error["type"] == "float_type" and re.fullmatch(r"[0-9]+e-?[0-9]+", str(error["input"])):
        return "be a number with a point, as 2.0e-4: YAML reads 2e-4 as a text"
    # A list in YAML is a tuple in a frozen section.
    return re.sub(r"^\w+ should ", "", error["msg"]).replace("valid tuple", "valid list")
