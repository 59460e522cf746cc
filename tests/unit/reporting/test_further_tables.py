import io
import re

import pandas as pd
import pytest

from helpers.synthetic_run import (
    LABELS,
    overlap_table,
    rail_table,
    rank_table,
    recovery_table,
    solve_tables,
)
from zerogap.analysis import diagnostics as analysis_diagnostics
from zerogap.analysis import inline_numbers as analysis_inline_numbers
from zerogap.analysis.memorisation import memorisation as check_memorisation
from zerogap.analysis.strata import values_by_bins
from zerogap.reporting import render
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.tables.paper import inline_numbers
from zerogap.reporting.tables.supplementary import (
    JOB_COLUMNS,
    cost,
    diagnostics,
    extraction_agreement,
    intervals,
    memorisation,
    pairs,
    strata,
    subsets,
)

SETTING = ("llama2", "gsm8k")
PLACE = {"model": "llama2", "benchmark": "gsm8k"}


def test_intervals_shows_paired_differences_and_the_noise_floor(values):
    table = intervals(values, LABELS)
    text = render.to_markdown(table)
    assert text.count("Clean model, second batch") == 2
    ted = next(row for row in table.rows if row.key == "ted")
    identity = next(row for row in table.rows if row.key == "identity")
    assert ted.cells[2].value == pytest.approx(ted.cells[0].value - identity.cells[0].value)
    assert not identity.cells[2].is_number
    assert ted.cells[-1].value == 2 / 40  # questions without samples
    assert re.search(r"\[−0\.\d{3}, ", text)


def test_a_difference_is_marked_if_it_excludes_zero_among_all_pairs():
    columns = ["model", "benchmark", "strategy", "subset", "metric", "value", "ci_low", "ci_high"]
    rows = [
        ("a", "sa_ppg", 0.2, 0.1, 0.3),
        ("a", "sa_ppg_vs_identity", -0.2, -0.3, -0.1),
        ("a", "sa_ppg_maxt_vs_identity", -0.2, -0.4, -0.05),
        ("b", "sa_ppg_vs_identity", -0.2, -0.3, -0.1),
        ("b", "sa_ppg_maxt_vs_identity", -0.2, -0.5, 0.1),
        ("b", "sa_ppg_vs_cap_vs_ban", -0.2, -0.3, -0.1),
        ("b", "sa_ppg_maxt_vs_cap_vs_ban", -0.2, -0.4, -0.05),
    ]
    frame = pd.DataFrame([(*SETTING, name, "all", *rest) for name, *rest in rows], columns=columns)
    table = intervals(MetricTable([frame]), LABELS)
    assert [row.cells[2].format(3) for row in table.rows] == ["−0.200†", "−0.200"]
    assert "†: excludes 0" in table.notes[-1]
    assert r"$-$0.200$^{\dagger}$" in render.to_latex(table)
    assert MetricTable([frame]).get(*SETTING, "b", "sa_ppg_vs_cap_vs_ban").mark == "†"


def test_pairs_has_every_pair_of_strategies_with_the_wider_interval_last(values, metrics_table):
    table = pairs(values, LABELS)
    strategies = set(metrics_table.strategy) - {"clean", "clean_batch2"}
    rows = [row for row in table.rows if row.section == "Llama2 × GSM8K"]
    assert len({row.key for row in rows}) == len(strategies) * (len(strategies) - 1) / 2
    setting = metrics_table.query("benchmark == 'gsm8k' and subset == 'all'")
    values_of = setting.set_index(["strategy", "metric"]).value
    row = next(row for row in rows if row.key == "ted-railcap")
    assert row.name == "TED − RailCap"
    alone, among_all = row.cells
    assert alone.value == among_all.value
    assert alone.value == pytest.approx(values_of["ted", "sa_ppg"] - values_of["railcap", "sa_ppg"])
    assert among_all.low < alone.low < alone.high < among_all.high


def test_subsets_has_every_metric_for_leaked_and_unleaked_questions(values, metrics_table):
    table = subsets(values, LABELS)
    rows = {(row.section, row.key): row for row in table.rows}
    clean = rows["Llama2 × GSM8K", "clean@leaked"]
    assert [not cell.is_number for cell in clean.cells] == [False] + [True] * 8
    wanted = metrics_table.query("strategy == 'ted' and benchmark == 'pq' and subset == 'unleaked'")
    wanted = wanted.set_index("metric").value
    ted = rows["Llama2 × PQ", "ted@unleaked"]
    assert ted.name == "TED, unleaked"
    assert [cell.value for cell in ted.cells] == wanted[[c.key for c in table.columns]].tolist()
    keys = [key for section, key in rows if section == "Llama2 × PQ"]
    assert keys[0::2] == [key.replace("@unleaked", "@leaked") for key in keys[1::2]]


def test_strata_has_sa_ppg_for_several_numbers_of_strata():
    clean, solve = solve_tables()
    compared = {name: solve[name] for name in ("identity", "railcap")}
    table = strata(values_by_bins(clean, compared).assign(**PLACE), LABELS)
    assert [row.name for row in table.rows] == ["Identity", "RailCap"]
    assert [column.full_title for column in table.columns[-2:]] == ["SA-PPG B = 50", "A-PPG"]
    of_20 = strata(values_by_bins(clean, compared, 20).assign(**PLACE), LABELS)
    assert [column.title for column in of_20.columns] == ["B = 5", "B = 10", "B = 20", "A-PPG"]
    assert re.search(r"of 5 strata, \d have a question, of which \d have one", table.notes[0])


def test_inline_numbers_shows_the_published_text_and_its_place():
    clean, strategies = solve_tables(n=40, m=10)
    frame = analysis_inline_numbers.inline_numbers(
        clean, strategies["clean_batch2"], strategies, rank_table(n=40), n_resamples=40
    )
    table = inline_numbers(frame)
    text = render.to_markdown(table)
    assert "nearly a quarter" in text
    assert "Section 5.2.2" in text
    rows = pd.read_csv(io.StringIO(render.to_csv(table))).set_index("key")
    assert rows.loc["share_never_solved", "value"] == (clean.n_correct == 0).mean()


def test_extraction_agreement_has_a_section_per_owner_and_names_a_single_rule():
    common = {"strategy": "railcap", "responses": 10, "answered own": 0.9, "correct own": 0.5}
    more = {"answered strict-match": 0.8, "agree strict-match": 0.7}
    gsm8k = {"benchmark": "GSM8K", "run_rule": "numeric"} | common | more
    trivia = {"benchmark": "Trivia", "run_rule": "strict-match"} | common
    table = extraction_agreement(pd.DataFrame([gsm8k]), LABELS)
    assert [c.full_title for c in table.columns] == [
        *("Responses", "Answered numeric", "Answered strict-match", "Correct numeric"),
        "Same mark as numeric strict-match",
    ]
    (row,) = table.rows
    assert (row.name, row.section) == ("RailCap", "")
    assert [cell.value for cell in row.cells] == [10, 0.9, 0.8, 0.5, 0.7]
    table = extraction_agreement(pd.DataFrame([gsm8k, trivia]), LABELS)
    assert [row.section for row in table.rows] == ["GSM8K", "Trivia"]
    assert table.columns[1].full_title == "Answered the run's rule"
    assert [row.cells[2].format(1) for row in table.rows] == ["0.8", "–"]


def test_memorisation_shows_the_verdict_and_its_reasons():
    clean, strategies = solve_tables(n=40, m=10)
    overlap = overlap_table(n=40, m=10)
    tables = (clean, strategies["identity"], overlap, overlap.assign(rouge_l=0.5))
    frame = check_memorisation(*tables, n_resamples=40).assign(**PLACE)
    table = memorisation(frame, LABELS)
    assert table.rows[0].name == "Llama2 × GSM8K"
    assert table.rows[0].cells[0].text == frame.loc[0, "verdict"]
    assert frame.loc[0, "text"] in table.notes[0]


def test_cost_sums_tokens_and_seconds_per_job_and_kind():
    jobs = pd.DataFrame(
        [
            ("llama2", "", "train_preparation", None, None, 5.0),
            ("llama2", "gsm8k", "adapter", None, None, 10.0),
            ("llama2", "gsm8k", "railcap", 3, 6, 3.0),
            ("llama2", "gsm8k", "identity", 3, 6, float("nan")),
        ],
        columns=JOB_COLUMNS,
    )
    table = cost(jobs, LABELS)
    rows = pd.read_csv(io.StringIO(render.to_csv(table))).set_index("key")
    columns = ["responses", "tokens", "tokens_per_response", "seconds", "tokens_per_second"]
    assert rows.loc["all", columns].tolist() == [6, 12, 2, 18, 2]
    assert rows.loc["preparation of the base", "seconds"] == 5
    markdown = re.sub(" +", " ", render.to_markdown(table))
    assert "| *Llama2* | | | | | |\n| Preparation of the base | – | – | – | 5.0 | – |" in markdown
    assert "| RailCap | 3 | 6 | 2.0 | 3.0 | 2 |" in markdown


def test_diagnostics_has_the_clean_model_and_leaked_and_unleaked_rows_per_setting():
    clean, strategies = solve_tables(n=40, m=10)
    frame = analysis_diagnostics.diagnostics(
        *(rail_table(n=40, m=10), recovery_table(n=40), clean, strategies["clean_batch2"]),
        n_resamples=40,
    )
    parts = [frame.assign(model="llama2", benchmark=benchmark) for benchmark in ("gsm8k", "pq")]
    table = diagnostics(pd.concat(parts), LABELS)
    assert [(row.section, row.name) for row in table.rows[:6:5]] == [
        ("Llama2 × GSM8K", "Clean model"),
        ("Llama2 × PQ", "Clean model"),
    ]
    assert [row.name for row in table.rows[1:5]] == [
        "Identity, leaked", "Identity, unleaked", "RailCap, leaked", "RailCap, unleaked",
    ]  # fmt: skip
    rows = pd.read_csv(io.StringIO(render.to_csv(table))).set_index(["setting", "key"])
    rows = rows.loc["Llama2 × PQ"]
    expected = frame.set_index(["responses", "subset", "measure", "kind"])
    wanted = expected.loc[("railcap", "leaked", "rail_steps", "digit")]
    assert rows.loc["railcap@leaked", "rail_digit"] == wanted["value"]
    assert rows.loc["railcap@leaked", "rail_digit_ci_low"] == wanted["ci_low"]
    # The recovery rate is the clean model's.
    assert rows["recovery"].notna().tolist() == [True, False, False, False, False]
    assert f"Recovery rate of Llama2 × PQ: {rows['recovery'].iloc[0]:.2f} [" in table.notes[1]
