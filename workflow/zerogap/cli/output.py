"""Print tables: in the terminal with rich, or as Markdown, CSV, LaTeX and JSON."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zerogap.io.text_files import printable

if TYPE_CHECKING:
    import pandas as pd
    import rich.table

    from zerogap.reporting.render import Cell, Table

OutputFormat = Literal["table", "md", "csv", "json", "tex"]
Format = Annotated[OutputFormat, typer.Option("--format", help="Format of what is printed.")]
FILE_WIDTH = 200  # of a table that is not printed to a terminal: rows must not wrap
UNLIMITED_WIDTH = 10_000


def print_note(note: str) -> None:
    """Print what a reader should know to standard error."""
    print(f"note: {printable(note)}", file=sys.stderr)


def print_json(value: Mapping[str, Any]) -> None:
    """Print an object as JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


def records(table: "pd.DataFrame") -> list[dict[Any, Any]]:
    """The rows of a table for JSON, with null for NaN."""
    return table.astype(object).replace({math.nan: None}).to_dict("records")


def print_table(table: "Table", output_format: OutputFormat) -> None:
    """Print a table in any format but JSON."""
    if output_format == "table":
        _print_rich(table)
        return
    from zerogap.reporting import render

    to_text = {"md": render.to_markdown, "csv": render.to_csv, "tex": render.to_latex}
    print(to_text[output_format](table), end="")


def _print_rich(table: "Table") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=FILE_WIDTH)
    unlimited = console.options.update(max_width=UNLIMITED_WIDTH)
    for n_columns, n_with_interval in _layouts(table):
        grid = _rich_table(table, n_columns, n_with_interval)
        if console.measure(grid, options=unlimited).maximum <= console.width:
            break
    console.print(Text(table.caption))
    console.print(grid)
    for note in (*table.notes, *_left_out(table, n_columns, n_with_interval)):
        console.print(Text(note))


def _layouts(table: "Table") -> list[tuple[int, int]]:
    """Numbers of columns and of those with their intervals, from the widest layout on."""
    n = len(table.columns)
    if not table.has_intervals:
        return [(n, 0)]
    return [(n, n), (n, 2), *((k, 1) for k in range(n, 0, -1))]


def _left_out(table: "Table", n_columns: int, n_with_interval: int) -> list[str]:
    """A note on what a narrow terminal has no room for."""
    if n_with_interval in (0, len(table.columns)):
        return []
    missing = ["intervals", *(column.title for column in table.columns[n_columns:])]
    return [f"Not shown: other {', '.join(missing)}. Use a wider terminal, or --output."]


def _rich_table(table: "Table", n_columns: int, n_with_interval: int) -> "rich.table.Table":
    """The first columns of a table for a terminal, with intervals under the first numbers.

    Rows without a value in these columns are left out.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    grid.add_column(table.index_label, min_width=len(table.index_label))
    for column in table.columns[:n_columns]:
        grid.add_column(column.title.replace(" − ", " −\n"), justify="right", no_wrap=True)
    section = ""
    for row in table.rows:
        if row.section != section:
            section = row.section
            grid.add_section()
            grid.add_row(Text(section, style="italic"))
        cells = row.cells[:n_columns]
        if any(cell.is_number for cell in cells):
            grid.add_row(Text(row.name), *_rich_cells(table, cells, n_with_interval))
    return grid


def _rich_cells(table: "Table", cells: "Sequence[Cell]", n_with_interval: int) -> list[Any]:
    from rich.text import Text

    texts = []
    for k, cell in enumerate(cells):
        column = table.columns[k]
        interval = table.interval(column, cell) if k < n_with_interval else ""
        number = (table.text(column, cell), "bold green" if cell.bold else "")
        texts.append(Text.assemble(number, (f"\n{interval}" if interval else "", "dim")))
    return texts
