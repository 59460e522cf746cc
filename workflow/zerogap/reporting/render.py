"""A table as data, its rendering as CSV, Markdown, LaTeX and HTML, and templates of pages.

LaTeX and HTML come from Jinja templates: pandas' Styler has no section rows, no rules under column
groups and no attributes for sorting. The paper's symbols are written as HTML and LaTeX. LaTeX
templates use ``<< value >>`` and ``<% block %>``: braces belong to LaTeX.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from tabulate import tabulate

from zerogap.io import atomic

DASH = "–"
MAX_ROWS_PER_PAGE = 60  # a longer table is a longtable in LaTeX
MAX_COLUMN_WIDTH = 7  # columns; a table with more spans both columns of a page
_LATEX = {
    "Δ⁺": r"$\Delta^{+}$",
    "Δ⁻": r"$\Delta^{-}$",
    "×": r"$\times$",
    "−": "$-$",
    "∞": r"$\infty$",
    "†": r"$^{\dagger}$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "²": r"$^2$",
    "–": "--",
    "…": r"\dots{}",
    " %": r"\,\%",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "\\": r"\textbackslash{}",
    "|": r"$|$",
}
_MODEL = re.compile(r"\bM_(c[lo])\b")  # not within a word, such as a name of the user's
_SYMBOLS = re.compile("|".join([_MODEL.pattern, *map(re.escape, _LATEX)]))  # the first counts


@dataclass(frozen=True)
class Cell:
    """A number with its interval, each NaN if there is none, or a text."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    text: str = ""  # in place of a number
    bold: bool = False
    mark: str = ""  # a symbol behind the number; a note of the table explains it

    @property
    def is_number(self) -> bool:
        """Whether it has a value."""
        return not math.isnan(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether its value has an interval."""
        return not math.isnan(self.low)

    @property
    def sort_key(self) -> str:
        """The number in full, as JavaScript reads it; empty for a text."""
        return str(self.value).replace("inf", "Infinity") if self.is_number else ""

    def format(self, decimals: int) -> str:
        """The number as printed, the text, or a dash."""
        if not self.is_number:
            return self.text or DASH
        return format_number(self.value, decimals) + self.mark

    def format_interval(self, decimals: int) -> str:
        """The interval as printed, "[0.12, 0.34]"; empty if there is none."""
        if not self.has_interval:
            return ""
        return f"[{format_number(self.low, decimals)}, {format_number(self.high, decimals)}]"


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    key: str  # name in the CSV file
    title: str
    group: str = ""  # heading over several neighbouring columns
    align: str = "r"  # LaTeX's: r for numbers, l for text
    decimals: int | None = None  # None: the table's

    @property
    def full_title(self) -> str:
        """The title after its group's heading."""
        return f"{self.group} {self.title}".strip()


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    key: str  # name in the CSV file
    name: str  # in the first column
    cells: tuple[Cell, ...]  # one per column
    section: str = ""  # heading over consecutive rows
    bold: bool = False  # the name


@dataclass(frozen=True)
class Table:
    """A table as data.

    Titles, captions and notes are plain text with the paper's symbols (Δ⁺, M_cl, ×), which each
    format writes in its own way.
    """

    columns: tuple[Column, ...]  # after the first, which holds the rows' names
    rows: tuple[Row, ...]
    index_label: str = ""  # heading of the first column
    label: str = ""  # LaTeX's
    title: str = ""  # "Table 3: SA-PPG in every setting"; LaTeX numbers its tables itself
    caption: str = ""
    notes: tuple[str, ...] = ()  # under the table
    decimals: int = 4
    intervals: bool = False  # whether Markdown and LaTeX show them; CSV and HTML always do

    @property
    def latex_size(self) -> str:
        """A LaTeX font size at which the columns fit the page."""
        width = len(self.columns) * (1 + self.intervals)
        return "small" if width <= 4 else "footnotesize" if width <= 7 else "tiny"

    def text(self, column: Column, cell: Cell) -> str:
        """A cell as printed, without its interval."""
        return cell.format(self._decimals(column))

    def interval(self, column: Column, cell: Cell) -> str:
        """The interval of a cell as printed; empty if it has none."""
        return cell.format_interval(self._decimals(column))

    def _decimals(self, column: Column) -> int:
        return self.decimals if column.decimals is None else column.decimals

    def texts(self, row: Row) -> list[str]:
        """The cells of a row as Markdown and LaTeX print them."""
        return [
            f"{self.text(*each)} {self.interval(*each) if self.intervals else ''}".strip()
            for each in zip(self.columns, row.cells, strict=True)
        ]

    @property
    def has_intervals(self) -> bool:
        """Whether any cell has an interval."""
        return any(cell.has_interval for row in self.rows for cell in row.cells)

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        """The rows under each heading."""
        return [(name, list(rows)) for name, rows in groupby(self.rows, key=lambda r: r.section)]

    @property
    def column_groups(self) -> list[tuple[str, int, int]]:
        """Runs of columns with the same group: (name, first, last); empty without groups.

        Columns count from 1, and the rows' names are the first.
        """
        if not any(column.group for column in self.columns):
            return []
        groups = groupby(enumerate(self.columns, start=2), key=lambda pair: pair[1].group)
        runs = ((name, list(run)) for name, run in groups)
        return [(name, run[0][0], run[-1][0]) for name, run in runs]


def to_csv(table: Table) -> str:
    """Comma-separated values: one column per table column, and two more for its interval if any."""
    columns: dict[str, list[Any]] = {}
    if any(row.section for row in table.rows):
        columns["setting"] = [row.section for row in table.rows]
    columns[table.index_label.lower() or "strategy"] = [row.name for row in table.rows]
    columns["key"] = [row.key for row in table.rows]
    for k, column in enumerate(table.columns):
        cells = [row.cells[k] for row in table.rows]
        columns[column.key] = [cell.value if cell.is_number else cell.text for cell in cells]
        if any(cell.has_interval for cell in cells):
            columns[f"{column.key}_ci_low"] = [cell.low for cell in cells]
            columns[f"{column.key}_ci_high"] = [cell.high for cell in cells]
    # Cells of type object keep integers as they are.
    return str(pd.DataFrame(columns, dtype=object).to_csv(index=False))


def to_markdown(table: Table) -> str:
    """A pipe table under its caption."""
    lines = [[table.index_label, *(column.full_title for column in table.columns)]]
    for section, rows in table.sections:
        if section:
            lines.append([f"*{section}*", *[""] * len(table.columns)])
        for row in rows:
            texts = [row.name, *table.texts(row)]
            bold = [row.bold, *(cell.bold for cell in row.cells)]
            lines.append([f"**{t}**" if b else t for t, b in zip(texts, bold, strict=True)])
    body = tabulate(
        [[cell.replace("|", "∣") for cell in line] for line in lines],
        headers="firstrow",
        tablefmt="pipe",
        colalign=["left", *("right" if c.align == "r" else "left" for c in table.columns)],
        disable_numparse=True,
    )
    notes = "".join(f"\n\n{note}" for note in table.notes)
    title = f"**{table.title}**\n\n" if table.title else ""
    return f"{title}{table.caption}\n\n{body}{notes}\n"


def to_latex(table: Table) -> str:
    """A floating table for booktabs; one that spans both columns of a page if it is wide.

    A table longer than a page is a longtable, which needs a document of one column.
    """
    wide = len(table.columns) > MAX_COLUMN_WIDTH or table.intervals
    return render_template(
        "table.tex.j2",
        table=table,
        alignment="l" + "".join(column.align for column in table.columns),
        environment="table*" if wide else "table",
        longtable=len(table.rows) > MAX_ROWS_PER_PAGE,
        caption=" ".join([table.caption, *table.notes]),
    )


def to_html(table: Table, footer: str = "") -> str:
    """A self-contained page with a sortable table; intervals are small, under the numbers."""
    title = table.title or table.caption
    return render_template("table.html.j2", title=title, footer=footer, table=table)


def save(table: Table, prefix: str | Path, provenance: Mapping[str, Any]) -> None:
    """Write `prefix`.csv, .md, .tex and .html, with the provenance in all but the first."""
    footer = provenance_line(provenance)
    save_texts(
        prefix,
        {
            ".csv": to_csv(table),
            ".md": f"{to_markdown(table)}\n<!-- {footer} -->\n",
            ".tex": f"% {footer}\n{to_latex(table)}",
            ".html": to_html(table, footer),
        },
    )


def save_texts(prefix: str | Path, texts: Mapping[str, str]) -> None:
    """Write one file per suffix, each atomically."""
    for suffix, text in texts.items():
        atomic.write_text(f"{prefix}{suffix}", text)


def provenance_line(provenance: Mapping[str, Any]) -> str:
    """The provenance in one line, "run quick · zerogap 0.1.0 · …"."""
    shown = {k: v for k, v in provenance.items() if isinstance(v, str | int | float) and v != ""}
    return " · ".join(f"{name} {value}" for name, value in shown.items())


def rounded(value: float, decimals: int) -> float:
    """A value as printed: sums in different orders are on the same side of a tie."""
    return round(round(float(value), 12), decimals)


def format_number(value: float, decimals: int) -> str:
    """A number with a true minus sign, none before a zero, and thousands separators."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{rounded(value, decimals):,.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "−")


def format_latex(text: str) -> str:
    """Plain text with the paper's symbols as LaTeX."""
    return _SYMBOLS.sub(
        lambda match: rf"$M_{{\mathrm{{{match[1]}}}}}$" if match[1] else _LATEX[match[0]], text
    )


def format_html(text: str) -> Markup:
    """Plain text with the paper's symbols as HTML."""
    return Markup(_MODEL.sub(r"M<sub>\1</sub>", escape(text)))  # noqa: S704 (escaped)


_LATEX_DELIMITERS = {
    **{"block_start_string": "<%", "block_end_string": "%>"},
    **{"variable_start_string": "<<", "variable_end_string": ">>"},
    **{"comment_start_string": "<#", "comment_end_string": "#>"},
}


def _environment(symbols: Callable[[str], str], **options: Any) -> Environment:
    environment = Environment(  # noqa: S701 (LaTeX is not HTML)
        loader=PackageLoader("zerogap.reporting", "assets"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.globals["zip"] = zip
    environment.filters["symbols"] = symbols
    return environment


_LATEX_TEMPLATES = _environment(format_latex, autoescape=False, **_LATEX_DELIMITERS)
_HTML_TEMPLATES = _environment(format_html, autoescape=True)


def render_template(name: str, **values: Any) -> str:
    """Fill a template of the package's assets: LaTeX, or HTML, whose values are escaped."""
    environment = _LATEX_TEMPLATES if name.endswith(".tex.j2") else _HTML_TEMPLATES
    return environment.get_template(name).render(**values)
