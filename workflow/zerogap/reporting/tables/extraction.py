"""How much the rule of answer extraction matters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zerogap.reporting.labels import Labels
from zerogap.reporting.render import Cell, Column, Row, Table, optional_float


@dataclass(frozen=True)
class OwnerAgreement:
    """Agreement of the extraction rules on one benchmark's questions.

    Attributes:
        label: Name of the benchmark that owns the questions.
        run_rule: Name of the rule that the run scores it by.
        fractions: Strategy to its fractions, from `zerogap.analysis.extraction_agreement`.
    """

    label: str
    run_rule: str
    fractions: Mapping[str, Mapping[str, float]]


def extraction_agreement(agreements: Sequence[OwnerAgreement], labels: Labels) -> Table:
    """The same responses under every rule of answer extraction, one row per strategy.

    Args:
        agreements: One per benchmark with questions of its own; several have a section each.
        labels: Names to show.
    """
    columns = _columns(agreements)
    rows = []
    for owner in agreements:
        for strategy, fractions in owner.fractions.items():
            cells = [Cell(fractions["responses"], decimals=0)]
            cells += [Cell(optional_float(fractions.get(column.key))) for column in columns[1:]]
            section = owner.label if len(agreements) > 1 else ""
            rows.append(Row(strategy, labels.strategy(strategy), tuple(cells), section))
    return Table(
        label="tab:extraction-agreement",
        caption="The same responses under every rule of answer extraction, all settings together.",
        index_label="Strategy",
        columns=columns,
        rows=tuple(rows),
        decimals=3,
        size="scriptsize",
        column_gap="3pt",
    )


def _columns(agreements: Sequence[OwnerAgreement]) -> tuple[Column, ...]:
    """Number of responses, then groups of fractions, one column per rule that any owner has."""
    run_rules = list(dict.fromkeys(owner.run_rule for owner in agreements))
    run_rule = run_rules[0] if len(run_rules) == 1 else "the run's rule"
    keys = dict.fromkeys(
        key for owner in agreements for fractions in owner.fractions.values() for key in fractions
    )
    columns = [Column("responses", "Responses")]
    for kind, group in (
        ("answered", "Answered"),
        ("correct", "Correct"),
        ("agree", f"Same mark as {run_rule}"),
    ):
        for key in keys:
            key_kind, _, rule = key.partition(" ")
            if key_kind == kind:
                columns.append(Column(key, run_rule if rule == "own" else rule, group=group))
    return tuple(columns)
