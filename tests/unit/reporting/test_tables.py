"""Our tables, filled with the published numbers, are the paper's tables."""

import csv
import io
import json
import re
from dataclasses import replace

import pandas as pd
import pytest

import table as table_script
import table_cost as cost_script
from helpers.synthetic_run import STRATEGIES, overlap_table, rank_table, solve_tables
from zerogap.analysis.inline_numbers import inline_numbers
from zerogap.analysis.memorisation import memorisation
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.metrics.evaluate import evaluate
from zerogap.published import as_metrics
from zerogap.reporting import render, tables
from zerogap.reporting.tables import Labels, MetricTable

SETTING = ("llama2", "gsm8k")

# The rows of the paper's LaTeX between \toprule and \bottomrule.
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
 & $\Delta^{+}_s$ & $\Delta^{-}_s$ & G-APP & A-PPG & SA-PPG \\
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
Config & S-$\Delta^{+}_s$ & S-$\Delta^{-}_s$ & SA-PPG \\
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


def build(name, found, labels=None, setting=SETTING):
    labels = labels or Labels()
    if name in table_script.OF_ONE_SETTING:
        return table_script.OF_ONE_SETTING[name](found, labels, setting)
    return table_script.OF_ALL_SETTINGS[name](found, labels)


@pytest.fixture(scope="module")
def metrics_table():
    """Two benchmarks of one model, with the ablation in the first."""
    parts = []
    for benchmark in ("gsm8k", "pq"):
        clean, strategies = solve_tables(n=40, m=10, benchmark=benchmark)
        if benchmark == "pq":
            ablated = [s for s in STRATEGIES if s.startswith("railcap_")]
            strategies = {k: v for k, v in strategies.items() if k not in ablated}
        parts.append(evaluate("llama2", benchmark, clean, strategies, bins=10, n_resamples=40))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def found(metrics_table):
    return MetricTable([metrics_table])


@pytest.mark.parametrize("name", PAPER)
def test_published_numbers_give_the_papers_table(name):
    tex = render.to_latex(build(name, MetricTable([as_metrics()])))
    rows = re.search(r"\\toprule\n(.*)\\bottomrule", tex, flags=re.DOTALL)[1]
    assert rows.split() == PAPER[name].split()
    assert r"\begin{table}[t]" in tex and r"\caption{" in tex


def test_bold_leaves_identity_out_and_says_so():
    table = build("ablation", MetricTable([as_metrics()]))
    assert [row.key for row in table.rows if row.cells[1].bold] == ["railcap"]
    assert "S-Δ⁻ₛ" in table.notes[0] and "SA-PPG" not in table.notes[0]


def test_equal_readings_as_printed_are_both_bold():
    rows = as_metrics()
    tie = (rows.strategy == "shortcut") & (rows.model == "gemma") & (rows.benchmark == "gsm8k")
    rows.loc[tie, "value"] = 0.23130004
    table = build("main", MetricTable([rows]))
    gemma = [row.key for row in table.rows if row.cells[1].bold]
    assert gemma == ["shortcut", "railcap"]


def test_a_run_of_one_model_has_no_empty_columns(found):
    table = build("main", found)
    assert [column.key for column in table.columns] == ["gsm8k/llama2", "pq/llama2"]
    assert len(table.rows) == 5


def test_a_reading_that_is_not_there_is_a_dash(metrics_table):
    rows = metrics_table
    gone = (rows.strategy == "ted") & (rows.benchmark == "pq")
    table = build("main", MetricTable([rows[~gone]]))
    markdown = render.to_markdown(table)
    assert re.search(r"\| TED \| 0\.\d{4} \| – \|", markdown)
    gone = rows.strategy == "shortcut"
    assert "Shortcut" not in render.to_markdown(build("main", MetricTable([rows[~gone]])))


def test_a_new_strategy_comes_before_railcap(metrics_table):
    own = metrics_table[metrics_table.strategy == "ted"].assign(strategy="mine")
    labels = Labels.from_mapping({"strategies": {"mine": "My strategy"}})
    table = build("main", MetricTable([metrics_table, own]), labels)
    assert [row.name for row in table.rows][-2:] == ["My strategy", "RailCap"]
    assert "mine" not in [row.key for row in build("ablation", MetricTable([metrics_table])).rows]


def test_labels_give_names_and_order(found):
    labels = Labels.from_mapping(
        {
            "benchmarks": {"pq": "Paraphrased", "gsm8k": "GSM8K"},
            "models": {"llama2": "Llama (1 M)"},
            "configurations": {"railcap": "n=four"},
        }
    )
    table = build("main", found, labels)
    assert [column.group for column in table.columns] == ["Paraphrased", "GSM8K"]
    assert table.columns[0].title == "Llama (1 M)"
    names = [row.name for row in build("ablation", found, labels).rows]
    assert names == ["Identity", "n=four", "All-Zero"]
    with pytest.raises(InputError, match="labels"):
        Labels.from_mapping({"model": {}})


def test_beside_the_paper_has_a_heading_a_column(found):
    ours, paper = (build("main", r) for r in (found, MetricTable([as_metrics()])))
    table = tables.beside_paper(ours, paper)
    assert [column.title for column in table.columns] == ["paper", "ours", "difference", "interval"]
    sections = dict.fromkeys(row.section for row in table.rows)
    assert list(sections) == ["GSM8K Llama2", "PQ Llama2"]
    identity = [row for row in table.rows if row.key == "identity"]
    assert [row.cells[0].value for row in identity] == [0.3261, 0.2549]
    assert [row.cells[1] for row in identity] == list(ours.rows[0].cells)


def test_a_difference_from_the_paper_has_our_interval_moved():
    rows = as_metrics().query("metric == 'sa_ppg'").assign(ci_low=0.0, ci_high=0.5)
    paper = build("main", MetricTable([as_metrics()]))
    table = tables.beside_paper(build("main", MetricTable([rows.assign(value=0.2)])), paper)
    published, own, difference, interval = table.rows[0].cells
    assert (published.value, own.value) == (0.3261, 0.2)
    assert difference.value == pytest.approx(-0.1261)
    assert interval.text == "[−0.3261, 0.1739]"


def test_another_experiment_has_no_difference_and_says_why(found):
    ours, paper = (build("main", r) for r in (found, MetricTable([as_metrics()])))
    table = tables.beside_paper(ours, paper, ["test questions 100, not 1319"])
    assert [column.title for column in table.columns] == ["paper", "ours"]
    assert "test questions 100, not 1319." in table.notes[-1]


def test_csv_holds_values_and_interval_ends(metrics_table, found):
    rows = list(csv.DictReader(io.StringIO(render.to_csv(build("reversal", found)))))
    railcap = next(row for row in rows if row["key"] == "railcap")
    expected = metrics_table.query(
        "strategy == 'railcap' and benchmark == 'gsm8k' and subset == 'all' and metric == 'sa_ppg'"
    ).iloc[0]
    assert float(railcap["sa_ppg"]) == expected.value
    assert float(railcap["sa_ppg_ci_low"]) == expected.ci_low
    assert float(railcap["sa_ppg_ci_high"]) == expected.ci_high


def test_intervals_table_shows_paired_differences_and_the_floor(found):
    table = build("intervals", found)
    text = render.to_markdown(table)
    assert text.count("Clean model, second batch") == 2
    ted = next(row for row in table.rows if row.key == "ted")
    identity = next(row for row in table.rows if row.key == "identity")
    assert ted.cells[2].value == pytest.approx(ted.cells[0].value - identity.cells[0].value)
    assert identity.cells[2].value is None
    assert re.search(r"\[−0\.\d{3}, ", text)


def test_a_difference_is_marked_where_it_holds_among_all_pairs():
    keys = ["model", "benchmark", "strategy", "subset", "metric", "value", "ci_low", "ci_high"]
    rows = [
        ("a", "sa_ppg", 0.2, 0.1, 0.3),
        ("a", "sa_ppg_vs_identity", -0.2, -0.3, -0.1),
        ("a", "sa_ppg_maxt_vs_identity", -0.2, -0.4, -0.05),
        ("b", "sa_ppg_vs_identity", -0.2, -0.3, -0.1),
        ("b", "sa_ppg_maxt_vs_identity", -0.2, -0.5, 0.1),
    ]
    frame = pd.DataFrame([(*SETTING, name, "all", *rest) for name, *rest in rows], columns=keys)
    table = build("intervals", MetricTable([frame]))
    assert [row.cells[2].shown(3) for row in table.rows] == ["−0.200†", "−0.200"]
    assert "†: leaves out 0" in table.notes[-1]
    assert r"$-$0.200$^{\dagger}$" in render.to_latex(table)


def test_subsets_has_every_metric_of_either_half(found, metrics_table):
    table = build("subsets", found)
    rows = {(row.section, row.key): row for row in table.rows}
    clean = rows["Llama2 × GSM8K", "clean@leaked"]
    assert [cell.value is None for cell in clean.cells] == [False] + [True] * 8
    wanted = metrics_table.query("strategy == 'ted' and benchmark == 'pq' and subset == 'unleaked'")
    wanted = wanted.set_index("metric").value
    ted = rows["Llama2 × PQ", "ted@unleaked"]
    assert ted.name == "TED, unleaked"
    assert [cell.value for cell in ted.cells] == wanted[[c.key for c in table.columns]].tolist()
    keys = [key for section, key in rows if section == "Llama2 × PQ"]
    assert keys[0::2] == [key.replace("@unleaked", "@leaked") for key in keys[1::2]]


def test_noise_floor(found):
    floor = build("noise_floor", found)
    assert [row.key for row in floor.rows] == ["llama2/gsm8k", "llama2/pq"]


def test_numbers_are_printed_with_care():
    assert render.number(-0.00004, 4) == "0.0000"
    assert render.number(-0.1, 2) == "−0.10"
    assert render.number(-1234567.8, 0) == "−1,234,568"
    assert render.number(float("inf"), 3) == "∞"
    assert render.number(float("nan"), 3) == "–"


def test_text_is_escaped_in_every_format():
    table = render.Table(
        label="t",
        caption="50 % of a_b & <c>",
        corner="",
        columns=(render.Column("x", "x|y"),),
        rows=(render.Row("r", "R & D", (render.Cell(text="a < b"),)),),
    )
    assert "&lt;c&gt;" in render.to_html(table) and "a &lt; b" in render.to_html(table)
    assert r"50\,\% of a\_b \& <c>" in render.to_latex(table)
    assert "x∣y" in render.to_markdown(table)


def test_html_is_sorted_by_values_in_full(found):
    table = build("main", found)
    page = render.to_html(table)
    assert '<table class="sortable">' in page
    assert "table.sortable" in page.split("<script>")[1]
    value = table.rows[0].cells[0].value
    assert f'<td data-value="{value}">{value:.4f}<' in page
    bare = replace(table, rows=(render.Row("r", "R", (render.Cell(), render.Cell(text="a"))),))
    assert "data-value=" not in render.to_html(bare).split("<tbody>")[1].split("</tbody>")[0]


def test_save_writes_all_formats_with_their_origin(tmp_path, found):
    render.save(build("reversal", found), tmp_path / "t", {"run": "quick", "packages": {"a": 1}})
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [
        *(".csv", ".html", ".json", ".md", ".tex")
    ]
    assert (tmp_path / "t.tex").read_text().startswith("% run quick\n")
    assert "run quick" in (tmp_path / "t.html").read_text()
    assert json.loads((tmp_path / "t.json").read_text())["provenance"]["packages"] == {"a": 1}


def test_readouts_table(found):
    clean, strategies = solve_tables(n=40, m=10)
    frame = inline_numbers(
        clean, strategies["clean_batch2"], strategies, rank_table(n=40), n_resamples=40
    )
    text = render.to_markdown(tables.readouts(frame))
    assert "nearly a quarter" in text and "Section 5.2.2" in text
    rows = pd.read_csv(io.StringIO(render.to_csv(tables.readouts(frame)))).set_index("key")
    assert rows.loc["share_never_solved", "value"] == (clean.n_correct == 0).mean()


def test_memorisation_table():
    clean, strategies = solve_tables(n=40, m=10)
    overlap = overlap_table(n=40, m=10)
    frame = memorisation(*SETTING, clean, strategies["identity"], overlap, n_resamples=40)
    table = tables.memorisation(frame, Labels())
    assert table.rows[0].name == "Llama2 × GSM8K"
    assert table.rows[0].cells[0].text == frame.loc[0, "verdict"]
    assert frame.loc[0, "text"] in table.notes[0]


def benchmark(path, seconds):
    path.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:00\tNA\n")
    return str(path)


def test_cost_sums_tokens_and_seconds_over_shards_and_jobs(tmp_path):
    samples = pd.DataFrame(
        {
            "question_id": ["a", "a", "b"],
            "sample_id": [0, 1, 0],
            "token_ids": [[1, 2], [3], [4, 5, 6]],
            "text": "",
            "answer": None,
            "extractor": None,
            "correct": False,
            "n_tokens": [2, 1, 3],
            "finish_reason": "eos",
        }
    )
    parquet.write(tmp_path / "samples.parquet", samples, "samples", {})
    made = str(tmp_path / "samples.parquet")
    training = benchmark(tmp_path / "adapter.tsv", 10)
    for number in range(2):
        benchmark(tmp_path / f"railcap.shard-{number}.tsv", 1.5)
    benchmark(tmp_path / "identity.shard-0.tsv", 1.5)  # the other shard's is gone
    jobs = [["llama2", "gsm8k", "adapter", str(tmp_path / "loss.tsv"), training]]
    for strategy in ("railcap", "identity"):
        path = tmp_path / f"{strategy}.shard-{{shard}}.tsv"
        jobs.append(["llama2", "gsm8k", strategy, made, str(path)])
    output = ["--output", str(tmp_path / "cost")]
    cost_script.main(["--jobs", json.dumps(jobs), "--shards", "2", *output])
    rows = pd.read_csv(tmp_path / "cost.csv").set_index("key")
    readings = ["responses", "tokens", "tokens_a_response", "seconds", "tokens_a_second"]
    assert rows.loc["llama2/gsm8k/railcap", readings].tolist() == [3, 6, 2, 3, 2]
    assert rows.loc["llama2/gsm8k/adapter", readings].isna().tolist() == [1, 1, 1, 0, 1]
    # Where part of a job's time is gone, its tokens count and its seconds do not.
    assert rows.loc["llama2/gsm8k/identity", ["tokens", "seconds"]].isna().tolist() == [0, 1]
    assert rows.loc["all", readings].tolist() == [6, 12, 2, 13, 2]
    markdown = (tmp_path / "cost.md").read_text()
    assert "| RailCap | 3 | 6 | 2.0 | 3.0 | 2 |" in markdown
    assert "Of 1 job(s) no benchmark is left" in markdown


def test_a_table_longer_than_a_page_breaks_across_pages():
    rows = tuple(render.Row(f"r{k}", f"R{k}", (render.Cell(k),)) for k in range(render.LONG + 1))
    table = render.Table("t", "A caption.", "", (render.Column("x", "x"),), rows)
    assert r"\begin{longtable}{lr}" in render.to_latex(table)
    short = render.Table("t", "A caption.", "", (render.Column("x", "x"),), rows[:-1])
    assert "longtable" not in render.to_latex(short)


def test_script_makes_a_table(tmp_path, metrics_table):
    path = tmp_path / "metrics.parquet"
    parquet.write(path, metrics_table, "metrics", {})
    common = ["--metrics", str(path), "--output", str(tmp_path / "out")]
    table_script.main(
        ["--table", "main", "--beside-paper", "{}", "--scale", "A tiny run.", *common]
    )
    text = (tmp_path / "out.md").read_text()
    assert "A tiny run." in text and "| difference | interval |" in text
    fewer = json.dumps({"test_questions": [100]})
    table_script.main(["--table", "main", "--beside-paper", fewer, *common])
    text = (tmp_path / "out.md").read_text()
    assert "difference |" not in text and "test questions 100, not 1319" in text
    # The paper has no table of this kind for PQ: nothing is put beside it.
    table_script.main(
        ["--table", "reversal", "--setting", "llama2", "pq", "--beside-paper", "{}", *common]
    )
    assert "–" in (tmp_path / "out.md").read_text()
    with pytest.raises(InputError, match="setting pythia/pq"):
        table_script.main(["--table", "reversal", "--setting", "pythia", "pq", *common])
    with pytest.raises(SystemExit):
        table_script.main(["--table", "reversal", *common])


def test_the_same_reading_twice_is_an_error(metrics_table):
    with pytest.raises(InputError, match="llama2 / gsm8k / .* is there twice"):
        MetricTable([metrics_table, metrics_table.iloc[:1]])
