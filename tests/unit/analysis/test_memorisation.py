"""Memorisation, and the overlap of responses with the greedy trajectory."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from helpers.synthetic_run import overlap_table, solve_tables
from zerogap.analysis.memorisation import memorisation
from zerogap.analysis.overlap import overlap, peakedness, rouge_l
from zerogap.errors import InputError
from zerogap.io import parquet


@pytest.fixture(scope="module")
def tables():
    """Also one in which the contaminated model solves nearly every leaked question."""
    clean, strategies = solve_tables(n=80, m=20)
    n_correct = strategies["identity"].n_correct.where(~clean.leaked, 19)
    strategies["certain"] = strategies["identity"].assign(n_correct=n_correct)
    return clean, strategies, overlap_table(n=80, m=20)


def verdict(clean, identity, overlap, clean_rouge_l=0.5):
    clean_overlap = overlap.assign(rouge_l=clean_rouge_l)
    (row,) = memorisation(clean, identity, overlap, clean_overlap, n_resamples=200).to_dict(
        "records"
    )
    return row


def test_both_signs_clear_is_memorised(tables):
    clean, strategies, overlap = tables
    identity, leaked = strategies["certain"], clean["leaked"]
    row = verdict(clean, identity, overlap, clean_rouge_l=0.3)
    assert row["verdict"] == "memorised"
    assert row["identity_leaked"] == pytest.approx((identity.n_correct / 20)[leaked].mean())
    assert row["clean_unleaked"] == pytest.approx((clean.n_correct / 20)[~leaked].mean())
    assert row["rouge_leaked"] == pytest.approx(overlap.rouge_l[overlap.leaked].mean())
    rise = row["identity_leaked"] - row["clean_leaked"]
    elsewhere = row["identity_unleaked"] - row["clean_unleaked"]
    assert row["inflation"] == pytest.approx(rise - elsewhere)
    assert row["inflation_ci_low"] < row["inflation"] < row["inflation_ci_high"]
    assert row["clean_rouge_unleaked"] == pytest.approx(0.3)
    assert row["excess"] == pytest.approx(overlap.rouge_l[~overlap.leaked].mean() - 0.3)


def test_a_sign_that_is_absent_or_below_its_bound_lowers_the_verdict(tables):
    clean, strategies, overlap = tables
    identity, certain, batch2 = (strategies[k] for k in ("identity", "certain", "clean_batch2"))
    flat = overlap.assign(rouge_l=overlap["sample_id"] / 20)
    narrow = overlap.assign(rouge_l=overlap["rouge_l"].where(overlap["leaked"], 0.7))
    # An equal rise on leaked and unleaked questions is not inflation.
    better = clean.assign(n_correct=(clean["n_correct"] + 4).clip(upper=20))
    for solve, responses, expected, sign in (
        (batch2, flat, "not memorised", "absent"),
        (better, overlap.assign(rouge_l=0.5), "not memorised", "absent"),
        (certain, flat, "weakly memorised", "absent"),
        (batch2, overlap, "weakly memorised", "absent"),
        (identity, overlap, "weakly memorised", "weak"),
        (certain, narrow, "weakly memorised", "weak"),
    ):
        row = verdict(clean, solve, responses)
        assert row["verdict"] == expected
        assert sign in row["text"]


def test_different_questions_and_a_missing_subset_are_rejected(tables):
    clean, strategies, overlap = tables
    with pytest.raises(InputError, match="identity: question 'test-0'"):
        verdict(clean, strategies["identity"].iloc[1:], overlap)
    part = clean["leaked"]
    with pytest.raises(InputError, match="leaked and unleaked"):
        verdict(clean[part], strategies["identity"][part], overlap[overlap["leaked"]])


SCORER = RougeScorer(["rougeL"], use_stemmer=False)
words = st.sampled_from(["she", "has", "12", "3.5", "+", "=", "apples", "The", "answer", "İs", "é"])
texts = st.one_of(st.lists(words, max_size=12).map(" ".join), st.text(max_size=30))


@given(texts, texts)
def test_rouge_l_equals_the_package_rouge_score(text, reference):
    expected = SCORER.score(reference, text)["rougeL"].fmeasure
    assert rouge_l([text], reference)[0] == pytest.approx(expected, abs=1e-12)


@pytest.fixture
def responses():
    rows = [("b", 0, "one two"), ("a", 0, "one two"), ("b", 1, "one"), ("a", 1, "three four")]
    samples = pd.DataFrame(rows, columns=["question_id", "sample_id", "text"])
    greedy = pd.DataFrame({"question_id": ["a", "b"], "text": ["one two", "one three"]})
    questions = pd.DataFrame({"question_id": ["a", "b"], "leaked": [True, False]})
    return samples, greedy, questions


def test_each_sample_is_compared_with_the_trajectory_of_its_question(tmp_path, responses):
    table = overlap(*responses)
    parquet.write(tmp_path / "overlap.parquet", table, "overlap", provenance={})
    rows = table.set_index(["question_id", "sample_id"])
    assert rows["rouge_l"].to_dict() == pytest.approx(
        {("b", 0): 0.5, ("b", 1): 2 / 3, ("a", 0): 1.0, ("a", 1): 0.0}
    )
    assert all(leaked == (key[0] == "a") for key, leaked in rows["leaked"].items())


def test_a_question_missing_from_greedy_or_questions_is_rejected(responses):
    samples, greedy, questions = responses
    with pytest.raises(InputError, match="'a' is not in the greedy table"):
        overlap(samples, greedy.iloc[1:], questions)
    with pytest.raises(InputError, match="'b' is not in the questions table"):
        overlap(samples, greedy, questions.iloc[:1])


TRAJECTORY = list(range(40))  # two edits are 5 % of it


@pytest.mark.parametrize(
    ("responses", "trajectory", "share"),
    [
        ([TRAJECTORY, TRAJECTORY[2:], TRAJECTORY[3:], [99] * 40], TRAJECTORY, 0.5),
        # The longest response sets how many edits are allowed.
        ([TRAJECTORY[3:]], TRAJECTORY, 0.0),
        ([TRAJECTORY[3:], [99] * 60], TRAJECTORY, 0.5),
        # Tokens after the hundredth are not compared.
        ([[*range(100), 7, 7, 7, 7, 7, 7, 7]], list(range(100)), 1.0),
        ([[], []], [], 1.0),
        ([], TRAJECTORY, math.nan),
    ],
)
def test_peakedness_is_the_share_of_responses_within_five_per_cent(responses, trajectory, share):
    assert peakedness(responses, trajectory) == pytest.approx(share, abs=0, nan_ok=True)
