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
    ("counts", "part", "words"),
    [
        ({"identity": [4, 4, 4], "railcap": [0, 0, 4]}, 1, "most of the questions that the model"),
        ({"identity": [4, 4, 4], "railcap": [0, 4, 4]}, 1, "some of the questions that the model"),
        ({"identity": [4, 4, 4], "railcap": [4, 4, 4]}, 1, "no question shows both signs"),
        ({"identity": [1, 1, 0], "railcap": [0, 0, 0]}, 1, "too few of these questions"),
        ({"identity": [1, 0], "railcap": [0, 0]}, 0, "No question has a solve probability of 0.5"),
        ({"identity": [4, 0], "ted": [4, 0]}, 1, "add railcap to --strategies"),
        ({"identity": [4]}, -1, "without a clean model there is no reference"),
    ],
)
def test_each_paragraph_says_what_the_numbers_mean(counts, part, words):
    assert words in verdict(summary(**counts), None)[part]


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


@pytest.mark.parametrize(
    ("clean", "distances", "words"),
    [
        (0.5, {"ted": 0.28}, "TED is closest to the clean model with 0.28 [0.18, 0.38]"),
        (0.5, {}, "No strategy is closer to the clean model; the next is RailCap with 0.42"),
        (0.5, {"clean_batch2": 0.07}, "Two batches of the clean model are 0.07 apart"),
        (0.0, {}, "THE CLEAN MODEL SOLVES NONE of these questions"),
    ],
)
def test_with_a_clean_model_distances_and_the_closest_strategy_are_named(clean, distances, words):
    rows = [("clean", "solve_mean", clean), ("identity", "solve_mean", 0.75)]
    distances = {"identity": 0.31, "railcap": 0.42, **distances}
    rows += [(name, "sa_ppg", value) for name, value in distances.items()]
    *_, paragraph, assumed = verdict(summary(identity=[4, 2]), metric_values(rows, 0.1))
    assert f"it solves {clean:.2f} of the questions on average, the model 0.75" in paragraph
    assert words in paragraph
    assert ("closest to" in paragraph or "is closer to" in paragraph) == bool(clean)
    assert "in nothing else" in assumed.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "written"),
    [("=1+1", "'=1+1"), (" @a", "' @a"), ("-2+3", "'-2+3"), ("-5", "-5"), ("a=b", "a=b"), (1, 1)],
)
def test_no_cell_of_the_csv_file_is_a_formula(text, written):
    assert _not_a_formula(text) == written


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
