import numpy as np
import pandas as pd
import pytest

from helpers.synthetic_run import solve_tables
from zerogap import metrics
from zerogap.errors import InputError
from zerogap.metrics.comparison import Comparison, SolveCounts
from zerogap.metrics.definitions import METRICS, register_metric
from zerogap.metrics.evaluate import CHUNK_SIZES, evaluate, rows_about
from zerogap.metrics.same_questions import probabilities, with_leaked_of

SPEED = {"n_resamples": 60, "seed": 1}


@pytest.fixture(scope="module")
def tables():
    """Solve tables in which leaked and unleaked questions take turns."""
    clean, strategies = solve_tables(n=60, m=20)
    turns = np.arange(60).reshape(2, 30).T.ravel()

    def mixed(table):
        return table.iloc[turns].reset_index(drop=True)

    return mixed(clean), {name: mixed(table) for name, table in strategies.items()}


@pytest.fixture(scope="module")
def table(tables):
    return evaluate("llama2", "gsm8k", *tables, bins=20, **SPEED)


def look_up(table, strategy, metric, subset="all"):
    rows = table.query("strategy == @strategy and metric == @metric and subset == @subset")
    assert len(rows) == 1
    return rows.iloc[0]


def counts(tables, strategy, mask=slice(None)):
    clean, strategies = tables
    columns = ("n_correct", "n_samples")
    return [table[c][mask] for table in (strategies[strategy], clean) for c in columns]


def test_values_equal_the_public_functions_on_each_subset(tables, table):
    leaked = tables[0]["leaked"]
    for subset, mask in {"all": leaked | True, "leaked": leaked, "unleaked": ~leaked}.items():
        for strategy in tables[1]:
            data = counts(tables, strategy, mask)
            first = [t.first_correct[mask] for t in (tables[1][strategy], tables[0])]
            g_ap = look_up(table, strategy, "g_ap", subset).value
            assert g_ap == pytest.approx(metrics.g_ap(*first))
            for name, metric in METRICS.items():
                if name != "g_ap":
                    value = look_up(table, strategy, name, subset).value
                    assert value == pytest.approx(metric(*data, bins=20))
    assert look_up(table, "ted", "share_empty").value == pytest.approx(2 / 60)
    mean = (tables[0].n_correct / tables[0].n_samples).mean()
    assert look_up(table, "clean", "solve_mean").value == pytest.approx(mean)


def test_order_of_rows_does_not_matter(tables, table):
    clean, strategies = tables
    shuffled = {
        name: solve.sample(frac=1, random_state=k)
        for k, (name, solve) in enumerate(strategies.items())
    }
    of_shuffled = evaluate("llama2", "gsm8k", clean, shuffled, bins=20, **SPEED)
    assert of_shuffled.equals(table)


def test_three_metrics_have_no_interval(table):
    without = table[table["ci_low"].isna()]["metric"].unique()
    assert set(without) == {"g_ap_mean", "g_ap_sd", "sa_ppg_corrected"}


def test_a_metric_without_an_interval_has_no_differences():
    with pytest.raises(ValueError, match="metric mean_square: differences need has_interval=True"):
        register_metric("mean_square", "MS", differences="all", has_interval=False)(np.mean)
    assert "mean_square" not in METRICS


def test_sa_ppg_is_compared_with_every_strategy_and_other_metrics_with_the_references(table):
    names = set(table[table["strategy"] == "shortcut"]["metric"])
    assert {"sa_ppg_vs_railcap", "sa_ppg_vs_ted", "g_app_vs_railcap", "a_ppg_vs_all_zero"} <= names
    assert "g_app_vs_ted" not in names
    assert "sa_ppg_vs_shortcut" not in names


def test_simultaneous_intervals_are_antisymmetric_and_wider(table):
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
def test_chunk_size_does_not_change_the_table(tables, resample, monkeypatch):
    whole = evaluate("llama2", "gsm8k", *tables, bins=20, resample=resample, **SPEED)
    monkeypatch.setitem(CHUNK_SIZES, resample, 7)
    parts = evaluate("llama2", "gsm8k", *tables, bins=20, resample=resample, **SPEED)
    pd.testing.assert_frame_equal(parts, whole)


@pytest.mark.parametrize("resample", ["questions", "samples"])
def test_more_strategies_change_no_value_and_no_interval_of_the_others(tables, resample):
    """Except the intervals that are simultaneous over all pairs."""
    clean, strategies = tables
    added = [name for name in strategies if name.startswith("railcap_")]
    fewer = {name: table for name, table in strategies.items() if name not in added}
    more = fewer | {name: strategies[name] for name in added}
    alone, together = (
        evaluate("llama2", "gsm8k", clean, compared, bins=20, resample=resample, **SPEED)
        for compared in (fewer, more)
    )
    about = rows_about(together, added)
    rest = together.drop(about.index)
    alone, rest = (
        table[~table["metric"].str.contains("_maxt_vs_")].reset_index(drop=True)
        for table in (alone, rest)
    )
    pd.testing.assert_frame_equal(alone, rest)
    assert set(added) < set(about["strategy"])
    assert look_up(about, "railcap", "sa_ppg_vs_railcap_ban").value == pytest.approx(
        -look_up(about, "railcap_ban", "sa_ppg_vs_railcap").value
    )


def test_level_and_seed_change_the_intervals_and_not_the_values(tables, table):
    half = evaluate("llama2", "gsm8k", *tables, bins=20, confidence_level=0.5, **SPEED)
    other = evaluate("llama2", "gsm8k", *tables, bins=20, n_resamples=60, seed=2)
    assert half["value"].equals(table["value"])
    assert other["value"].equals(table["value"])
    assert not other["ci_low"].equals(table["ci_low"])
    for metric in ("a_ppg", "sa_ppg", "sa_ppg_maxt_vs_identity"):
        narrow, wide = (look_up(t, "ted", metric) for t in (half, table))
        assert narrow.ci_high - narrow.ci_low < 0.9 * (wide.ci_high - wide.ci_low)


def test_the_intervals_of_few_questions_are_wider_than_the_normal_ones_by_their_level(tables):
    few = tables[0][:8], {"ted": tables[1]["ted"][:8]}

    def widths(level):
        table = evaluate("llama2", "gsm8k", *few, bins=1, confidence_level=level, n_resamples=400)
        rows = [look_up(table, "ted", metric) for metric in ("sa_ppg", "a_ppg")]
        return [row.ci_high - row.ci_low for row in rows]

    (stratified, plain), (stratified_wide, plain_wide) = widths(0.5), widths(0.99)
    # Student's t over the normal quantile, 7 degrees of freedom: 1.05 at 50 %, 1.27 at 99 %.
    assert stratified_wide / stratified == pytest.approx(1.21 * plain_wide / plain, rel=0.08)


@pytest.mark.parametrize(
    ("resample", "metric", "low", "high"),
    [
        ("questions", "g_ap", 0.09694444444444, 0.30305555555556),
        ("questions", "sa_ppg", 0.21380006414376, 0.31994993585624),
        ("questions", "sa_ppg_maxt_vs_identity", -0.02086429630965, 0.06307262964298),
        ("samples", "g_ap", 0.07361111111111, 0.32638888888889),
        ("samples", "sa_ppg", 0.22530970204394, 0.30844029795606),
        ("samples", "sa_ppg_maxt_vs_identity", -0.03315622960392, 0.07536456293725),
    ],
)
def test_the_intervals_of_a_seed_never_change(resample, metric, low, high):
    clean, strategies = solve_tables(n=60, m=20)
    compared = {name: strategies[name] for name in ("identity", "ted")}
    table = evaluate("m", "b", clean, compared, bins=20, resample=resample, **SPEED)
    row = look_up(table, "ted", metric)
    assert (row.ci_low, row.ci_high) == pytest.approx((low, high), abs=1e-12)


def test_questions_of_a_cluster_are_drawn_together(tables, table):
    clean, strategies = tables
    alone = clean.assign(cluster=[f"c{k}" for k in range(60)])
    assert evaluate("llama2", "gsm8k", alone, strategies, bins=20, **SPEED).equals(table)

    pairs = clean.assign(cluster=np.arange(60) // 4 * 2 + ~clean["leaked"])
    drawn = evaluate("m", "b", pairs, {"ted": strategies["ted"]}, bins=20, **SPEED)
    rng, means = np.random.default_rng(1), np.zeros((2, 60))
    for half, is_leaked in enumerate((False, True)):  # literally, pair by pair
        members = pairs[pairs["leaked"] == is_leaked].groupby("cluster").groups
        for r in range(60):
            times = rng.multinomial(len(members), [1 / len(members)] * len(members))
            rows = [k for pair, n in zip(members.values(), times, strict=True) for k in [*pair] * n]
            means[half, r] = metrics.a_ppg(*(c.iloc[rows] for c in counts(tables, "ted")))
    row = look_up(drawn, "ted", "a_ppg")
    assert (row.ci_low, row.ci_high) == pytest.approx(
        metrics.interval(means.mean(axis=0), row.value, 0.95, (0, 1))
    )
    assert row.value == look_up(table, "ted", "a_ppg").value
    with pytest.raises(InputError, match="clean: a question has no cluster"):
        evaluate("m", "b", pairs.assign(cluster=None), strategies)


def test_leaked_subset_is_left_out_where_no_question_leaked(tables):
    clean, strategies = tables
    unleaked = ~clean["leaked"]
    part = evaluate("m", "d", clean[unleaked], {"ted": strategies["ted"][unleaked]}, **SPEED)
    assert set(part["subset"]) == {"all", "unleaked"}


def test_unequal_tables_and_unknown_schemes_are_rejected(tables):
    clean, strategies = tables
    ted = strategies["ted"]
    cases = {
        "missing": ted.iloc[1:],
        "unknown to the clean model": ted.assign(question_id=["new", *ted.question_id[1:]]).merge(
            ted, how="outer"
        ),
        "duplicate row: question 'test-0'": ted.iloc[[0, *range(len(ted))]],
        "leaked questions": ted.assign(leaked=~ted.leaked),
        "n_correct: question 1 has 99 correct": ted.assign(
            n_correct=[*ted.n_correct[:1], 99] + [0] * 58
        ),
    }
    for message, wrong in cases.items():
        with pytest.raises(InputError, match=f"ted: .*{message}"):
            evaluate("m", "d", clean, {"ted": wrong}, **SPEED)
    with pytest.raises(InputError, match="resample: 'answers'"):
        evaluate("m", "d", clean, strategies, resample="answers")


def test_leaked_questions_and_probabilities_follow_the_rows_of_the_counts():
    questions = pd.DataFrame({"question_id": ["a", "b", "c"], "leaked": [True, False, True]})
    solve = pd.DataFrame(
        {"question_id": ["c", "b", "a"], "n_correct": [1, 0, 2], "n_samples": [4, 0, 2]}
    )
    assert with_leaked_of(questions, solve).leaked.tolist() == [True, False, True]
    assert with_leaked_of(questions[1:], solve).leaked.tolist() == [True, False, False]
    assert probabilities(solve).tolist() == [0.25, 0, 1]


@pytest.mark.parametrize("resample", ["questions", "samples"])
def test_a_registered_metric_is_in_the_table_with_intervals_and_differences(
    tables, resample, monkeypatch
):
    before = evaluate("llama2", "gsm8k", *tables, bins=20, resample=resample, **SPEED)
    monkeypatch.setitem(METRICS, "mean_square", None)  # removed again after the test

    @register_metric("mean_square", "MS", differences="references")
    def mean_square(comparison):
        return comparison.mean(comparison.gap**2)

    table = evaluate("llama2", "gsm8k", *tables, bins=20, resample=resample, **SPEED)
    gap = metrics.ppg(*counts(tables, "ted"))
    row = look_up(table, "ted", "mean_square")
    assert row.value == pytest.approx(np.mean(gap**2))
    assert row.ci_low < row.value < row.ci_high
    assert mean_square.label == "MS"
    difference = look_up(table, "ted", "mean_square_vs_identity")
    assert difference.value == row.value - look_up(table, "identity", "mean_square").value
    without = table[~table["metric"].str.startswith("mean_square")].reset_index(drop=True)
    pd.testing.assert_frame_equal(without, before)


def test_a_metric_of_one_value_per_question_is_an_error(tables, monkeypatch):
    monkeypatch.setitem(METRICS, "gaps", None)
    register_metric("gaps", "G", has_interval=False)(lambda comparison: comparison.gap)
    with pytest.raises(TypeError, match=r"0-dimensional|scalar"):
        evaluate("llama2", "gsm8k", *tables, bins=20, **SPEED)


def test_a_metric_that_some_resamples_leave_undefined_has_no_interval(tables, monkeypatch):
    monkeypatch.setitem(METRICS, "undefined", None)

    @register_metric("undefined", "U")
    def undefined(comparison):
        gap = comparison.mean(comparison.gap)
        return np.where(np.ndim(gap) and gap > np.median(gap), np.nan, gap)

    row = look_up(evaluate("llama2", "gsm8k", *tables, bins=20, **SPEED), "ted", "undefined")
    assert np.isfinite(row.value)
    assert np.isnan([row.ci_low, row.ci_high]).all()


@pytest.mark.parametrize(
    "metric", [m for m in METRICS.values() if m.has_interval], ids=lambda m: m.name
)
def test_resamples_equal_the_metric_of_the_drawn_questions(metric, tables):
    """The one definition per metric agrees with itself on both kinds of comparison.

    Means over strata do so only where every question is drawn once.
    """
    clean, strategies = tables
    names = ["ted", "shortcut"]
    counts = {name: solve_counts(strategies[name]) for name in names}
    reference = solve_counts(clean)
    rng = np.random.default_rng(0)
    draws = metrics.question_weights(clean["leaked"], 5, rng)
    if metric.name in ("sa_ppg", "s_delta_plus", "s_delta_minus"):
        draws[:] = 1
    stacked = SolveCounts.stack([counts[name][None] for name in names])
    resampled = metric.definition(Comparison(stacked, reference[None], 20, draws.astype(float)))
    assert resampled.shape == (2, 5)
    for k, name in enumerate(names):
        for r, drawn in enumerate(draws):
            rows = np.repeat(np.arange(len(clean)), drawn)
            point = metric.definition(Comparison(counts[name][rows], reference[rows], 20))
            assert resampled[k, r] == pytest.approx(float(point), abs=1e-12)


def solve_counts(table):
    columns = ("n_correct", "n_samples", "first_correct")
    return SolveCounts(*(table[column].to_numpy() for column in columns))
