"""The base of every section of the configuration, and the types that sections share."""

import json
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from zerogap.config.errors import NAME, mistake


class Section(BaseModel):
    """A part of the configuration: frozen, no unknown keys, no type conversions, finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: Any) -> Any:
        """Report an unknown key with those that exist, then a missing one with its meaning."""
        if isinstance(values, Mapping):
            fields = {field.alias or name: field for name, field in cls.model_fields.items()}
            for key in values:
                if key not in fields:
                    keys = ", ".join(sorted(fields))
                    raise mistake(str(key), f": unknown key; the keys here are {keys}")
            for key, field in fields.items():
                if field.is_required() and key not in values:
                    raise mistake(key, f"is missing: {field.description}")
        return values

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        """A choice such as `source: hub` needs the section of its name, if there is one."""
        for key in ("source", "method"):
            choice = getattr(self, key, None)
            if choice in type(self).model_fields and getattr(self, choice) is None:
                raise mistake(choice, f"is missing; {key}: {choice} needs it")
        return self


def _printable(text: str) -> str:
    """A text of one line: no line breaks, control characters or characters without a width."""
    hidden = next((character for character in text if not character.isprintable()), None)
    if hidden is not None:
        raise mistake("", f"has the character {hidden!a}; use printable ones and spaces")
    return text


def _without_edges(text: str) -> str:
    if text != text.strip():
        raise mistake("", f"is {text!r}; remove the space at its beginning or end")
    return text


def _url(text: str) -> str:
    try:
        url = urlsplit(text)
        is_url = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:  # a port or an address in brackets that is none
        is_url = False
    if not is_url or "@" in url.netloc or " " in text:
        raise mistake(
            "", f"is {text!r}; it must be http://HOST/PATH or https://HOST/PATH, without a password"
        )
    return text


def _json(values: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise mistake("", f"cannot be written as JSON ({error}); use finite numbers") from error
    return values


def _readable(path: str) -> str:
    if not (os.path.isfile(path) and os.access(path, os.R_OK)):
        raise mistake(
            "",
            f"is {path!r}, which does not exist or is not readable; give the path of a "
            "JSON Lines file",
        )
    # "data//train.jsonl" is the same file, and so is its absolute path.
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith(os.pardir) else relative


Name = Annotated[str, StringConstraints(pattern=NAME)]
Text = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_printable)]
Word = Annotated[Text, StringConstraints(pattern=r"^\S+$")]  # a path, a model on a hub, a revision
Line = Annotated[Text, StringConstraints(min_length=1), AfterValidator(_without_edges)]
Label = Annotated[Line, StringConstraints(max_length=80)]
Url = Annotated[Text, AfterValidator(_url)]
ReadableFile = Annotated[Line, AfterValidator(_readable)]
JsonValues = Annotated[Mapping[str, Any], AfterValidator(_json)]
Dtype = Literal["float32", "bfloat16", "float16"]
MAX_COUNT = 10**6  # beyond these no run ends, and a mistake is likely
MAX_FEW = 1000
MIN_FRACTION = 1e-6
MAX_BINS = 1000  # the correction of SA-PPG takes memory in proportion to the square
MAX_RESAMPLES = 100_000  # each has a weight per question in memory
MAX_SEED = 2**32 - 1  # numpy's and pandas' limit
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
PositiveInt = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Few = Annotated[int, Field(ge=1, le=MAX_FEW)]  # of what is done at once, or shown to a model
AtLeastTwo = Annotated[int, Field(ge=2, le=MAX_COUNT)]  # a leaked question and an unleaked one
PositiveFraction = Annotated[float, Field(ge=MIN_FRACTION, le=1)]
FractionBelowOne = Annotated[float, Field(ge=0, lt=1)]
