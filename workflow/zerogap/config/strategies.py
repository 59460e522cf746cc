"""Entries of the mitigation strategies."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from zerogap.config.section import Label, Name, Section


class StrategyEntry(Section):
    """A mitigation strategy with its parameters."""

    label: Label = Field(description="Name in tables and figures.")
    class_name: str = Field(
        alias="class",
        description="Short name of a built-in strategy, or `package.module:Class`.",
    )
    parameters: Mapping[str, Any] = Field(
        default_factory=dict, description="Keyword arguments of the class."
    )
    filter_of: Name | None = Field(
        default=None,
        description=(
            "Another strategy whose responses this one filters; it is not sampled itself then."
        ),
    )
    needs_base_model: bool = Field(
        default=False,
        description="Whether the strategy needs the base model and the localised neurons.",
    )
