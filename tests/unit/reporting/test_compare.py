import pytest

from helpers.synthetic_run import LABELS
from zerogap.published import as_metrics
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import to_markdown
from zerogap.reporting.tables import paper
from zerogap.reporting.tables.paper import main_vs_paper, of_one_setting


def test_vs_paper_has_three_columns_per_column_of_the_table(values):
    table = main_vs_paper(values, LABELS, [])
    assert [c.title for c in table.columns] == ["paper", "this run", "difference"] * 2
    groups = dict.fromkeys(column.group for column in table.columns)
    assert list(groups) == ["GSM8K Llama2", "PQ Llama2"]
    (identity,) = (row for row in table.rows if row.key == "identity")
    assert [identity.cells[k].value for k in (0, 3)] == [0.3261, 0.2549]
    main = paper.main(values, LABELS)
    assert [identity.cells[k] for k in (1, 4)] == list(main.rows[0].cells)


def test_a_difference_from_the_paper_has_this_runs_interval_moved():
    rows = as_metrics().query("metric == 'sa_ppg'").assign(ci_low=0.0, ci_high=0.5)
    table = main_vs_paper(MetricTable([rows.assign(value=0.2)]), LABELS, [])
    published, value, difference = table.rows[0].cells[:3]
    assert (published.value, value.value) == (0.3261, 0.2)
    assert difference.value == pytest.approx(-0.1261)
    assert difference.format_interval(4) == "[−0.3261, 0.1739]"


def test_a_different_protocol_gives_no_differences_and_a_reason(values):
    table = main_vs_paper(values, LABELS, ["test questions 100, not 1319"])
    assert [column.title for column in table.columns] == ["paper", "this run"] * 2
    assert "test questions 100, not 1319." in table.notes[-1]


def test_values_that_the_paper_does_not_have_are_dashes(values, metrics_table):
    build = of_one_setting(paper.reversal, "Table 1")
    table = build(values, LABELS, ("llama2", "pq"), [])
    assert table.columns[0].full_title == "G-AP paper"
    assert not any(row.cells[0].is_number for row in table.rows)
    assert "–" in to_markdown(table)
    mistral = MetricTable([metrics_table.assign(model="mistral")])
    table = build(mistral, LABELS, ("mistral", "gsm8k"), [])
    assert table.rows
    assert not any(row.cells[0].is_number for row in table.rows)
