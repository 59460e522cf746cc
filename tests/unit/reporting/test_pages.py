"""The first page of a run, and its provenance."""

import re
from dataclasses import replace

import pandas as pd
import pytest
import yaml

from helpers.browser import OVERFLOW, evaluate, needs_chromium
from helpers.synthetic_run import LABELS
from zerogap.reporting import render
from zerogap.reporting.pages import collect_versions, index_html, outcome_html, provenance_html
from zerogap.reporting.tables.paper import main

CONFIG = {"run": "tiny", "models": {"llama2": {"label": "Llama & 2", "family": "llama"}}}
TABLES = {"1. The paper's": {"main": "Table 3"}, "2. Beyond": {"cost": "The cost"}}


@pytest.fixture
def fragment(values, tmp_path):
    (tmp_path / "figure.png").write_bytes(b"\x89PNG\r\n")
    comparisons = [
        ("first", "the metric", "Section 1", "A < B & C.", "supported"),
        ("first", "the metric", "Section 1", "A < B & C.", "supported"),
        ("second", "RailCap", "Table 3", "D is best.", "cannot tell"),
    ]
    return outcome_html(
        scale_note="Toy models.",
        scale="Run “small”: 40 questions.",
        table=main(values, LABELS),
        claims=pd.DataFrame(comparisons, columns=["claim", "about", "place", "text", "verdict"]),
        figures={"Figure 1": tmp_path / "figure.png"},
        outdated=["results/small/cells/ted/samples.parquet"],
    )


def test_the_outcome_states_scale_table_verdicts_and_figures(fragment):
    assert "older than the code: 1</strong>" in fragment
    assert fragment.index("Toy models.") < fragment.index("Noise floor")
    assert fragment.index("Noise floor") < fragment.index("Of 2 claims")
    assert "this run supports 1, does not support 0, and cannot tell for 1." in fragment
    assert fragment.count("A &lt; B &amp; C.") == 1
    headings = [fragment.index(f"About {about}") for about in ("the metric", "RailCap")]
    assert headings[0] < fragment.index("A &lt; B &amp; C.") < headings[1]
    assert "At this scale many are expected to be not" in fragment
    assert fragment.count('src="data:image/png;base64,iVBORw0K"') == 1
    # It fits into another page.
    assert not re.search(r"<(?:html|body|style|script|a)\b", fragment)


@needs_chromium
def test_the_page_does_not_scroll_sideways_on_a_phone(fragment, tmp_path):
    path, figures = tmp_path / "index.html", {"1. The paper's": {"strata": "Strata"}}
    path.write_text(index_html("small", fragment, TABLES, figures, "a test"))
    assert evaluate(path, OVERFLOW, width=390) == 0
    first_column = """
      const wide = document.querySelector(".wide"), cell = wide.querySelector("tbody td");
      wide.scrollLeft = 200;
      return cell.getBoundingClientRect().left - wide.getBoundingClientRect().left;
    """
    assert evaluate(path, first_column, width=390) == 0


def test_a_stage_written_by_two_versions_lists_both():
    provenances = [
        {"commit": commit, "device": "cpu", "packages": {"torch": "1", "peft": None}}
        for commit in "ab"
    ]
    versions = collect_versions(provenances)
    assert versions == {"commit": "a, b", "device": "cpu", "torch": "1"}
    assert collect_versions([{"shards": provenances}]) == versions


def test_provenance_has_versions_configuration_and_questions_that_do_not_leak():
    left_out = {"PQ": ["test-0002", "test-0007"]}
    software = {"Responses": {"torch": "2.13.0"}}
    page = provenance_html(software, left_out, CONFIG, "N = 3 questions.", "")
    for text in (
        *("<td>torch</td>", "2.13.0", "N = 3 questions.", "test-0002, test-0007"),
        "PQ: 2 questions have no valid paraphrase",
    ):
        assert text in page
    shown = page.split("<pre>")[1].split("</pre>")[0].replace("&amp;", "&")
    assert yaml.safe_load(shown) == CONFIG


def test_numbers_have_a_true_minus_sign_and_no_negative_zero():
    assert render.format_number(-0.00004, 4) == "0.0000"
    assert render.format_number(-0.1, 2) == "−0.10"
    # The same mean, summed in two orders.
    assert [render.format_number(v, 3) for v in (0.2275, 0.22749999999999998)] == ["0.228"] * 2
    assert render.format_number(-1234567.8, 0) == "−1,234,568"
    assert render.format_number(float("inf"), 3) == "∞"
    assert render.Cell().format(3) == "–"


def test_text_is_escaped_in_every_format():
    table = render.Table(
        caption=r"50 % of a_b & <c> ${x}^2~\y",
        columns=(render.Column("x", "x|y"),),
        rows=(render.Row("r", "R & D", (render.Cell(text="a < b"),)),),
    )
    assert "&lt;c&gt;" in render.to_html(table)
    assert "a &lt; b" in render.to_html(table)
    latex = render.to_latex(table)
    assert (
        r"50\,\% of a\_b \& <c> \$\{x\}\textasciicircum{}2\textasciitilde{}\textbackslash{}y"
        in latex
    )
    assert "x∣y" in render.to_markdown(table)


def test_html_sorts_by_values_in_full(values):
    table = main(values, LABELS)
    page = render.to_html(table)
    assert '<table class="sortable">' in page
    assert "table.sortable" in page.split("<script>")[1]
    value = table.rows[0].cells[0].value
    assert f'<td data-value="{value}">{value:.4f}<' in page
    bare = replace(table, rows=(render.Row("r", "R", (render.Cell(), render.Cell(text="a"))),))
    assert "data-value=" not in render.to_html(bare).split("<tbody>")[1].split("</tbody>")[0]


def test_a_table_longer_than_a_page_is_a_longtable():
    limit = render.MAX_ROWS_PER_PAGE
    rows = tuple(render.Row(f"r{k}", f"R{k}", (render.Cell(k),)) for k in range(limit + 1))
    table = render.Table((render.Column("x", "x"),), rows)
    assert r"\begin{longtable}{lr}" in render.to_latex(table)
    short = render.Table((render.Column("x", "x"),), rows[:-1])
    assert "longtable" not in render.to_latex(short)


def test_a_table_without_rows_renders_in_every_format():
    table = render.Table((render.Column("x", "x"),), (), caption="A caption.")
    assert r"\bottomrule" in render.to_latex(table)
    assert "A caption." in render.to_markdown(table)
    assert "<tbody>" in render.to_html(table)
    assert render.to_csv(table) == "strategy,key,x\n"
