"""Numbers of an evaluation, from responses whose values can be counted by hand."""

import math

import pandas as pd
import pytest

from helpers.evaluations import evaluated
from zerogap.evaluation.summary import summarise


@pytest.fixture
def summary():
    """Three questions of four responses: a collapses, b halves, c is never solved."""
    return summarise(*evaluated({"identity": [4, 2, 0], "railcap": [1, 1, 0], "ted": [None, 1, 0]}))


def test_solve_probabilities_drops_and_collapses_are_those_of_the_counts(summary):
    table = summary.questions.set_index("question_id")
    assert table[["identity", "railcap"]].T.values.tolist() == [[1, 0.5, 0], [0.25, 0.25, 0]]
    assert list(table.drop_railcap) == [0.75, 0.25, 0]
    identity, railcap, ted = summary.strategies.values()
    assert (identity.solve_mean[0], identity.drop) == (0.5, None)
    value, low, high = railcap.drop
    assert value == pytest.approx(1 / 3)
    assert low < value < high
    assert (summary.num_solvable, railcap.num_collapsed) == (2, 1)
    # A question without responses is not solved and has no overlap.
    assert (table.ted["a"], ted.num_collapsed) == (0, 1)
    assert not math.isnan(ted.rouge_l)


def test_a_drop_of_exactly_half_counts_although_its_floats_are_less():
    assert 29 / 50 - 4 / 50 < 0.5
    exact = summarise(*evaluated({"identity": [29, 29], "railcap": [4, 5]}, num_samples=50))
    assert exact.strategies["railcap"].num_collapsed == 1
    assert exact.num_both == 1


def test_peakedness_counts_responses_that_repeat_the_greedy_trajectory():
    # Right responses of these tables repeat the trajectory, wrong ones share nothing with it.
    summary = summarise(*evaluated({"identity": [4, 1]}))
    assert list(summary.questions.peakedness) == [1, 0.25]
    assert list(summary.questions.rouge_l) == [1, 0.25]


def test_questions_keep_their_order_and_greedy_responses_that_are_cut_off_are_counted():
    questions, greedy, samples = evaluated({"identity": [0, 4, 2]})
    greedy["finish_reason"] = ["length", "eos", "eos"]
    assert summarise(questions, greedy, samples).num_cut_off == 1
    shuffled = {name: table.iloc[::-1] for name, table in samples.items()}
    pd.testing.assert_frame_equal(
        summarise(questions, greedy.iloc[::-1], shuffled).questions,
        summarise(questions, greedy, samples).questions,
    )
