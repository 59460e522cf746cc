"""Verdicts from intervals, and the sheet."""

import dataclasses
import math

import pandas as pd
import pytest

from helpers.synthetic_run import LABELS
from zerogap.published import as_metrics, printed
from zerogap.reporting.claims import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    RunResults,
    evaluate_claims,
    unpaired_difference,
    within,
)
from zerogap.reporting.metric_table import MetricTable
from zerogap.reporting.pages import claims_markdown
from zerogap.reporting.render import Cell

SETTING = ("llama2", "gsm8k")
KEYS = ["model", "benchmark", "metric"]
ENDS = ["value", "ci_low", "ci_high"]
PUBLISHED_NUMBERS = (
    "readout_gap_probability",
    "share_never_solved",
    "share_runner_up",
    "g_app_minus_g_ap_lne",
    "s_delta_difference_railcap",
)


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
    published = {key: around(printed(key)[0], width) for key in PUBLISHED_NUMBERS}
    published["readout_gap_01_expected"] = around(printed("readout_gap_01")[0], width)
    # Figure 1 has no numbers: what it looks like.
    looks = {"rouge_leaked": 0.95, "rouge_unleaked": 0.5, "excess": 0.0}
    published |= {column: around(value, width) for column, value in looks.items()}
    metrics, paraphrase_of = MetricTable([table]), {"pq": "gsm8k"}
    return RunResults(metrics, SETTING, published | numbers, paraphrase_of, 4, LABELS)


def by_claim(run_results):
    return {verdict.claim.key: verdict for verdict in evaluate_claims(run_results)}


def verdicts(run_results):
    return {key: verdict.verdict for key, verdict in by_claim(run_results).items()}


def about(table, strategy):
    """The rows of a strategy, and of differences from it."""
    return table.strategy.eq(strategy) | table.metric.str.endswith(f"_vs_{strategy}")


def test_the_papers_own_numbers_support_every_claim_and_wide_intervals_none():
    assert set(verdicts(results(width=0.0003)).values()) == {SUPPORTED}
    assert set(verdicts(results(width=0.6)).values()) == {CANNOT_TELL}


def test_claims_on_gsm8k_and_pq_are_about_the_form_of_the_leak():
    """Whatever the benchmarks are called."""
    names = {"gsm8k": "symbolic", "pq": "symbolic_paraphrased"}
    table = paper_with_intervals(0.0003)
    table["benchmark"] = table.benchmark.map(names)
    renamed = dataclasses.replace(
        results(table), paraphrase_of={names["pq"]: names["gsm8k"]}, setting=("llama2", "symbolic")
    )
    found = verdicts(renamed)
    for key in ("lne_better_on_gsm8k", "lne_worse_on_pq", "shortcut_lead_narrows"):
        assert found[key] == SUPPORTED
    swapped = dataclasses.replace(renamed, paraphrase_of={names["gsm8k"]: names["pq"]})
    assert verdicts(swapped)["lne_worse_on_pq"] == NOT_SUPPORTED


def test_missing_intervals_cannot_tell():
    table = paper_with_intervals(0.001).assign(ci_low=math.nan, ci_high=math.nan)
    found = verdicts(results(table, share_runner_up=Cell(0.5)))
    from_numbers = ("collapse", "dispersion", "readout", "never_solved", "g_app_of_lne", "parity")
    assert {found.pop(key) for key in from_numbers} == {SUPPORTED}
    assert set(found.values()) == {CANNOT_TELL}


@pytest.mark.parametrize(
    ("claim", "metric", "widening"),
    [("cancellation", "delta_minus", 4 / 3), ("cancellation", "a_ppg", 1)],
)
def test_differences_in_damage_are_judged_on_wider_intervals(claim, metric, widening):
    values = MetricTable([as_metrics()])
    railcap, lne = (values.get(*SETTING, s, metric).value for s in ("railcap", "lne_blocking"))
    for share, verdict in ((0.99, SUPPORTED), (1.01, CANNOT_TELL)):
        width = share * (lne - railcap)
        found = by_claim(results(paper_with_intervals(width / widening)))[claim].evidence
        judged = around(railcap - lne, width)
        (evidence,) = (e for e in found if f" {judged.format(3)} " in e.sentence)
        assert evidence.verdict == verdict
        assert evidence.sentence.endswith(f" {judged.format_interval(3)}.")
        assert ("a third wider" in evidence.sentence) == (widening > 1)


def test_opposite_values_support_none_of_the_comparisons():
    table = paper_with_intervals(0.0)
    table["value"] = -table["value"]
    table["ci_low"], table["ci_high"] = table["value"] - 0.0005, table["value"] + 0.0005
    found = verdicts(results(table, share_runner_up=around(0.2, 0.01)))
    for key in (
        *("reversal", "cancellation", "all_zero_a_ppg", "all_zero_sa_ppg", "railcap_lowest"),
        *("shortcut_runner_up", "lne_behind", "lne_better_on_gsm8k", "lne_worse_on_pq"),
        *("shortcut_lead_narrows", "trade_off", "cap_beats_ban", "runner_up"),
    ):
        assert found[key] == NOT_SUPPORTED


def test_a_difference_stored_the_other_way_round_changes_its_sign():
    table = paper_with_intervals(0.0005)
    cap = (table.strategy == "railcap") & table.metric.str.endswith("_vs_railcap_ban")
    ban = (table.strategy == "railcap_ban") & table.metric.str.endswith("_vs_railcap")
    for missing, verdict in ((cap, SUPPORTED), (ban, SUPPORTED), (cap | ban, CANNOT_TELL)):
        assert verdicts(results(table[~missing]))["cap_beats_ban"] == verdict


def test_the_best_threshold_may_be_one_that_the_claim_is_not_about():
    table = paper_with_intervals(0.0003)
    of_n1 = table.strategy.eq("railcap_n1") & table.metric.str.startswith("sa_ppg")
    better = table.loc[of_n1 & table.metric.eq("sa_ppg"), "value"].iloc[0] - 0.01
    table.loc[of_n1, ENDS] -= better
    table.loc[table.metric.eq("sa_ppg_vs_railcap_n1"), ENDS] += better
    threshold = by_claim(results(table))["threshold"]
    assert threshold.verdict == NOT_SUPPORTED
    assert len(threshold.evidence) == 4
    assert all("the best, n=1" in evidence.sentence for evidence in threshold.evidence)


def test_a_claim_without_some_of_its_comparisons_cannot_tell():
    table = paper_with_intervals(0.0003)
    threshold = by_claim(results(table[~about(table, "railcap_n7")]))["threshold"]
    assert threshold.verdict == CANNOT_TELL
    assert threshold.evidence[-1].sentence == "1 of 5 values of n are missing from the run."
    found = by_claim(results(table[~about(table, "shortcut")]))
    for key in ("reversal", "railcap_lowest", "lne_behind", "all_zero_a_ppg", "all_zero_sa_ppg"):
        assert found[key].verdict == CANNOT_TELL
        assert "comparisons are missing, because" in found[key].evidence[-1].sentence
    assert found["lne_worse_on_pq"].verdict == SUPPORTED


def test_another_threshold_is_no_evidence_on_that_of_the_paper():
    found = by_claim(dataclasses.replace(results(width=0.0003), rail_n=6))
    for key in ("trade_off", "parity", "threshold"):
        assert (found[key].verdict, found[key].evidence) == (CANNOT_TELL, ())
    assert "does not have" in claims_markdown(list(found.values()), "Small.")
    assert found["cap_beats_ban"].verdict == SUPPORTED


def test_a_difference_of_exactly_zero_is_not_below_zero():
    table = paper_with_intervals(0.0003)
    rows = table.strategy.eq("lne_blocking") & table.metric.eq("sa_ppg_vs_identity")
    table.loc[rows & table.benchmark.eq("gsm8k"), ENDS] = 0.0
    found = verdicts(results(table, g_app_minus_g_ap_lne=around(0.0, 0.0)))
    assert found["g_app_of_lne"] == found["lne_better_on_gsm8k"] == CANNOT_TELL


@pytest.mark.parametrize(
    ("key", "value", "claim", "verdict"),
    [
        ("rouge_unleaked", 0.8, "dispersion", NOT_SUPPORTED),
        ("rouge_unleaked", 0.8, "collapse", SUPPORTED),
        ("rouge_unleaked", 0.92, "collapse", NOT_SUPPORTED),
        ("excess", 0.1, "dispersion", NOT_SUPPORTED),
        ("readout_gap_01_expected", 0.28, "readout", NOT_SUPPORTED),
    ],
)
def test_numbers_beyond_their_bounds_do_not_support_a_claim(key, value, claim, verdict):
    assert verdicts(results(**{key: around(value, 0.01)}))[claim] == verdict


def test_shortcut_may_miss_the_second_place_once_in_six_settings():
    table = paper_with_intervals(0.0005)
    verdict = by_claim(results(table))["shortcut_runner_up"]
    assert [e.verdict for e in verdict.evidence].count(NOT_SUPPORTED) == 1
    assert verdict.verdict == SUPPORTED
    second = (table.model == "llama2") & (table.benchmark == "pq")
    second &= (table.strategy == "shortcut") & (table.metric == "sa_ppg_vs_ted")
    table.loc[second, ENDS] = 0.02, 0.01, 0.03
    assert verdicts(results(table))["shortcut_runner_up"] == NOT_SUPPORTED


def test_one_model_judges_the_settings_that_it_has():
    table = paper_with_intervals(0.0003)
    found = by_claim(results(table[table.model == "llama2"]))
    assert {verdict.verdict for verdict in found.values()} == {SUPPORTED}
    assert len(found["shortcut_runner_up"].evidence) == 2
    pythia = verdicts(results(table[table.model == "pythia"]))
    assert pythia["shortcut_runner_up"] == NOT_SUPPORTED
    assert pythia["shortcut_lead_narrows"] == CANNOT_TELL


def test_difference_of_separate_estimates_adds_their_errors_in_squares():
    change = unpaired_difference(Cell(0.5, 0.2, 0.9), Cell(0.3, 0.0, 0.7))
    assert change.value == pytest.approx(0.2)
    assert change.low == pytest.approx(0.2 - 0.5)  # 0.3 and 0.4
    assert change.high == pytest.approx(0.2 + 0.5)  # 0.4 and 0.3
    assert not unpaired_difference(Cell(0.5), Cell(0.3, 0.0, 0.7)).has_interval


@pytest.mark.parametrize(
    ("low", "high", "negative", "in_range"),
    [
        (-0.2, -0.1, SUPPORTED, NOT_SUPPORTED),
        (0.1, 0.39, NOT_SUPPORTED, NOT_SUPPORTED),
        (-0.1, 0.1, CANNOT_TELL, NOT_SUPPORTED),
        (-0.1, 0.0, CANNOT_TELL, NOT_SUPPORTED),
        (0.0, 0.1, CANNOT_TELL, NOT_SUPPORTED),
        (0.4, 0.59, NOT_SUPPORTED, SUPPORTED),
        (0.4, 0.6, NOT_SUPPORTED, CANNOT_TELL),
        (0.61, 0.7, NOT_SUPPORTED, NOT_SUPPORTED),
        (math.nan, math.nan, CANNOT_TELL, CANNOT_TELL),
    ],
)
def test_a_verdict_needs_the_whole_interval(low, high, negative, in_range):
    assert within(Cell(0.5, low, high), -math.inf, 0) == negative
    assert within(Cell(0.5, low, high), 0.4, 0.6) == in_range
