"""The numbers that the paper quotes in its text."""

import pandas as pd

from zerogap.reporting.render import Cell, Column, Row, Table, optional_float


def inline_numbers(numbers: pd.DataFrame) -> Table:
    """One row per quantity: this run's value, the published one, and where the paper has it.

    Args:
        numbers: As `zerogap.analysis.inline_numbers` returns it.
    """
    rows = tuple(
        Row(
            row["key"],
            row["quantity"],
            (
                Cell(row["value"], optional_float(row["ci_low"]), optional_float(row["ci_high"])),
                Cell(text=row["printed"]),
                Cell(text=row["place"]),
            ),
        )
        for row in numbers.to_dict("records")
    )
    return Table(
        label="tab:inline-numbers",
        caption=(
            "The numbers quoted in the paper's text, with bootstrap intervals over questions, "
            "next to the published values."
        ),
        index_label="Quantity",
        columns=(
            Column("value", "this run"),
            Column("paper", "paper", align="l"),
            Column("place", "section", align="l"),
        ),
        rows=rows,
        decimals=3,
        intervals=True,
        size="footnotesize",
        column_gap="4pt",
    )
