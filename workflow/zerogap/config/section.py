"""The base of every section of the configuration, and the types that sections share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Section(BaseModel):
    """A part of the configuration: frozen, without unknown keys, without type conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+$")]
Dtype = Literal["float32", "bfloat16", "float16"]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
