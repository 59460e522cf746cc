import pandas as pd
import pytest

from helpers.evaluations import evaluated
from zerogap.evaluation.comparison import Comparison
from zerogap.evaluation.summary import summarise
from zerogap.evaluation.tables import question_table, strategy_table
from zerogap.evaluation.verdict import verdict
from zerogap.reporting.render import to_markdown


def summary(**num_correct):
    return summarise(*evaluated(num_correct))


@pytest.mark.parametrize(
    ("identity", "railcap", "meaning"),
    [
        ([4, 4, 4], [0, 0, 1], "both signs of memorisation are there"),
        ([4, 4, 4], [4, 4, 1], "most of the score survives without it"),
        ([2, 2, 0], [0, 0, 0], "By itself, that is not evidence of memorisation"),
        ([2, 2, 0], [2, 2, 0], "neither sign of memorisation is clear"),
        ([1, 1, 0], [0, 0, 0], "too few of these questions"),
    ],
)
def test_the_two_signs_have_a_meaning_together(identity, railcap, meaning):
    assert meaning in verdict(summary(identity=identity, railcap=railcap), None)[1]


def test_the_numbers_are_in_the_words():
    seen = verdict(summary(identity=[4, 4, 0], railcap=[4, 0, 0]), None)[0]
    assert "mean probability of 0.67 [" in seen
    assert "67% of its responses nearly repeat its own greedy trajectory" in seen
    assert "falls by 0.33 [" in seen
    assert "1 of the 2 questions" in seen


def test_without_a_clean_model_the_verdict_says_what_is_missing():
    assert "without a clean model there is no reference" in verdict(summary(identity=[4]), None)[-1]


def test_without_railcap_nothing_is_said_about_dependence():
    assert "add railcap to --strategies" in verdict(summary(identity=[4, 0], ted=[4, 0]), None)[1]


def test_with_a_clean_model_distances_and_the_closest_strategy_are_named():
    rows = [
        ("clean", "solve_mean", 0.5), ("identity", "solve_mean", 0.75),
        ("identity", "sa_ppg", 0.31), ("railcap", "sa_ppg", 0.42), ("ted", "sa_ppg", 0.28),
        ("clean_batch2", "sa_ppg", 0.07),
    ]  # fmt: skip
    metrics = pd.DataFrame(rows, columns=["strategy", "metric", "value"])
    metrics = metrics.assign(subset="all", ci_low=metrics.value - 0.1, ci_high=metrics.value + 0.1)
    paragraphs = verdict(summary(identity=[4, 2]), Comparison(metrics, pd.DataFrame()))
    assert "it solves 0.50 of the questions on average, the model 0.75" in paragraphs[2]
    assert "TED is closest to the clean model with 0.28 [0.18, 0.38]" in paragraphs[2]
    assert "Two batches of the clean model are 0.07 apart" in paragraphs[2]
    assert "in nothing else" in paragraphs[3].replace("\n", " ")


def test_the_tables_show_collapse_and_the_largest_drops_first():
    numbers = summary(identity=[2, 4, 4], railcap=[2, 0, 4], ted=[None, None, None])
    text = to_markdown(strategy_table(numbers, "model on questions", 4))
    assert "1 of 3" in text
    assert "The greedy responses solve 3 of the 3 questions" in text
    table = question_table(numbers)
    assert [row.key for row in table.rows] == ["b", "a", "c"]
