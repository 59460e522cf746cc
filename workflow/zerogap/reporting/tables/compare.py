"""This run's tables next to the paper's."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from zerogap.published import as_metrics
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell, Column, Table
from zerogap.reporting.tables import paper
from zerogap.reporting.tables.rows import Setting


def main_vs_paper(values: MetricTable, labels: Labels, differences: Sequence[str]) -> Table:
    """Table 3 of this run next to the paper's; arguments as of `vs_paper`."""
    published = paper.main(MetricTable([as_metrics("Table 3")]), labels)
    return vs_paper(paper.main(values, labels), published, differences)


def of_one_setting(
    build: Callable[[MetricTable, Labels, Setting], Table], place: str
) -> Callable[[MetricTable, Labels, Setting, Sequence[str]], Table]:
    """What builds a table of one setting, next to the paper's at `place` ("Table 1")."""

    def build_vs_paper(
        values: MetricTable, labels: Labels, setting: Setting, differences: Sequence[str]
    ) -> Table:
        table = build(values, labels, setting)
        published = MetricTable([as_metrics(place)])
        if published.strategies(*setting):
            published_table = build(published, labels, setting)
        else:  # the paper shows these tables for one setting only
            published_table = replace(table, rows=())
        return vs_paper(table, published_table, differences)

    return build_vs_paper


def vs_paper(table: Table, published: Table, differences: Sequence[str]) -> Table:
    """Each value of this run's table next to the published one, under a heading per column.

    Args:
        table: This run's table.
        published: The same table with the paper's values.
        differences: How this run's protocol differs from the paper's
            (`zerogap.published.protocol_differences`). If it does not, differences of the values
            are shown too, each with this run's interval minus the published value, which has no
            interval.
    """
    published_cells = {
        (row.key, column.key): cell
        for row in published.rows
        for column, cell in zip(published.columns, row.cells, strict=True)
    }
    parts = {"paper": "paper", "this_run": "this run"}
    if differences:
        note = (
            "The protocol of this run differs from the paper's, so no differences are shown. The "
            "paper's values are those of its own models and questions, under this run's headings; "
            f"compare the order of the rows. What differs: {'; '.join(differences)}."
        )
    else:
        parts["difference"] = "difference"
        note = (
            "Difference: this run minus the paper. Its interval is this run's interval minus the "
            "published value, which has no interval of its own."
        )
    columns = tuple(
        Column(f"{column.key}_{key}", title, group=column.full_title)
        for column in table.columns
        for key, title in parts.items()
    )
    rows = []
    for row in table.rows:
        cells: list[Cell] = []
        for column, cell in zip(table.columns, row.cells, strict=True):
            published_cell = published_cells.get((row.key, column.key), Cell())
            cells += [published_cell, cell, _difference(cell, published_cell)][: len(parts)]
        rows.append(replace(row, cells=tuple(cells)))
    return replace(table, columns=columns, rows=tuple(rows), notes=(*table.notes, note))


def _difference(cell: Cell, published: Cell) -> Cell:
    """The difference with its interval; empty if either value is missing."""
    if cell.value is None or published.value is None:
        return Cell()
    offset = published.value
    low, high = (None if end is None else end - offset for end in (cell.low, cell.high))
    return Cell(cell.value - offset, low, high)
