"""The look of the HTML that goes into the report: one self-contained page a table or sheet."""

from html import escape

_STYLE = """
body { font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
       color: #1a1a1a; background: #fff; margin: 1.5rem; }
h1 { font-size: 1.25rem; margin: 0 0 .6rem; }
h2 { font-size: 1.05rem; margin: 1.8rem 0 .3rem; max-width: 60rem; }
p { max-width: 52rem; margin: .5rem 0; }
table { border-collapse: collapse; border-top: 2px solid #1a1a1a; border-bottom: 2px solid #1a1a1a;
        margin: .9rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .65rem; text-align: right; vertical-align: top; font-weight: normal; }
th:first-child, td:first-child, .text { text-align: left; }
th, td:first-child, .text { white-space: nowrap; }
.wide { overflow-x: auto; }
thead tr:last-child th { border-bottom: 1px solid #1a1a1a; font-weight: 600; }
th.group { text-align: center; font-weight: 600; }
th.group span { display: block; border-bottom: 1px solid #999; padding-bottom: .15rem; }
tr.section td { border-top: 1px solid #999; font-style: italic; padding-top: .5rem; }
tbody tr:hover:not(.section) { background: #f4f6f8; }
.interval { display: block; font-size: .78em; color: #666; white-space: nowrap; }
.note, footer { font-size: .85rem; color: #555; }
footer { margin-top: 1.2rem; border-top: 1px solid #ddd; padding-top: .4rem; }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: .8rem; font-size: .85rem;
         font-weight: 600; white-space: nowrap; }
.supported { background: #d3ecdf; color: #0b4f33; }
.not-supported { background: #f8d9c9; color: #7a2b05; }
.cannot-tell { background: #e6e6ea; color: #3d3d47; }
"""


def page(title: str, body: str, footer: str) -> str:
    """A whole HTML document; `body` is HTML, title and footer are text."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{body}\n<footer>{escape(footer)}</footer>\n</body>\n</html>\n"
    )
