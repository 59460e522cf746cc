r"""Jinja templates of the reports, with the paper's symbols as HTML and LaTeX.

LaTeX templates use ``<< value >>`` and ``<% block %>``: braces belong to LaTeX.
"""

import re
from collections.abc import Callable
from html import escape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_LATEX = {
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
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "\\": r"\textbackslash{}",
    "|": r"$|$",
}
_SYMBOLS = re.compile("|".join(map(re.escape, _LATEX)))  # the first that matches counts
_HTML = {"M_cl": "M<sub>cl</sub>", "M_co": "M<sub>co</sub>"}


def format_latex(text: str) -> str:
    """Plain text with the paper's symbols as LaTeX."""
    return _SYMBOLS.sub(lambda match: _LATEX[match[0]], text)


def format_html(text: str) -> Markup:
    """Plain text with the paper's symbols as HTML."""
    text = escape(text)
    for symbol, marked in _HTML.items():
        text = text.replace(symbol, marked)
    return Markup(text)  # noqa: S704 (escaped above)


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
    """Fill a template of the package's assets.

    Args:
        name: File name; ``.tex.j2`` is LaTeX, anything else HTML, whose values are escaped.
        values: The template's variables.
    """
    environment = _LATEX_TEMPLATES if name.endswith(".tex.j2") else _HTML_TEMPLATES
    return environment.get_template(name).render(**values)
