import pytest

from helpers.synthetic_run import solve_tables
from zerogap import metrics
from zerogap.errors import InputError
from zerogap.metrics.sensitivity import COLUMNS, sensitivity

TRIED = {"bins_to_try": (1, 5, 20), "samples_to_try": (5, 10, 20, 99), "repeats": 6}


@pytest.fixture(scope="module")
def tables():
    return solve_tables(n=60, m=20)


@pytest.fixture(scope="module")
def table(tables):
    return sensitivity(*tables, bins=20, **TRIED)


def value(table, strategy, **conditions):
    row = table[table["strategy"] == strategy]
    for column, entry in conditions.items():
        row = row[row[column] == entry]
    assert len(row) == 1
    return row.iloc[0]


def test_one_stratum_gives_a_ppg_and_all_strata_give_sa_ppg(tables, table):
    clean, strategies = tables
    for name, solve in strategies.items():
        data = (solve.n_correct, solve.n_samples, clean.n_correct, clean.n_samples)
        assert value(table, name, varied="bins", bins=1).value == pytest.approx(
            metrics.a_ppg(*data)
        )
        exact = pytest.approx(metrics.sa_ppg(*data, bins=20))
        assert value(table, name, varied="bins", bins=20).value == exact
        full = value(table, name, varied="samples", samples=20)
        assert full.value == exact
        assert full.sd == pytest.approx(0)


def test_table_has_one_row_per_strategy_and_value(tables, table):
    assert list(table.columns) == COLUMNS
    assert not table.duplicated(["strategy", "varied", "bins", "samples"]).any()
    assert len(table) == len(tables[1]) * (3 + 3)
    assert (table[table["varied"] == "bins"]["samples"] == 20).all()
    assert (table[table["varied"] == "samples"]["bins"] == 20).all()


def test_noise_floor_falls_with_the_number_of_samples(table):
    floor = [value(table, "clean_batch2", varied="samples", samples=m).value for m in (5, 10, 20)]
    assert floor[0] > floor[1] > floor[2] > 0


def test_questions_with_fewer_samples_than_m_keep_all(tables):
    clean, strategies = tables
    few = strategies["ted"].copy()
    few["n_samples"] = 3
    few["n_correct"] = few["n_correct"].clip(upper=3)
    table = sensitivity(clean, {"few": few}, bins=1, **TRIED)
    row = value(table, "few", varied="samples", samples=20)
    exact = metrics.a_ppg(few.n_correct, few.n_samples, clean.n_correct, clean.n_samples)
    assert (row.value, row.sd) == pytest.approx((exact, 0))


def test_order_of_rows_does_not_matter_but_the_seed_does(tables, table):
    clean, strategies = tables
    shuffled = {name: solve.sample(frac=1, random_state=1) for name, solve in strategies.items()}
    assert sensitivity(clean, shuffled, bins=20, **TRIED).equals(table)
    assert not sensitivity(*tables, bins=20, seed=1, **TRIED).equals(table)


def test_different_questions_and_numbers_below_one_are_rejected(tables):
    clean, strategies = tables
    with pytest.raises(InputError, match="ted: question 'test-0' is missing"):
        sensitivity(clean, {"ted": strategies["ted"].iloc[1:]})
    with pytest.raises(InputError, match="at least 1"):
        sensitivity(clean, {}, samples_to_try=(0, 5))
    with pytest.raises(InputError, match="at least 1"):
        sensitivity(clean, {}, repeats=0)
