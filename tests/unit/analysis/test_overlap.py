import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from zerogap.analysis.overlap import overlap, peakedness, rouge_l
from zerogap.errors import InputError
from zerogap.io import parquet

SCORER = RougeScorer(["rougeL"], use_stemmer=False)
words = st.sampled_from(["she", "has", "12", "3.5", "+", "=", "apples", "The", "answer", "İs", "é"])
texts = st.one_of(st.lists(words, max_size=12).map(" ".join), st.text(max_size=30))


@given(texts, texts)
def test_rouge_l_equals_the_package_rouge_score(text, reference):
    expected = SCORER.score(reference, text)["rougeL"].fmeasure
    assert rouge_l([text], reference)[0] == pytest.approx(expected, abs=1e-12)


@pytest.fixture
def tables():
    samples = pd.DataFrame(
        {
            "question_id": ["b", "a", "b", "a"],
            "sample_id": [0, 0, 1, 1],
            "text": ["one two", "one two", "one", "three four"],
        }
    )
    greedy = pd.DataFrame({"question_id": ["a", "b"], "text": ["one two", "one three"]})
    questions = pd.DataFrame({"question_id": ["a", "b"], "leaked": [True, False]})
    return samples, greedy, questions


def test_each_sample_is_compared_with_the_trajectory_of_its_question(tmp_path, tables):
    table = overlap(*tables)
    parquet.write(tmp_path / "overlap.parquet", table, "overlap", provenance={})
    rows = table.set_index(["question_id", "sample_id"])
    assert rows["rouge_l"].to_dict() == pytest.approx(
        {("b", 0): 0.5, ("b", 1): 2 / 3, ("a", 0): 1.0, ("a", 1): 0.0}
    )
    assert all(leaked == (key[0] == "a") for key, leaked in rows["leaked"].items())


def test_a_question_missing_from_greedy_or_questions_is_rejected(tables):
    samples, greedy, questions = tables
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
