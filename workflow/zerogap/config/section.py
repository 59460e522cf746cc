"""The base of every section of the configuration, and the types that sections share."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from zerogap.config.errors import mistake


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


def _readable(path: str) -> str:
    if not (Path(path).is_file() and os.access(path, os.R_OK)):
        raise mistake(
            "",
            f"is {path!r}, which does not exist or is not readable; give the path of a "
            "JSON Lines file",
        )
    return path


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+$")]
Label = Annotated[str, StringConstraints(pattern=r"\S")]
ReadableFile = Annotated[str, AfterValidator(_readable)]
Dtype = Literal["float32", "bfloat16", "float16"]
MAX_COUNT = 10**9  # beyond this no run ends, and a mistake is likely
MAX_BINS = 1000  # the correction of SA-PPG takes memory in proportion to the square
MAX_RESAMPLES = 100_000  # each has a weight per question in memory
MAX_SEED = 2**32 - 1  # numpy's and pandas' limit
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
PositiveInt = Annotated[int, Field(ge=1, le=MAX_COUNT)]
AtLeastTwo = Annotated[int, Field(ge=2, le=MAX_COUNT)]  # a leaked question and an unleaked one
PositiveFloat = Annotated[float, Field(gt=0)]
PositiveFraction = Annotated[float, Field(gt=0, le=1)]
FractionBelowOne = Annotated[float, Field(ge=0, lt=1)]
