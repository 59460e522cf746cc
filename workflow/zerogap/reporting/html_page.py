"""The look of the HTML that goes into the report: one self-contained page a table or sheet."""

from html import escape

_STYLE = """
body { font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
       color: #1a1a1a; background: #fff; margin: 1.5rem; }
@media (max-width: 40rem) { body { margin: .8rem; } }
h1 { font-size: 1.25rem; margin: 0 0 .6rem; }
h2 { font-size: 1.05rem; margin: 1.8rem 0 .3rem; max-width: 60rem; }
p { max-width: 52rem; margin: .5rem 0; }
table { border-collapse: separate; border-spacing: 0; border: solid #1a1a1a; border-width: 2px 0;
        margin: .9rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .65rem; text-align: right; vertical-align: top; font-weight: normal; }
th:first-child, td:first-child, .text { text-align: left; }
th, td { white-space: nowrap; }
.wide { overflow-x: auto; }
.wide tr:not(.section) > :first-child { position: sticky; left: 0; background: #fff; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid #0072B2; }
th button::after { content: " ↕"; color: #aaa; font-weight: normal; }
[aria-sort=ascending] button::after { content: " ▲"; color: inherit; }
[aria-sort=descending] button::after { content: " ▼"; color: inherit; }
thead tr:last-child th { border-bottom: 1px solid #1a1a1a; font-weight: 600; }
th.group { text-align: center; font-weight: 600; }
th.group span { display: block; border-bottom: 1px solid #999; padding-bottom: .15rem; }
tr.section td { border-top: 1px solid #999; font-style: italic; padding-top: .5rem; }
tbody tr:hover:not(.section), tbody tr:hover:not(.section) > :first-child { background: #f4f6f8; }
.interval { display: block; font-size: .78em; color: #666; white-space: nowrap; }
.note, footer { font-size: .85rem; color: #555; }
footer { margin-top: 1.2rem; border-top: 1px solid #ddd; padding-top: .4rem; }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: .8rem; font-size: .85rem;
         font-weight: 600; white-space: nowrap; }
.supported { background: #d3ecdf; color: #0b4f33; }
.not-supported { background: #f8d9c9; color: #7a2b05; }
.cannot-tell { background: #e6e6ea; color: #3d3d47; }
"""

# A click on a heading sorts each section's rows among themselves: up, down, as they were. A cell's
# data-value counts, else its text; empty ones stay last. Works in the frame that Snakemake's report
# shows a page in, which knows no other file.
_SORT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const value = (cell) => "value" in cell.dataset ? Number(cell.dataset.value)
    : /^–?$/.test(cell.textContent) ? null : cell.textContent;
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = "sort";
    head.append(button);
    button.onclick = () => {
      const order = { ascending: "descending", descending: "none" }[head.ariaSort] ?? "ascending";
      for (const other of heads) other.ariaSort = "none";
      head.ariaSort = order;
      const sign = { ascending: 1, descending: -1, none: 0 }[order];
      let section = 0;
      const keyed = rows.map((row, place) => {
        const heading = row.classList.contains("section");
        section += heading;
        return { row, place, section, heading, key: heading ? null : value(row.cells[k]) };
      });
      keyed.sort((a, b) => a.section - b.section || b.heading - a.heading
        || (sign && ((a.key === null) - (b.key === null) || (a.key !== null && sign * (
          typeof a.key === "number" && typeof b.key === "number" ? a.key - b.key
            : String(a.key).localeCompare(String(b.key), "en", { numeric: true })))))
        || a.place - b.place);
      body.append(...keyed.map((one) => one.row));
    };
  });
}
"""


def page(title: str, body: str, footer: str) -> str:
    """A whole HTML document; `body` is HTML, title and footer are text.

    Tables of the class `sortable` can be sorted by their columns.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{body}\n<footer>{escape(footer)}</footer>\n"
        f"<script>{_SORT}</script>\n</body>\n</html>\n"
    )
