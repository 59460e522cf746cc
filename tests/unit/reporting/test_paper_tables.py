"""The published numbers, and the tables: filled with these numbers they are the paper's."""

import re
from functools import partial

import pytest

from helpers.synthetic_run import LABELS
from zerogap.errors import InputError
from zerogap.published import as_metrics, printed, protocol_differences, published
from zerogap.reporting import render
from zerogap.reporting.metric_table import Labels, MetricTable
from zerogap.reporting.tables import paper
from zerogap.reporting.tables.paper import vs_paper

SETTING = ("llama2", "gsm8k")

# The rows of the paper's LaTeX tables, between \toprule and \bottomrule, in one notation: the paper
# adds an index s to Δ in Tables 2 and 4.
PAPER = {
    "reversal": r"""
 & G-AP & SA-PPG \\
\midrule
Identity     & 0.3192          & 0.3261 \\
LNE-blocking & \textbf{0.0235} & 0.2932 \\
Shortcut     & 0.1812          & 0.2476 \\
TED          & 0.2813          & 0.3250 \\
RailCap      & 0.0728          & \textbf{0.1914} \\
""",
    "decomposition": r"""
 & $\Delta^{+}$ & $\Delta^{-}$ & G-APP & A-PPG & SA-PPG \\
\midrule
Identity     & 0.3518 & 0.0275 & 0.3243 & 0.3793 & 0.3261 \\
LNE-blocking & 0.1043 & 0.0836 & 0.0207 & 0.1879 & 0.2932 \\
Shortcut     & 0.2088 & 0.0311 & 0.1777 & 0.2399 & 0.2476 \\
TED          & 0.3198 & 0.0338 & 0.2861 & 0.3536 & 0.3250 \\
All-Zero     & 0.0000 & 0.2190 & 0.2190 & 0.2190 & 0.4903 \\
RailCap      & 0.1214 & 0.0420 & 0.0794 & 0.1634 & 0.1914 \\
""",
    "main": r"""
 & \multicolumn{3}{c}{GSM8K} & \multicolumn{3}{c}{PQ} \\
\cmidrule(lr){2-4}\cmidrule(lr){5-7}
Method & Llama2 & Gemma & Pythia & Llama2 & Gemma & Pythia \\
\midrule
Identity     & 0.3261 & 0.3147 & 0.2131 & 0.2549 & 0.2205 & 0.1907 \\
TED          & 0.3250 & 0.3049 & 0.1950 & 0.2524 & 0.2143 & 0.1903 \\
Shortcut     & 0.2476 & 0.2395 & 0.2033 & 0.2242 & 0.2116 & 0.1708 \\
LNE-blocking & 0.2932 & 0.3061 & 0.2079 & 0.3046 & 0.2703 & 0.2171 \\
RailCap      & \textbf{0.1914} & \textbf{0.2313} & \textbf{0.1648}
             & \textbf{0.2090} & \textbf{0.1695} & \textbf{0.1429} \\
""",
    "ablation": r"""
Config & S-$\Delta^{+}$ & S-$\Delta^{-}$ & SA-PPG \\
\midrule
Identity        & 0.2624 & 0.0637 & 0.3261 \\
n=1             & 0.0215 & 0.2218 & 0.2434 \\
n=3             & 0.0577 & 0.1412 & 0.1990 \\
\textbf{n=4}    & 0.0942 & \textbf{0.0972} & \textbf{0.1914} \\
n=5             & 0.0750 & 0.1219 & 0.1969 \\
n=7             & 0.0869 & 0.1092 & 0.1961 \\
n=4, ban        & 0.0726 & 0.1464 & 0.2190 \\
All-Zero        & \textbf{0.0000} & 0.4903 & 0.4903 \\
""",
}


def build(name, values, labels=LABELS, setting=SETTING):
    return getattr(paper, name)(values, labels, *([setting] if name != "main" else []))


def of_paper(name):
    place = {"reversal": "Table 1", "decomposition": "Table 2", "main": "Table 3"}
    return MetricTable([as_metrics(place.get(name, "Table 4"))])


@pytest.mark.parametrize("name", PAPER)
def test_published_numbers_give_the_papers_latex_table(name):
    tex = render.to_latex(build(name, of_paper(name)))
    rows = re.search(r"\\toprule\n(.*)\\bottomrule", tex, flags=re.DOTALL)[1]
    assert rows.split() == PAPER[name].split()
    assert r"\begin{table}[t]" in tex
    assert r"\caption{" in tex


def test_identity_is_never_bold_and_a_note_says_where_it_is_lowest():
    table = build("ablation", of_paper("ablation"))
    assert [row.key for row in table.rows if row.cells[1].bold] == ["railcap"]
    assert "S-Δ⁻" in table.notes[-1]
    assert "SA-PPG" not in table.notes[-1]


def test_the_noise_floor_is_never_bold_and_a_note_says_what_it_is(metrics_table):
    lowest = metrics_table.assign(value=lambda rows: rows.value * (rows.strategy != "clean_batch2"))
    table = build("main", MetricTable([lowest]))
    (floor,) = (row for row in table.rows if row.key == "clean_batch2")
    assert [cell.value for cell in floor.cells] == [0, 0]
    assert not any(cell.bold for cell in floor.cells)
    assert "Noise floor: two batches of the clean model" in " ".join(table.notes)
    assert "a point estimate" in " ".join(table.notes)


def test_values_that_are_equal_as_printed_are_both_bold():
    rows = as_metrics("Table 3")
    tie = (rows.strategy == "shortcut") & (rows.model == "gemma") & (rows.benchmark == "gsm8k")
    rows.loc[tie, "value"] = 0.23130004
    table = build("main", MetricTable([rows]))
    gemma = [row.key for row in table.rows if row.cells[1].bold]
    assert gemma == ["shortcut", "railcap"]


def test_a_run_has_the_rows_and_columns_that_it_has_values_for(metrics_table):
    rows = metrics_table
    assert "railcap_n3" in [row.key for row in build("main", MetricTable([rows])).rows]
    rows = rows[~rows.strategy.str.contains("railcap_|ted_|blocking_")]
    table = build("main", MetricTable([rows]))
    assert [column.key for column in table.columns] == ["gsm8k/llama2", "pq/llama2"]
    assert [row.key for row in table.rows][-2:] == ["railcap", "clean_batch2"]
    assert len(table.rows) == 6
    missing = rows.strategy.eq("ted") & rows.benchmark.eq("pq") | rows.strategy.eq("shortcut")
    markdown = render.to_markdown(build("main", MetricTable([rows[~missing]])))
    assert re.search(r"\| TED +\| +0\.\d{4} \| +– \|", markdown)
    assert "Shortcut" not in markdown


def test_strategies_that_the_paper_does_not_have_come_before_railcap(metrics_table):
    custom = metrics_table[metrics_table.strategy == "ted"].assign(strategy="mine")
    labels = Labels(strategies={"mine": "My strategy"})
    table = build("main", MetricTable([metrics_table, custom]), labels)
    assert [row.name for row in table.rows][-3:] == ["My strategy", "RailCap", "Noise floor"]
    assert "mine" not in [row.key for row in build("ablation", MetricTable([metrics_table])).rows]


def test_labels_give_names_and_order(values):
    labels = Labels(
        benchmarks={"pq": "Paraphrased", "gsm8k": "GSM8K"},
        models={"llama2": "Llama (1 M)"},
        configurations={"railcap": "n=four"},
    )
    table = build("main", values, labels)
    assert [column.group for column in table.columns] == ["Paraphrased", "GSM8K"]
    assert table.columns[0].title == "Llama (1 M)"
    names = [row.name for row in build("ablation", values, labels).rows]
    assert names == ["Identity", "n=four", "All-Zero", "Noise floor"]


def test_a_setting_without_metric_values_is_an_error(values):
    with pytest.raises(InputError, match="setting pythia/pq"):
        build("reversal", values, setting=("pythia", "pq"))


def test_a_duplicate_metric_value_is_an_error(metrics_table):
    with pytest.raises(InputError, match=r"duplicate row: llama2 / gsm8k / "):
        MetricTable([metrics_table, metrics_table.iloc[:1]])


def main_vs_paper(values, differences=()):
    return vs_paper(paper.main, "Table 3", differences, values, LABELS)


def test_vs_paper_has_three_columns_per_column_of_the_table(values):
    table = main_vs_paper(values)
    assert [c.title for c in table.columns] == ["paper", "this run", "difference"] * 2
    groups = dict.fromkeys(column.group for column in table.columns)
    assert list(groups) == ["GSM8K Llama2", "PQ Llama2"]
    (identity,) = (row for row in table.rows if row.key == "identity")
    assert [identity.cells[k].value for k in (0, 3)] == [0.3261, 0.2549]
    main = paper.main(values, LABELS)
    assert [identity.cells[k] for k in (1, 4)] == list(main.rows[0].cells)


def test_a_difference_from_the_paper_has_this_runs_interval_moved():
    rows = as_metrics().query("metric == 'sa_ppg'").assign(ci_low=0.0, ci_high=0.5)
    table = main_vs_paper(MetricTable([rows.assign(value=0.2)]))
    published, value, difference = table.rows[0].cells[:3]
    assert (published.value, value.value) == (0.3261, 0.2)
    assert difference.value == pytest.approx(-0.1261)
    assert difference.format_interval(4) == "[−0.3261, 0.1739]"


def test_a_different_protocol_gives_no_differences_and_a_reason(values):
    table = main_vs_paper(values, ["test questions 100, not 1319"])
    assert [column.title for column in table.columns] == ["paper", "this run"] * 2
    assert "test questions 100, not 1319." in table.notes[-1]


def test_values_that_the_paper_does_not_have_are_dashes(values, metrics_table):
    reversal_vs_paper = partial(vs_paper, paper.reversal, "Table 1", [])
    table = reversal_vs_paper(values, LABELS, ("llama2", "pq"))
    assert table.columns[0].full_title == "G-AP paper"
    assert not any(row.cells[0].is_number for row in table.rows)
    assert "–" in render.to_markdown(table)
    mistral = MetricTable([metrics_table.assign(model="mistral")])
    table = reversal_vs_paper(mistral, LABELS, ("mistral", "gsm8k"))
    assert table.rows
    assert not any(row.cells[0].is_number for row in table.rows)


def pivot(place):
    rows = published()
    return rows[rows["place"] == place].pivot(index="strategy", columns="metric", values="value")


def test_ratios_of_the_text_follow_from_the_tables():
    table = pivot("Table 2")
    lne, railcap = table.loc["lne_blocking"], table.loc["railcap"]
    ratios = {
        "delta_minus_ratio_lne_railcap": lne["delta_minus"] / railcap["delta_minus"],
        "g_app_ratio_railcap_lne": railcap["g_app"] / lne["g_app"],
    }
    for metric, ratio in ratios.items():
        assert round(ratio, 1) == printed(metric)[0]
    assert round(lne["sa_ppg"] / lne["g_app"]) == printed("verdict_factor_lne")[0]
    g_ap = pivot("Table 1").loc["lne_blocking", "g_ap"]
    assert round(lne["g_app"] - g_ap, 4) == printed("g_app_minus_g_ap_lne")[0]
    railcap = pivot("Table 4").loc["railcap"]
    parity = railcap["s_delta_plus"] - railcap["s_delta_minus"]
    assert round(parity, 4) == printed("s_delta_difference_railcap")[0]
    assert printed("nothing_of_the_kind") is None


def test_symbols_are_not_replaced_within_names():
    assert render.format_html("of M_cl, GSM_clean") == "of M<sub>cl</sub>, GSM_clean"
    assert render.format_latex("of M_co, LLM_code") == r"of $M_{\mathrm{co}}$, LLM\_code"


def test_protocol_differences_names_what_differs_from_the_paper():
    same = {
        "questions": "",
        "base_model": {"llama2": "folder/llama-2-7b-hf", "mine": "gpt2"},
        "test_questions": [1319],
        "epochs": [5, 5],
        "learning_rate": [2.0e-4, 2.0e-4],
    }
    assert protocol_differences(same) == protocol_differences({}) == ()
    other = {"questions": "generated", "base_model": {"pythia": "pythia-70m"}, "epochs": [5, 10]}
    assert protocol_differences(same | other) == (
        "questions generated, not GSM8K's",
        "base model pythia-70m, not Pythia-12B",
        "epochs 5 and 10, not 5",
    )
