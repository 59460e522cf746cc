"""How much the rule of answer extraction matters."""

from collections.abc import Mapping

from zerogap.reporting.labels import Labels
from zerogap.reporting.render import Cell, Column, Row, Table, optional_float


def extraction_agreement(
    shares: Mapping[str, Mapping[str, float]], own_rule: str, labels: Labels
) -> Table:
    """The same responses under every rule of answer extraction, one row per strategy.

    Args:
        shares: Strategy to its shares (see `zerogap.analysis.extraction_agreement`), all settings
            together.
        own_rule: Name of the run's rule.
        labels: Names to show.
    """
    keys = [key for key in next(iter(shares.values())) if key != "responses"]
    groups = {
        "answered": "Answered",
        "correct": "Correct",
        "agree": f"Same mark as {own_rule}",
    }
    columns = [Column("responses", "Responses")]
    for kind, group in groups.items():
        for key in keys:
            key_kind, _, rule = key.partition(" ")
            if key_kind == kind:
                title = own_rule if rule == "own" else rule
                columns.append(Column(key, title, group=group))
    rows = []
    for strategy, values in shares.items():
        cells = [Cell(values["responses"], decimals=0)]
        cells += [Cell(optional_float(values[column.key])) for column in columns[1:]]
        rows.append(Row(strategy, labels.strategy(strategy), tuple(cells)))
    return Table(
        label="tab:extraction-agreement",
        caption="The same responses under every rule of answer extraction, all settings together.",
        index_label="Strategy",
        columns=tuple(columns),
        rows=tuple(rows),
        decimals=3,
        size="scriptsize",
        column_gap="3pt",
    )
