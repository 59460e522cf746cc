import pytest

from helpers.synthetic_run import overlap_table, solve_tables
from zerogap.analysis.memorisation import memorisation
from zerogap.errors import InputError


@pytest.fixture(scope="module")
def tables():
    clean, strategies = solve_tables(n=80, m=20)
    return clean, strategies, overlap_table(n=80, m=20)


def verdict(clean, identity, overlap, bound=0.7, clean_rouge_l=0.5):
    clean_overlap = overlap.assign(rouge_l=clean_rouge_l)
    table = memorisation(
        *(clean, identity, overlap, clean_overlap),
        min_leaked_solve_probability=bound,
        n_resamples=200,
    )
    assert len(table) == 1
    return table.iloc[0]


def test_both_signs_clear_is_memorised(tables):
    clean, strategies, overlap = tables
    row = verdict(clean, strategies["identity"], overlap, clean_rouge_l=0.3)
    assert row["verdict"] == "memorised"
    leaked = clean["leaked"]
    identity = strategies["identity"]
    assert row["identity_leaked"] == pytest.approx((identity.n_correct / 20)[leaked].mean())
    assert row["clean_unleaked"] == pytest.approx((clean.n_correct / 20)[~leaked].mean())
    assert row["rouge_leaked"] == pytest.approx(overlap.rouge_l[overlap.leaked].mean())
    rise = row["identity_leaked"] - row["clean_leaked"]
    elsewhere = row["identity_unleaked"] - row["clean_unleaked"]
    assert row["inflation"] == pytest.approx(rise - elsewhere)
    assert row["inflation_ci_low"] < row["inflation"] < row["inflation_ci_high"]
    assert row["clean_rouge_unleaked"] == pytest.approx(0.3)
    assert row["excess"] == pytest.approx(overlap.rouge_l[~overlap.leaked].mean() - 0.3)


def test_signs_that_are_absent_or_below_their_bounds(tables):
    clean, strategies, overlap = tables
    identity, batch2 = strategies["identity"], strategies["clean_batch2"]
    flat = overlap.assign(rouge_l=overlap["sample_id"] / 20)
    narrow = overlap.assign(rouge_l=overlap["rouge_l"].where(overlap["leaked"], 0.7))
    # An equal rise on leaked and unleaked questions is not inflation.
    better = clean.assign(n_correct=(clean["n_correct"] + 4).clip(upper=20))
    for solve, responses, bound, expected, sign in (
        (batch2, flat, 0.7, "not memorised", "absent"),
        (better, overlap.assign(rouge_l=0.5), 0.7, "not memorised", "absent"),
        (identity, flat, 0.7, "weakly memorised", "absent"),
        (batch2, overlap, 0.7, "weakly memorised", "absent"),
        (identity, overlap, 0.99, "weakly memorised", "weak"),
        (identity, narrow, 0.7, "weakly memorised", "weak"),
    ):
        row = verdict(clean, solve, responses, bound=bound)
        assert row["verdict"] == expected
        assert sign in row["text"]


def test_different_questions_and_a_missing_subset_are_rejected(tables):
    clean, strategies, overlap = tables
    with pytest.raises(InputError, match="identity: question 'test-0'"):
        verdict(clean, strategies["identity"].iloc[1:], overlap)
    part = clean["leaked"]
    with pytest.raises(InputError, match="leaked and unleaked"):
        verdict(clean[part], strategies["identity"][part], overlap[overlap["leaked"]])
