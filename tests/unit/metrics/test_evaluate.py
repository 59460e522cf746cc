import math

import pandas as pd
import pytest

from helpers.synthetic_run import solve_tables
from zerogap import metrics
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.metrics.evaluate import PAPER, evaluate

SPEED = {"n_resamples": 60, "seed": 1}


@pytest.fixture(scope="module")
def tables():
    return solve_tables(n=60, m=20)


@pytest.fixture(scope="module")
def table(tables):
    return evaluate("llama2", "gsm8k", *tables, bins=20, **SPEED)


def look_up(table, strategy, metric, subset="all"):
    rows = table.query("strategy == @strategy and metric == @metric and subset == @subset")
    assert len(rows) == 1
    return rows.iloc[0]


def counts(tables, strategy, mask=slice(None)):
    clean, strategies = tables
    table = strategies[strategy]
    return (
        table.n_correct[mask],
        table.n_samples[mask],
        clean.n_correct[mask],
        clean.n_samples[mask],
    )


def test_values_are_the_metrics_of_each_subset(tables, table):
    leaked = tables[0]["leaked"]
    for subset, mask in {"all": leaked | True, "leaked": leaked, "unleaked": ~leaked}.items():
        for strategy in tables[1]:
            data = counts(tables, strategy, mask)
            for metric in ("g_app", "a_ppg", "delta_plus", "delta_minus"):
                value = getattr(metrics, metric)(*data)
                assert look_up(table, strategy, metric, subset).value == pytest.approx(value)
            for metric in ("sa_ppg", "s_delta_plus", "s_delta_minus"):
                value = getattr(metrics, metric)(*data, bins=20)
                assert look_up(table, strategy, metric, subset).value == pytest.approx(value)


def test_order_of_rows_does_not_matter(tables, table):
    clean, strategies = tables
    shuffled = {
        name: solve.sample(frac=1, random_state=k)
        for k, (name, solve) in enumerate(strategies.items())
    }
    again = evaluate("llama2", "gsm8k", clean, shuffled, bins=20, **SPEED)
    assert again.equals(table)


def test_every_reading_has_an_interval_around_it(table):
    rows = table[table["metric"].isin([*PAPER, "solve_mean"])]
    assert (rows["ci_low"] <= rows["ci_high"]).all()
    inside = (rows["ci_low"] <= rows["value"]) & (rows["value"] <= rows["ci_high"])
    assert inside.mean() > 0.9
    without = table[table["ci_low"].isna()]["metric"].unique()
    assert set(without) == {"g_ap_mean", "g_ap_sd", "sa_ppg_corrected"}


def test_differences_are_paired(table):
    row = look_up(table, "ted", "sa_ppg_vs_identity")
    ted, identity = (look_up(table, name, "sa_ppg") for name in ("ted", "identity"))
    assert row.value == pytest.approx(ted.value - identity.value)
    apart = math.hypot(ted.ci_high - ted.ci_low, identity.ci_high - identity.ci_low)
    assert row.ci_high - row.ci_low < apart


def test_differences_named_for_what_they_compare(table):
    names = set(table[table["strategy"] == "shortcut"]["metric"])
    assert {"sa_ppg_vs_railcap", "sa_ppg_vs_ted", "g_app_vs_railcap", "a_ppg_vs_all_zero"} <= names
    assert "g_app_vs_ted" not in names
    assert "sa_ppg_vs_shortcut" not in names


def test_intervals_of_all_pairs_together_are_wider(table):
    pairs = table[table["metric"].str.startswith("sa_ppg_maxt_vs_") & (table["subset"] == "all")]
    names = set(table["strategy"]) - {"clean"}
    assert len(pairs) == len(names) * (len(names) - 1)
    alone = look_up(table, "ted", "sa_ppg_vs_identity")
    together = look_up(table, "ted", "sa_ppg_maxt_vs_identity")
    turned = look_up(table, "identity", "sa_ppg_maxt_vs_ted")
    assert together.value == alone.value == -turned.value
    assert (together.ci_low, together.ci_high) == (-turned.ci_high, -turned.ci_low)
    assert together.ci_high - together.ci_low > alone.ci_high - alone.ci_low


@pytest.mark.parametrize("resample", ["questions", "samples"])
def test_replicates_are_read_in_chunks(tables, resample, monkeypatch):
    whole = evaluate("llama2", "gsm8k", *tables, bins=20, resample=resample, **SPEED)
    monkeypatch.setattr("zerogap.metrics.evaluate.AT_ONCE", 7)
    parts = evaluate("llama2", "gsm8k", *tables, bins=20, resample=resample, **SPEED)
    pd.testing.assert_frame_equal(parts, whole)


def test_noise_floor_and_trivial_strategy(tables, table):
    floor = look_up(table, "clean_batch2", "sa_ppg")
    assert 0 < floor.value < look_up(table, "identity", "sa_ppg").value
    assert look_up(table, "all_zero", "s_delta_plus").value == 0
    mean = (tables[0].n_correct / tables[0].n_samples).mean()
    assert look_up(table, "all_zero", "a_ppg").value == pytest.approx(mean)
    assert look_up(table, "clean", "solve_mean").value == pytest.approx(mean)


def test_questions_that_ted_emptied(table):
    assert look_up(table, "ted", "share_empty").value == pytest.approx(2 / 60)
    assert look_up(table, "identity", "share_empty").value == 0


def test_same_seed_same_table(tables, table):
    assert evaluate("llama2", "gsm8k", *tables, bins=20, **SPEED).equals(table)
    other = evaluate("llama2", "gsm8k", *tables, bins=20, n_resamples=60, seed=2)
    assert not other["ci_low"].equals(table["ci_low"])
    assert other["value"].equals(table["value"])


def test_intervals_over_samples_leave_out_the_questions_share(tables, table):
    over_samples = evaluate("llama2", "gsm8k", *tables, bins=20, resample="samples", **SPEED)
    assert over_samples["value"].equals(table["value"])
    for metric in ("solve_mean", "a_ppg"):  # where questions differ far more than responses
        narrow, wide = (look_up(t, "identity", metric) for t in (over_samples, table))
        assert narrow.ci_low < narrow.value < narrow.ci_high
        assert narrow.ci_high - narrow.ci_low < wide.ci_high - wide.ci_low
    plain = ~over_samples["metric"].str.contains("_vs_")
    assert (over_samples.loc[plain, "ci_low"].dropna() >= 0).all()


def test_fits_the_contract(tmp_path, table):
    parquet.write(tmp_path / "metrics.parquet", table, "metrics", provenance={"run": "test"})
    assert len(parquet.read(tmp_path / "metrics.parquet", "metrics")) == len(table)


def test_without_leaked_questions_there_is_no_leaked_subset(tables):
    clean, strategies = tables
    unleaked = ~clean["leaked"]
    part = evaluate("m", "d", clean[unleaked], {"ted": strategies["ted"][unleaked]}, **SPEED)
    assert set(part["subset"]) == {"all", "unleaked"}


def test_bad_input(tables):
    clean, strategies = tables
    ted = strategies["ted"]
    cases = {
        "missing": ted.iloc[1:],
        "unknown to the clean model": ted.assign(question_id=["new", *ted.question_id[1:]]).merge(
            ted, how="outer"
        ),
        "more than once": ted.iloc[[0, *range(len(ted))]],
        "leaked questions": ted.assign(leaked=~ted.leaked),
    }
    for message, wrong in cases.items():
        with pytest.raises(InputError, match=f"ted: .*{message}"):
            evaluate("m", "d", clean, {"ted": wrong}, **SPEED)
    with pytest.raises(InputError, match="resample: 'answers'"):
        evaluate("m", "d", clean, strategies, resample="answers")
