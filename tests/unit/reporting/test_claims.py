"""Verdicts from intervals, and the sheet."""

import pandas as pd
import pytest

from zerogap.published import as_metrics, printed
from zerogap.reporting.claims import sheet
from zerogap.reporting.claims.paper import CLAIMS
from zerogap.reporting.claims.verdict import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    RunResults,
    below_zero,
    evaluate_claims,
    within,
)
from zerogap.reporting.labels import Labels
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.render import Cell

SETTING = ("llama2", "gsm8k")
KEYS = ["model", "benchmark", "metric"]


def paper_with_intervals(width):
    """The paper's metric values and their paired differences, each ± `width`."""
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


def results(table=None, width=0.001, **numbers):
    table = paper_with_intervals(width) if table is None else table
    keys = ("readout_gap_01", "readout_gap_probability", "share_never_solved", "share_runner_up")
    numbers = {key: around(printed(key)[0], width) for key in keys} | numbers
    collapse = {SETTING: around(0.4, width)}
    return RunResults(MetricTable([table]), SETTING, numbers, collapse, Labels())


def by_claim(run_results):
    return {verdict.claim.key: verdict for verdict in evaluate_claims(CLAIMS, run_results)}


def verdicts(run_results):
    return {key: verdict.verdict for key, verdict in by_claim(run_results).items()}


def test_the_papers_own_numbers_support_every_claim():
    assert set(verdicts(results(width=0.0003)).values()) == {SUPPORTED}


def test_wide_intervals_cannot_tell():
    assert set(verdicts(results(width=0.6)).values()) == {CANNOT_TELL}


def test_missing_intervals_cannot_tell():
    table = paper_with_intervals(0.001).assign(ci_low=float("nan"), ci_high=float("nan"))
    found = verdicts(results(table, share_runner_up=Cell(0.5)))
    assert found.pop("collapse") == found.pop("readout") == found.pop("never_solved") == SUPPORTED
    assert set(found.values()) == {CANNOT_TELL}


def test_opposite_values_support_none_of_the_comparisons():
    table = paper_with_intervals(0.0)
    table["value"] = -table["value"]
    table["ci_low"], table["ci_high"] = table["value"] - 0.0005, table["value"] + 0.0005
    found = verdicts(results(table, share_runner_up=around(0.2, 0.01)))
    for key in ("reversal", "cancellation", "all_zero", "railcap_lowest", "lne_worse_on_pq"):
        assert found[key] == NOT_SUPPORTED
    assert found["runner_up"] == NOT_SUPPORTED


def test_one_setting_against_a_claim_is_enough_to_not_support_it():
    table = paper_with_intervals(0.0005)
    one = (table.model == "pythia") & (table.benchmark == "pq") & (table.strategy == "railcap")
    one &= table.metric == "sa_ppg_vs_ted"
    assert one.sum() == 1
    table.loc[one, ["value", "ci_low", "ci_high"]] = 0.02, 0.01, 0.03
    verdict = by_claim(results(table))["railcap_lowest"]
    assert verdict.verdict == NOT_SUPPORTED
    assert [f.verdict for f in verdict.evidence].count(NOT_SUPPORTED) == 1
    assert "difference 0.020 [0.010, 0.030]" in next(
        f.sentence for f in verdict.evidence if f.verdict == NOT_SUPPORTED
    )


def test_a_difference_stored_the_other_way_round_changes_its_sign():
    table = paper_with_intervals(0.0005)
    cap = (table.strategy == "railcap") & (table.metric == "sa_ppg_vs_railcap_ban")
    ban = (table.strategy == "railcap_ban") & (table.metric == "sa_ppg_vs_railcap")
    assert verdicts(results(table[~cap]))["cap_beats_ban"] == SUPPORTED
    assert verdicts(results(table[~ban]))["cap_beats_ban"] == SUPPORTED
    assert verdicts(results(table[~cap & ~ban]))["cap_beats_ban"] == CANNOT_TELL


def test_threshold_is_compared_with_the_best_of_the_run():
    table = paper_with_intervals(0.0005)
    best = (table.strategy == "railcap_n7") & (table.metric == "sa_ppg")
    table.loc[best, "value"] = 0.1
    verdict = by_claim(results(table))["threshold"]
    assert all("the best, n=7" in finding.sentence for finding in verdict.evidence)
    assert len(verdict.evidence) == 3


def test_a_run_without_the_needed_results_cannot_tell():
    table = paper_with_intervals(0.0005)
    verdicts = by_claim(results(table[table.strategy == "identity"]))
    assert verdicts["railcap_lowest"].verdict == CANNOT_TELL
    assert verdicts["railcap_lowest"].evidence == ()
    assert "does not have" in sheet.to_markdown(list(verdicts.values()), "Small.")


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
def test_below_zero_needs_the_whole_interval(low, high, verdict):
    assert below_zero(Cell(0.0, low, high)) == verdict


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
def test_within_needs_the_whole_interval(low, high, verdict):
    assert within(Cell(0.5, low, high), 0.4, 0.6) == verdict


def test_every_comparison_in_the_sheet_shows_its_interval(tmp_path):
    verdicts = evaluate_claims(CLAIMS, results())
    for verdict in verdicts:
        assert verdict.evidence
        for evidence in verdict.evidence:
            assert "[" in evidence.sentence
    sheet.save(verdicts, "Run tiny: 5 questions.", tmp_path / "claims", {"run": "tiny"})
    for suffix in (".md", ".html"):
        text = (tmp_path / f"claims{suffix}").read_text()
        assert "Run tiny: 5 questions." in text
        assert f"Of {len(verdicts)} claims" in text
    rows = pd.read_csv(tmp_path / "claims.csv")
    assert len(rows) == sum(len(verdict.evidence) for verdict in verdicts)
