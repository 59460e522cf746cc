"""A table as data, and as CSV, Markdown, LaTeX and HTML."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from zerogap.io import parquet
from zerogap.reporting.html_page import page

DASH = "–"
LONG = 60  # rows; more do not fit on a page


@dataclass(frozen=True)
class Cell:
    """A reading with its interval, or a text; `decimals` where it is printed unlike its table.

    A `mark` stands behind the reading, its meaning in a note of the table.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""
    bold: bool = False
    decimals: int | None = None
    mark: str = ""

    def shown(self, decimals: int) -> str:
        if self.value is None:
            return self.text or DASH
        return number(self.value, decimals if self.decimals is None else self.decimals) + self.mark

    def interval(self, decimals: int) -> str:
        if self.low is None or self.high is None:
            return ""
        return f"[{number(self.low, decimals)}, {number(self.high, decimals)}]"


@dataclass(frozen=True)
class Column:
    """`align` is r for numbers, l or a LaTeX paragraph column for text."""

    key: str
    title: str
    group: str = ""
    align: str = "r"


@dataclass(frozen=True)
class Row:
    """`section` is a heading over a run of rows; a bold row has its name set bold."""

    key: str
    name: str
    cells: tuple[Cell, ...]
    section: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table in full; `intervals` shows them in the text formats too, not in CSV and HTML alone.

    Titles, captions and notes are plain text with the paper's symbols (Δ⁺, M_cl, ×), which the
    formats set in their own way.
    """

    label: str
    caption: str
    corner: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    decimals: int = 4
    intervals: bool = False
    size: str = "small"
    column_gap: str = "6pt"


def to_csv(table: Table) -> str:
    """Comma-separated: a column a reading and, where there are intervals, two for the ends."""
    with_ends = [
        any(row.cells[k].low is not None for row in table.rows) for k in range(len(table.columns))
    ]
    sections = any(row.section for row in table.rows)
    heading = ["setting"] * sections + [table.corner.lower() or "strategy", "key"]
    for column, ends in zip(table.columns, with_ends, strict=True):
        heading += [column.key] + [f"{column.key}_ci_low", f"{column.key}_ci_high"] * ends
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heading)
    for row in table.rows:
        line: list[Any] = [row.section] * sections + [row.name, row.key]
        for cell, ends in zip(row.cells, with_ends, strict=True):
            line += [cell.text if cell.value is None else cell.value]
            line += [_blank(cell.low), _blank(cell.high)] * ends
        writer.writerow(line)
    return out.getvalue()


def to_markdown(table: Table) -> str:
    """A pipe table under its caption."""
    titles = [f"{column.group} {column.title}".strip() for column in table.columns]
    lines = [
        [table.corner, *titles],
        ["---", *("---:" if column.align == "r" else "---" for column in table.columns)],
    ]
    section = ""
    for row in table.rows:
        if row.section != section:
            section = row.section
            lines.append([f"*{section}*", *[""] * len(table.columns)])
        cells = [_md_bold(_shown(cell, table), cell.bold) for cell in row.cells]
        lines.append([_md_bold(row.name, row.bold), *cells])
    rows = "\n".join(f"| {' | '.join(cell.replace('|', '∣') for cell in line)} |" for line in lines)
    notes = "".join(f"\n\n{note}" for note in table.notes)
    return f"{table.caption}\n\n{rows}{notes}\n"


def to_latex(table: Table) -> str:
    """A floating table for booktabs; one that spans both columns of a page where it is wide.

    A table longer than a page is a longtable, which needs a text of one column.
    """
    body = []
    section = ""
    for row in table.rows:
        if row.section != section:
            section = row.section
            rule = [r"\midrule"] if body else []
            span = len(table.columns) + 1
            body += [*rule, rf"\multicolumn{{{span}}}{{l}}{{\emph{{{latex(section)}}}}} \\"]
        cells = [_tex_bold(_shown(cell, table), cell.bold) for cell in row.cells]
        body.append([_tex_bold(row.name, row.bold), *cells])
    widths = [max(len(line[k]) for line in body if isinstance(line, list)) for k in
              range(len(table.columns) + 1)] if table.rows else []  # fmt: skip
    lines = [
        line
        if isinstance(line, str)
        else " & ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        + r" \\"
        for line in body
    ]
    heading = " & ".join([latex(table.corner), *(latex(c.title) for c in table.columns)])
    alignment = "l" + "".join(column.align for column in table.columns)
    floating = "table*" if len(table.columns) > 7 or table.intervals else "table"
    caption = latex(" ".join([table.caption, *table.notes]))
    spacing = rf"\setlength{{\tabcolsep}}{{{table.column_gap}}}"
    head = [r"\toprule", *_tex_groups(table), rf"{heading} \\", r"\midrule"]
    if len(table.rows) > LONG:
        parts = [
            rf"{{\{table.size}",
            spacing,
            rf"\begin{{longtable}}{{{alignment}}}",
            *head,
            r"\endhead",
            *lines,
            r"\bottomrule",
            rf"\caption{{{caption}}}",
            rf"\label{{{table.label}}}",
            r"\end{longtable}}",
        ]
    else:
        parts = [
            rf"\begin{{{floating}}}[t]",
            r"\centering",
            rf"\{table.size}",
            spacing,
            rf"\begin{{tabular}}{{{alignment}}}",
            *head,
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            rf"\label{{{table.label}}}",
            rf"\end{{{floating}}}",
        ]
    return "\n".join([*parts, ""])


def to_html(table: Table, footer: str = "") -> str:
    """A self-contained page, sortable; intervals stand small under the readings."""
    groups = _groups(table)
    head = ""
    if any(name for name, _ in groups):
        spans = "".join(
            f'<th class="group" colspan="{n}"><span>{html(name)}</span></th>'
            if name
            else f'<th colspan="{n}"></th>'
            for name, n in groups
        )
        head = f"<tr><th></th>{spans}</tr>\n"
    titles = "".join(f"<th{_kind(c)}>{html(c.title)}</th>" for c in table.columns)
    head += f"<tr><th>{html(table.corner)}</th>{titles}</tr>"
    body, section = [], ""
    for row in table.rows:
        if row.section != section:
            section = row.section
            span = len(table.columns) + 1
            body.append(f'<tr class="section"><td colspan="{span}">{html(section)}</td></tr>')
        cells = "".join(
            f"<td{_kind(column)}{_sort_key(cell)}>{_html_cell(cell, table.decimals)}</td>"
            for column, cell in zip(table.columns, row.cells, strict=True)
        )
        name = f"<strong>{html(row.name)}</strong>" if row.bold else html(row.name)
        body.append(f"<tr><td>{name}</td>{cells}</tr>")
    rows = "\n".join(body)
    notes = "".join(f'\n<p class="note">{html(note)}</p>' for note in table.notes)
    return page(
        table.caption,
        f'<p>{html(table.caption)}</p>\n<div class="wide"><table class="sortable">\n'
        f"<thead>\n{head}\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>{notes}",
        footer,
    )


def save(table: Table, prefix: str | Path, provenance: Mapping[str, Any]) -> None:
    """Write `prefix`.csv, .md, .tex and .html, and .json with the caption and the provenance."""
    footer = provenance_line(provenance)
    sidecar = {
        "caption": table.caption,
        "notes": list(table.notes),
        "provenance": dict(provenance),
    }
    for suffix, text in {
        ".csv": to_csv(table),
        ".md": f"{to_markdown(table)}\n<!-- {footer} -->\n",
        ".tex": f"% {footer}\n{to_latex(table)}",
        ".html": to_html(table, footer),
        ".json": json.dumps(sidecar, indent=2, ensure_ascii=False, default=str) + "\n",
    }.items():
        with parquet.atomic(f"{prefix}{suffix}") as path:
            path.write_text(text, encoding="utf-8")


def provenance_line(provenance: Mapping[str, Any]) -> str:
    """Who made it, in one line."""
    facts = {k: v for k, v in provenance.items() if isinstance(v, str | int | float) and v != ""}
    return " · ".join(f"{name} {value}" for name, value in facts.items())


# The paper's symbols, as each format writes them. Longest first: S-Δ⁺ₛ holds Δ⁺.
_LATEX = {
    "Δ⁺ₛ": r"$\Delta^{+}_s$",
    "Δ⁻ₛ": r"$\Delta^{-}_s$",
    "Δ⁺": r"$\Delta^{+}$",
    "Δ⁻": r"$\Delta^{-}$",
    "M_cl": r"$M_{\mathrm{cl}}$",
    "M_co": r"$M_{\mathrm{co}}$",
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
    "|": r"$|$",
}


def latex(text: str) -> str:
    """Plain text with the paper's symbols as LaTeX."""
    out, rest = [], text
    while rest:
        symbol = next((s for s in _LATEX if rest.startswith(s)), rest[0])
        out.append(_LATEX.get(symbol, symbol))
        rest = rest[len(symbol) :]
    return "".join(out)


def html(text: str) -> str:
    """Plain text with the paper's symbols as HTML."""
    text = escape(text)
    for plain, marked in (("ₛ", "<sub>s</sub>"), ("M_cl", "M<sub>cl</sub>"),
                          ("M_co", "M<sub>co</sub>")):  # fmt: skip
        text = text.replace(plain, marked)
    return text


def number(value: float, decimals: int) -> str:
    """As printed: a real minus sign, none before a zero, thousands apart, a dash for none."""
    if pd.isna(value):
        return DASH
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "−")


def _blank(value: float | None) -> float | str:
    return "" if value is None else value


def _shown(cell: Cell, table: Table) -> str:
    text = cell.shown(table.decimals)
    interval = cell.interval(table.decimals) if table.intervals else ""
    return f"{text} {interval}".strip()


def _md_bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _tex_bold(text: str, bold: bool) -> str:
    return rf"\textbf{{{latex(text)}}}" if bold else latex(text)


def _groups(table: Table) -> list[tuple[str, int]]:
    """Runs of columns of one group: (name, how many)."""
    runs: list[tuple[str, int]] = []
    for column in table.columns:
        if runs and runs[-1][0] == column.group:
            runs[-1] = (column.group, runs[-1][1] + 1)
        else:
            runs.append((column.group, 1))
    return runs


def _tex_groups(table: Table) -> list[str]:
    groups = _groups(table)
    if not any(name for name, _ in groups):
        return []
    cells, rules, first = [], [], 2
    for name, n in groups:
        cells.append(rf"\multicolumn{{{n}}}{{c}}{{{latex(name)}}}")
        if name:
            rules.append(rf"\cmidrule(lr){{{first}-{first + n - 1}}}")
        first += n
    return [f" & {' & '.join(cells)} \\\\", "".join(rules)]


def _kind(column: Column) -> str:
    return "" if column.align == "r" else ' class="text"'


def _sort_key(cell: Cell) -> str:
    """The value in full, for the page's script; a text is its own."""
    if cell.value is None or pd.isna(cell.value):
        return ""
    return f' data-value="{str(cell.value).replace("inf", "Infinity")}"'


def _html_cell(cell: Cell, decimals: int) -> str:
    text = html(cell.shown(decimals))
    if cell.bold:
        text = f"<strong>{text}</strong>"
    interval = cell.interval(decimals)
    return f'{text}<span class="interval">{interval}</span>' if interval else text
