"""What makes a paraphrase valid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerogap.data.paraphrases.validation import MAX_SIMILARITY, problems_with, similarity

QUESTION = "Ann has 12 pens and buys three packs of 5. How many pens does Ann have now?"
REWORDED = "After Ann, who owns 12 pens, gets 3 packs with 5 in each, what is her total?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (REWORDED.replace("12", "many"), "missing numbers: 12"),
        (REWORDED.replace("12", "21"), "added numbers: 21"),
        (REWORDED + " Also 7.", "added numbers: 7"),
        (REWORDED.replace(", what", ",\nwhat"), "more than one line"),
        (REWORDED + " The answer is what?", "solution"),
        (QUESTION, "hardly reworded"),
        (QUESTION.replace("buys", "purchases"), "hardly reworded"),
        (REWORDED + " and so on" * 20, "three times as long"),
    ],
)
def test_each_problem_of_a_paraphrase_is_named(text, message):
    assert any(message in problem for problem in problems_with(QUESTION, text))


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1).map(" ".join)


@given(words, words)
def test_similarity_is_symmetric_and_1_only_for_equal_texts(a, b):
    assert similarity(a, b) == similarity(b, a)
    assert (similarity(a, b) == 1) == (a == b)
    assert 0 <= MAX_SIMILARITY < 1
