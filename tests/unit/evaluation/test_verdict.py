import pandas as pd
import pytest

from helpers.evaluations import evaluated
from zerogap.evaluation.report import _not_a_formula, answer_note, question_table, strategy_table
from zerogap.evaluation.summary import summarise
from zerogap.evaluation.verdict import verdict
from zerogap.reporting.render import to_markdown


def summary(**num_correct):
    return summarise(*evaluated(num_correct))


def metric_values(rows, margin=0.0):
    metrics = pd.DataFrame(rows, columns=["strategy", "metric", "value"])
    low, high = metrics.value - margin, metrics.value + margin
    return metrics.assign(subset="all", ci_low=low, ci_high=high)


@pytest.mark.parametrize(
    ("identity", "railcap", "meaning"),
    [
        ([4, 4, 4], [0, 0, 4], "most of the questions that the model solves show both signs"),
        ([4, 4, 4], [0, 4, 4], "some of the questions that the model solves show both signs"),
        ([4, 4, 4], [4, 4, 4], "no question shows both signs of memorisation"),
        ([1, 1, 0], [0, 0, 0], "too few of these questions"),
    ],
)
def test_the_two_signs_have_a_meaning_together(identity, railcap, meaning):
    assert meaning in verdict(summary(identity=identity, railcap=railcap), None)[1]


def test_where_no_question_can_collapse_no_numbers_of_collapses_are_given():
    seen = verdict(summary(identity=[1, 0], railcap=[0, 0]), None)[0]
    assert seen.endswith("No question has a solve probability of 0.5 or more.")


def test_a_collapse_without_peaked_responses_is_not_evidence():
    questions, greedy, samples = evaluated({"identity": [4, 4], "railcap": [0, 0]})
    greedy["token_ids"] = [[7] * 20] * 2  # right responses, in other words than the greedy one
    numbers = summarise(questions, greedy, samples)
    assert "By itself, that is not evidence of memorisation" in verdict(numbers, None)[1]


def test_the_numbers_are_in_the_words():
    seen = verdict(summary(identity=[4, 4, 0], railcap=[4, 0, 0]), None)[0]
    assert "mean probability of 0.67 [" in seen
    assert "67% of its responses nearly repeat its own greedy trajectory" in seen
    assert "on 2 of 3 questions at least 50% do" in seen
    assert "falls by 0.33 [" in seen
    assert "1 of the 2 questions" in seen
    assert "1 questions show both signs" not in seen
    assert "1 question shows both signs" in seen


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
    paragraphs = verdict(summary(identity=[4, 2]), metric_values(rows, 0.1))
    assert "it solves 0.50 of the questions on average, the model 0.75" in paragraphs[2]
    assert "TED is closest to the clean model with 0.28 [0.18, 0.38]" in paragraphs[2]
    assert "Two batches of the clean model are 0.07 apart" in paragraphs[2]
    assert "in nothing else" in paragraphs[3].replace("\n", " ")


def test_a_clean_model_that_solves_nothing_is_no_reference():
    rows = [("clean", "solve_mean", 0.0), ("identity", "solve_mean", 0.75)]
    rows += [("identity", "sa_ppg", 0.75), ("railcap", "sa_ppg", 0.0)]
    paragraph = verdict(summary(identity=[4, 2]), metric_values(rows))[2]
    assert "THE CLEAN MODEL SOLVES NONE of these questions" in paragraph
    assert "closest" not in paragraph


@pytest.mark.parametrize(
    ("text", "written"),
    [("=1+1", "'=1+1"), (" @a", "' @a"), ("-2+3", "'-2+3"), ("-5", "-5"), ("a=b", "a=b"), (1, 1)],
)
def test_no_cell_of_the_csv_file_is_a_formula(text, written):
    assert _not_a_formula(text) == written


def test_a_closest_strategy_that_is_farther_than_identity_is_said_to_be():
    rows = [("clean", "solve_mean", 0.5), ("identity", "solve_mean", 0.75)]
    rows += [("identity", "sa_ppg", 0.2), ("railcap", "sa_ppg", 0.42)]
    paragraph = verdict(summary(identity=[4, 2]), metric_values(rows))[2]
    assert "No strategy is closer to the clean model" in paragraph


def test_the_tables_show_collapse_and_the_largest_drops_first():
    numbers = summary(identity=[2, 4, 4], railcap=[2, 0, 4], ted=[None, None, None])
    text = to_markdown(strategy_table(numbers, "model on questions", 4, "All have answers."))
    assert "1 of 3" in text
    assert "The greedy responses solve 3 of the 3 questions" in text
    table = question_table(numbers)
    assert [row.key for row in table.rows] == ["b", "a", "c"]


def test_responses_without_text_or_answer_are_counted():
    table = pd.DataFrame({"text": ["18", " ", "who knows"], "answer": ["18", None, None]})
    note = answer_note({"greedy": table[:1], "identity": table})
    assert note.endswith("have no answer: greedy 0 and 0 of 1, Identity 1 and 2 of 3.")
