from dataclasses import replace

import pytest

from helpers.synthetic_run import LABELS
from zerogap.reporting import render
from zerogap.reporting.tables.paper import main, reversal


@pytest.fixture
def reversal_table(values):
    return reversal(values, LABELS, ("llama2", "gsm8k"))


def test_numbers_have_a_true_minus_sign_and_no_negative_zero():
    assert render.format_number(-0.00004, 4) == "0.0000"
    assert render.format_number(-0.1, 2) == "−0.10"
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


def test_save_writes_all_formats_with_provenance(tmp_path, reversal_table):
    render.save(reversal_table, tmp_path / "t", {"run": "quick", "packages": {"a": 1}})
    suffixes = sorted(path.suffix for path in tmp_path.iterdir())
    assert suffixes == [".csv", ".html", ".md", ".tex"]
    assert (tmp_path / "t.tex").read_text().startswith("% run quick\n")
    assert "run quick" in (tmp_path / "t.html").read_text()


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
