"""Verdicts from intervals, and the sheet."""

import importlib
import json

import pandas as pd
import pytest

from helpers.synthetic_run import overlap_table, rank_table, solve_tables
from zerogap.io import parquet
from zerogap.published import as_metrics, printed
from zerogap.reporting import claims
from zerogap.reporting.claims import CANNOT_TELL, NOT_SUPPORTED, SUPPORTED, Evidence
from zerogap.reporting.render import Cell
from zerogap.reporting.tables import Labels, MetricTable

SETTING = ("llama2", "gsm8k")
scripts = {
    name: importlib.import_module(name)
    for name in (
        "make_all_zero",
        "compute_metrics",
        "table_inline_numbers",
        "check_memorisation",
        "check_claims",
    )
}
KEYS = ["model", "benchmark", "metric"]


def paper_with_intervals(width):
    """The paper's readings and their paired differences, each ± `width`."""
    rows = as_metrics()
    pairs = rows.merge(rows, on=KEYS, suffixes=("", "_other"))
    pairs = pairs[pairs["strategy"] != pairs["strategy_other"]]
    differences = pairs.assign(
        metric=pairs["metric"] + "_vs_" + pairs["strategy_other"],
        value=pairs["value"] - pairs["value_other"],
    )[rows.columns]
    table = pd.concat([rows, differences], ignore_index=True)
    return table.assign(ci_low=table["value"] - width, ci_high=table["value"] + width)


def around(value, width):
    return Cell(value, value - width, value + width)


def evidence(table=None, width=0.001, **numbers):
    table = paper_with_intervals(width) if table is None else table
    keys = ("readout_gap_01", "readout_gap_probability", "share_never_solved", "share_runner_up")
    found = {key: around(printed(key)[0], width) for key in keys} | numbers
    collapse = {SETTING: around(0.4, width)}
    return Evidence(MetricTable([table]), SETTING, found, collapse, Labels())


def verdicts(given):
    return {j.claim.key: j.verdict for j in claims.judge(given)}


def test_the_papers_own_numbers_support_every_claim():
    assert set(verdicts(evidence(width=0.0003)).values()) == {SUPPORTED}


def test_with_wide_intervals_nothing_can_be_told():
    assert set(verdicts(evidence(width=0.6)).values()) == {CANNOT_TELL}


def test_without_intervals_nothing_can_be_told():
    table = paper_with_intervals(0.001).assign(ci_low=float("nan"), ci_high=float("nan"))
    found = verdicts(evidence(table, share_runner_up=Cell(0.5)))
    assert found.pop("collapse") == found.pop("readout") == found.pop("never_solved") == SUPPORTED
    assert set(found.values()) == {CANNOT_TELL}


def test_the_opposite_readings_support_none_of_the_comparisons():
    table = paper_with_intervals(0.0)
    table["value"] = -table["value"]
    table["ci_low"], table["ci_high"] = table["value"] - 0.0005, table["value"] + 0.0005
    found = verdicts(evidence(table, share_runner_up=around(0.2, 0.01)))
    for key in ("reversal", "cancellation", "all_zero", "railcap_lowest", "lne_worse_on_pq"):
        assert found[key] == NOT_SUPPORTED
    assert found["runner_up"] == NOT_SUPPORTED


def test_one_setting_against_it_is_enough():
    table = paper_with_intervals(0.0005)
    one = (table.model == "pythia") & (table.benchmark == "pq") & (table.strategy == "railcap")
    one &= table.metric == "sa_ppg_vs_ted"
    assert one.sum() == 1
    table.loc[one, ["value", "ci_low", "ci_high"]] = 0.02, 0.01, 0.03
    judged = {j.claim.key: j for j in claims.judge(evidence(table))}["railcap_lowest"]
    assert judged.verdict == NOT_SUPPORTED
    assert [f.verdict for f in judged.findings].count(NOT_SUPPORTED) == 1
    assert "difference 0.020 [0.010, 0.030]" in next(
        f.sentence for f in judged.findings if f.verdict == NOT_SUPPORTED
    )


def test_a_difference_stored_the_other_way_round_is_turned():
    table = paper_with_intervals(0.0005)
    cap = (table.strategy == "railcap") & (table.metric == "sa_ppg_vs_railcap_ban")
    ban = (table.strategy == "railcap_ban") & (table.metric == "sa_ppg_vs_railcap")
    assert verdicts(evidence(table[~cap]))["cap_beats_ban"] == SUPPORTED
    assert verdicts(evidence(table[~ban]))["cap_beats_ban"] == SUPPORTED
    assert verdicts(evidence(table[~cap & ~ban]))["cap_beats_ban"] == CANNOT_TELL


def test_threshold_is_judged_against_the_best_of_the_run():
    table = paper_with_intervals(0.0005)
    best = (table.strategy == "railcap_n7") & (table.metric == "sa_ppg")
    table.loc[best, "value"] = 0.1
    judged = {j.claim.key: j for j in claims.judge(evidence(table))}["threshold"]
    assert all("the best, n=7" in finding.sentence for finding in judged.findings)
    assert len(judged.findings) == 3


def test_a_run_without_the_material_cannot_tell():
    table = paper_with_intervals(0.0005)
    given = evidence(table[table.strategy == "identity"])
    found = {j.claim.key: j for j in claims.judge(given)}
    assert found["railcap_lowest"].verdict == CANNOT_TELL
    assert found["railcap_lowest"].findings == ()
    assert "does not have" in claims.to_markdown(list(found.values()), "Small.")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.2, -0.1, SUPPORTED),
        (0.1, 0.2, NOT_SUPPORTED),
        (-0.1, 0.1, CANNOT_TELL),
        (-0.1, 0.0, CANNOT_TELL),
        (None, None, CANNOT_TELL),
    ],
)
def test_below_zero(low, high, verdict):
    assert claims.below_zero(Cell(0.0, low, high)) == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.45, 0.55, SUPPORTED),
        (0.4, 0.6, SUPPORTED),
        (0.35, 0.55, CANNOT_TELL),
        (0.1, 0.39, NOT_SUPPORTED),
        (0.61, 0.7, NOT_SUPPORTED),
        (None, None, CANNOT_TELL),
    ],
)
def test_within(low, high, verdict):
    assert claims.within(Cell(0.5, low, high), 0.4, 0.6) == verdict


def test_every_finding_in_the_sheet_shows_its_interval(tmp_path):
    judged = claims.judge(evidence())
    for j in judged:
        assert j.findings
        for finding in j.findings:
            assert "[" in finding.sentence
    claims.save(judged, "Run tiny: 5 questions.", tmp_path / "check_claims", {"run": "tiny"})
    for suffix in (".md", ".html"):
        text = (tmp_path / f"claims{suffix}").read_text()
        assert "Run tiny: 5 questions." in text
        assert f"Of {len(judged)} claims" in text
    rows = pd.read_csv(tmp_path / "claims.csv")
    assert len(rows) == sum(len(j.findings) for j in judged)


def test_scripts_hand_the_numbers_on(tmp_path):
    """From solve tables to the sheet, through the files that the scripts exchange."""
    clean, strategies = solve_tables(n=40, m=10)
    strategies.pop("all_zero")
    paths = {}
    for name, solve in {"clean": clean, **strategies}.items():
        paths[name] = str(tmp_path / f"{name}.parquet")
        parquet.write(paths[name], solve, "solve", {})
    for name, table in {"overlap": overlap_table(n=40, m=10), "ranks": rank_table(n=40)}.items():
        paths[name] = str(tmp_path / f"{name}.parquet")
        parquet.write(paths[name], table, name, {})
    clean_path, metrics_path = paths["clean"], str(tmp_path / "metrics.parquet")

    all_zero = str(tmp_path / "all_zero.parquet")
    scripts["make_all_zero"].main(["--clean", clean_path, "--output", all_zero])
    assert parquet.read(all_zero, "solve")["n_correct"].sum() == 0
    named = {name: paths[name] for name in strategies} | {"all_zero": all_zero}
    few = json.dumps({"n_resamples": 40, "bins": 10})
    scripts["compute_metrics"].main(
        [
            *("--model", "llama2", "--benchmark", "gsm8k", "--clean", clean_path, "--metrics", few),
            *("--strategies", json.dumps(named), "--output", metrics_path),
        ]
    )
    scripts["table_inline_numbers"].main(
        [
            *("--clean", clean_path, "--clean-batch2", paths["clean_batch2"], "--metrics", few),
            *("--strategies", json.dumps(named), "--ranks", paths["ranks"]),
            *("--output", str(tmp_path / "table_inline_numbers")),
        ]
    )
    scripts["check_memorisation"].main(
        [
            *("--contaminated", *SETTING, clean_path, paths["identity"], paths["overlap"]),
            *("--bounds", json.dumps({"n_resamples": 40}), "--output", str(tmp_path / "check")),
        ]
    )
    scripts["check_claims"].main(
        [
            *("--metrics", metrics_path, "--setting", *SETTING, "--scale", "Tiny."),
            *("--readouts", str(tmp_path / "readouts.csv")),
            *("--memorisation", str(tmp_path / "check.csv"), "--output", str(tmp_path / "sheet")),
        ]
    )
    rows = pd.read_csv(tmp_path / "sheet.csv").set_index("claim")
    assert rows.loc["collapse", "verdict"] == SUPPORTED
    assert f"{(clean.n_correct == 0).mean():.3f} [" in rows.loc["never_solved", "finding"]
    # PQ was not run: nothing to judge.
    assert rows.loc["lne_worse_on_pq", "verdict"] == CANNOT_TELL
    assert rows.drop(index="lne_worse_on_pq")["finding"].notna().all()
