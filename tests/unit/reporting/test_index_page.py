"""The first page of a run."""

import re

import pandas as pd
import pytest

from helpers.browser import OVERFLOW, evaluate, needs_chromium
from zerogap.reporting.catalog import FIGURES, FIRST_PAGE_FIGURES, TABLES
from zerogap.reporting.index_page import Outcome
from zerogap.reporting.labels import Labels
from zerogap.reporting.tables import paper

PNG = b"\x89PNG\r\n"


@pytest.fixture
def outcome(values, tmp_path):
    figures = {name: tmp_path / f"{name}.png" for name in FIRST_PAGE_FIGURES}
    for path in figures.values():
        path.write_bytes(PNG)
    comparisons = [
        ("first", "Section 1", "A < B & C.", "supported"),
        ("first", "Section 1", "A < B & C.", "supported"),
        ("second", "Table 3", "D is best.", "cannot tell"),
    ]
    return Outcome(
        run="small",
        scale_note="Toy models.",
        scale="Run “small”: 40 questions.",
        table=paper.main(values, Labels()),
        claims=pd.DataFrame(comparisons, columns=["claim", "place", "text", "verdict"]),
        figures=figures,
    )


def test_the_page_states_scale_table_verdicts_and_figures(outcome):
    page = outcome.to_html("made by a test")
    assert page.index("Toy models.") < page.index("Noise floor") < page.index("Of 2 claims")
    assert "this run supports 1, does not support 0, and cannot tell for 1." in page
    assert page.count("A &lt; B &amp; C.") == 1
    assert page.count('src="data:image/png;base64,iVBORw0K"') == 2


def test_the_page_links_to_every_table_and_figure(outcome):
    links = re.findall(r'href="([^"]*)"', outcome.to_html(""))
    assert {link for link in links if "tables/" in link} == {f"tables/{t}.html" for t in TABLES}
    assert {link for link in links if "figures/" in link} == {f"figures/{f}.png" for f in FIGURES}
    assert "report.html" in links


def test_the_fragment_fits_into_another_page(outcome):
    fragment = outcome.to_fragment()
    assert "Toy models." in fragment
    assert not re.search(r"<(?:html|body|style|script|a)\b", fragment)


@needs_chromium
def test_the_page_does_not_scroll_sideways_on_a_phone(outcome, tmp_path):
    page = tmp_path / "index.html"
    page.write_text(outcome.to_html("made by a test"))
    assert evaluate(page, OVERFLOW, width=390) == 0
    first_column = """
      const wide = document.querySelector(".wide"), cell = wide.querySelector("tbody td");
      wide.scrollLeft = 200;
      return cell.getBoundingClientRect().left - wide.getBoundingClientRect().left;
    """
    assert evaluate(page, first_column, width=390) == 0
