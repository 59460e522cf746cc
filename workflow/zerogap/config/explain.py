"""Validation errors as one line: the key, what is wrong, what is allowed."""

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from zerogap.config.config import Config
from zerogap.config.errors import ConfigError
from zerogap.config.section import Section

KeyPath = tuple[str | int, ...]

MAX_VALUE_LENGTH = 80  # characters
ABSENT = object()

# Keys of the files that the loader resolves, by the section (`*`: any name) that has them.
FILE_KEYS: dict[KeyPath, tuple[str, ...]] = {
    (): ("pretraining",),
    ("training",): ("clean", "contaminated"),
    ("benchmarks", "*"): ("file",),
}


def explain(
    error: ValidationError, expanded: Mapping[str, Any], written: Mapping[str, Any]
) -> ConfigError:
    """One mistake as an error of one line.

    Unknown keys come first, since a typo also makes a key missing. Then comes the most deeply
    nested mistake, since the members of a union that do not fit at all are reported too.

    Args:
        error: of the validation of `expanded`.
        expanded: what was validated.
        written: the configuration as it was written, before shared values were filled in.
    """
    errors = sorted(
        error.errors(),
        key=lambda e: (e["type"] != "extra_forbidden", -len(_input_path(e, expanded))),
    )
    path = _input_path(errors[0], expanded)
    same_key = [e for e in errors if _input_path(e, expanded) == path]
    key = ".".join(map(str, _written_path(path, written)))
    return ConfigError(key, _problem(same_key, path, written))


def _problem(errors: Sequence[ErrorDetails], path: KeyPath, written: Mapping[str, Any]) -> str:
    """What is wrong with a key, in words; `path` leads to its expanded value."""
    first = errors[0]
    if first["type"] == "extra_forbidden":
        return f": unknown key; the keys here are {', '.join(_allowed_keys(path, written))}"
    if first["type"] == "missing":
        section = section_at(path[:-1])
        field = section.model_fields.get(str(path[-1])) if section else None
        return "is missing" + (f": {field.description}" if field else "")
    if first["type"] == "too_short":
        return "must have at least one entry"
    if first["loc"][-1] == "[key]":
        return ": the name may only have letters, digits and underscores"
    requirements = list(dict.fromkeys(map(_requirement, errors)))
    value = repr(first["input"])
    value = value if len(value) <= MAX_VALUE_LENGTH else f"{value[:MAX_VALUE_LENGTH]}…"
    return f"must {' or '.join(requirements)} (got {value})"


def _requirement(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "greater_than_equal" and context["ge"] == 1:
        return "be a positive integer"
    if error["type"] == "model_type":
        return "be a mapping"
    if error["type"] == "string_pattern_mismatch" and context["pattern"] == r"\.jsonl$":
        return "be a .jsonl file"
    # A list in YAML is a tuple in a frozen section.
    return re.sub(r"^\w+ should ", "", error["msg"]).replace("valid tuple", "valid list")


def _input_path(error: ErrorDetails, expanded: Mapping[str, Any]) -> KeyPath:
    """The keys of the input that lead to an error; pydantic adds the names of union members."""
    path: list[str | int] = []
    value: Any = expanded
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
    return tuple(path)


def _written_path(path: KeyPath, written: Mapping[str, Any]) -> KeyPath:
    """Where the value of an expanded path was written, e.g. in `training`, for both kinds."""
    if value_at(written, path) is not ABSENT:
        return path
    match path:
        case ("training", "clean" | "contaminated", *rest):
            return ("training", *rest)
        case ("models", _, "pretraining", *rest):
            return ("pretraining", *rest)
        case ("models", _, "preparation", "training", *rest):
            return ("training", *rest)
        case ("benchmarks", name, *rest):
            owner = written["benchmarks"][name].get("questions_of")
            return ("benchmarks", owner or name, *rest)
    return path


def value_at(values: Any, path: KeyPath) -> Any:
    """The value that keys lead to; ABSENT if they lead nowhere."""
    for key in path:
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return values


def _allowed_keys(path: KeyPath, written: Mapping[str, Any]) -> list[str]:
    parent = _written_path(path, written)[:-1]
    wildcard = (parent[0], "*") if len(parent) == 2 else parent
    section = section_at(path[:-1])
    fields = section.model_fields.items() if section else ()
    return sorted([*(field.alias or name for name, field in fields), *FILE_KEYS.get(wildcard, ())])


def section_at(path: KeyPath) -> type[Section] | None:
    """The section to which an expanded path leads; None where it leads to a value."""
    section: Any = Config
    for key in path:
        if isinstance(section, type) and issubclass(section, Section):
            field = section.model_fields.get(str(key))
            annotation = field.annotation if field else None
        else:  # Mapping[Name, Entry], or tuple[Entry, ...]
            annotation = get_args(section)[0 if isinstance(key, int) else 1]
        section = _section_option(annotation)
        if section is None:
            return None
    return section if isinstance(section, type) and issubclass(section, Section) else None


def _section_option(annotation: Any) -> Any:
    """Of a union's members the one that may hold sections: it is the last one except for None."""
    if isinstance(annotation, UnionType) or get_origin(annotation) is Union:
        annotation = [kind for kind in get_args(annotation) if kind is not type(None)][-1]
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
