"""The registry of metrics: one vectorised definition each, and how it is reported.

A metric is a function of a `zerogap.metrics.comparison.Comparison`. The same function serves the
point estimate and the bootstrap resamples, because a comparison hides which of the two it holds. To
add a metric, decorate its definition with `register_metric` in `zerogap.metrics.definitions`; the
`metrics` table, `zerogap score` and the labels of the reports then follow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from zerogap.metrics.comparison import Comparison
from zerogap.metrics.gaps import Values

Definition = Callable[[Comparison], Values]


@dataclass(frozen=True)
class Metric:
    """A metric and how it is reported.

    Attributes:
        name: Its value in the column ``metric``.
        label: What tables and figures print.
        definition: Its values, shape () for a point estimate and (strategies, resamples) for
            resamples. Values are between 0 and 1.
        in_paper: Whether the paper reports it.
        differences: The strategies from which paired differences are taken: none, the
            `zerogap.metrics.evaluate.REFERENCES`, or all (then also with simultaneous intervals).
            They need an interval.
        has_interval: Whether it is computed for the resamples too.
        of_clean_model: Whether it is also reported for the clean model itself.
        uses_first_response: Whether it needs ``first_correct``.
        summary_column: Its position in the table of `zerogap score`; None if it is not shown.

    Raises:
        ValueError: It has differences and no interval.
    """

    name: str
    label: str
    definition: Definition
    in_paper: bool = False
    differences: Literal["none", "references", "all"] = "none"
    has_interval: bool = True
    of_clean_model: bool = False
    uses_first_response: bool = False
    summary_column: int | None = None

    def __post_init__(self) -> None:
        if self.differences != "none" and not self.has_interval:
            raise ValueError(f"metric {self.name}: differences need has_interval=True")


# By name, in the order of the rows of a `metrics` table.
METRICS: dict[str, Metric] = {}


def register_metric(
    name: str,
    label: str,
    *,
    in_paper: bool = False,
    differences: Literal["none", "references", "all"] = "none",
    has_interval: bool = True,
    of_clean_model: bool = False,
    uses_first_response: bool = False,
    summary_column: int | None = None,
) -> Callable[[Definition], Definition]:
    """Register the decorated definition; the arguments are the attributes of `Metric`."""

    def register(definition: Definition) -> Definition:
        METRICS[name] = Metric(
            name,
            label,
            definition,
            in_paper=in_paper,
            differences=differences,
            has_interval=has_interval,
            of_clean_model=of_clean_model,
            uses_first_response=uses_first_response,
            summary_column=summary_column,
        )
        return definition

    return register


def labels() -> dict[str, str]:
    """Metric name → label, in the order of the registry."""
    return {metric.name: metric.label for metric in METRICS.values()}


def paper_metrics() -> tuple[str, ...]:
    """Names of the metrics that the paper reports, in its order."""
    return tuple(metric.name for metric in METRICS.values() if metric.in_paper)


def summary_metrics() -> tuple[Metric, ...]:
    """The metrics shown by `zerogap score`, in the order of its columns."""
    shown = [metric for metric in METRICS.values() if metric.summary_column is not None]
    return tuple(sorted(shown, key=lambda metric: metric.summary_column or 0))
