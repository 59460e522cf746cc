"""Numbers of an evaluation, from responses whose values can be counted by hand."""

import math

import pandas as pd
import pytest

from helpers.evaluations import evaluated
from zerogap.evaluation.summary import summarise


@pytest.fixture
def summary():
    """Three questions of four responses: a falls, b halves, c is never solved."""
    return summarise(evaluated({"identity": [4, 2, 0], "railcap": [1, 1, 0], "ted": [None, 1, 0]}))


def test_solve_probabilities_and_drops_are_those_of_the_counts(summary):
    table = summary.questions.set_index("question_id")
    assert table[["identity", "railcap"]].T.values.tolist() == [[1, 0.5, 0], [0.25, 0.25, 0]]
    assert list(table.drop_railcap) == [0.75, 0.25, 0]
    identity, railcap, ted = summary.strategies.values()
    assert (identity.solve_mean[0], identity.drop) == (0.5, None)
    value, low, high = railcap.drop
    assert value == pytest.approx(1 / 3)
    assert low < value < high
    # A question without responses is not solved and has no overlap.
    assert table.ted["a"] == 0
    assert not math.isnan(ted.rouge_l)


def test_the_likelihood_is_a_mean_over_tokens_and_min_k_over_the_least_likely_fifth(summary):
    assert list(summary.questions.gold_likelihood) == [pytest.approx(-0.8)] * 3
    assert list(summary.questions.min_k) == [-2] * 3


def test_a_question_without_a_known_solution_has_no_likelihood():
    collected = evaluated({"identity": [4, 1]})
    collected.likelihoods.at[0, "log_probabilities"] = []
    table = summarise(collected).questions
    assert list(table[["gold_likelihood", "min_k"]].isna().all(axis=1)) == [True, False]


def test_peakedness_counts_responses_that_repeat_the_greedy_trajectory():
    # Right responses of these tables repeat the trajectory, wrong ones share nothing with it.
    summary = summarise(evaluated({"identity": [4, 1]}))
    assert list(summary.questions.peakedness) == [1, 0.25]
    assert list(summary.questions.rouge_l) == [1, 0.25]


def test_responses_without_an_answer_are_counted():
    collected = evaluated({"identity": [4, 1]})
    collected.samples["identity"].loc[:1, "answer"] = None
    assert summarise(collected).unanswered == 0.25


def test_questions_keep_their_order_and_greedy_responses_that_are_cut_off_are_counted():
    collected = evaluated({"identity": [0, 4, 2]})
    collected.greedy["finish_reason"] = ["length", "eos", "eos"]
    assert summarise(collected).num_cut_off == 1
    shuffled = collected._replace(
        greedy=collected.greedy.iloc[::-1],
        samples={name: table.iloc[::-1] for name, table in collected.samples.items()},
    )
    pd.testing.assert_frame_equal(summarise(shuffled).questions, summarise(collected).questions)
