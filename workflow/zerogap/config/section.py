"""The base of every section of the configuration, and the types that sections share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Section(BaseModel):
    """A part of the configuration: frozen, no unknown keys, no type conversions, finite numbers."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, populate_by_name=True, allow_inf_nan=False
    )


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+$")]
Label = Annotated[str, StringConstraints(pattern=r"\S")]
Dtype = Literal["float32", "bfloat16", "float16"]
MAX_COUNT = 10**9  # beyond this no run ends, and a mistake is likely
MAX_BINS = 1000  # the correction of SA-PPG takes memory in proportion to the square
MAX_RESAMPLES = 100_000  # each has a weight per question in memory
MAX_SEED = 2**32 - 1  # numpy's and pandas' limit
PositiveInt = Annotated[int, Field(ge=1, le=MAX_COUNT)]
PositiveFloat = Annotated[float, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
ToyLanguage = Literal["plain", "varied"]  # keys of zerogap.data.toy.language.LANGUAGES
