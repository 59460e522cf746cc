import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerogap.data import gsm8k
from zerogap.data.paraphrases.rules import (
    LARGEST_SIMILARITY,
    numbers,
    paraphrase,
    problems_with,
    similarity,
)
from zerogap.data.toy.word_problems import problems

FOLDER = os.environ.get("ZEROGAP_GSM8K", Path(__file__).parents[2] / ".." / "shared/data/gsm8k")
REAL = Path(FOLDER, "test.jsonl")
QUESTION = "Ann has 12 pens and buys three packs of 5. How many pens does Ann have now?"
REWORDED = "After Ann, who owns 12 pens, gets 3 packs with 5 in each, what is her total?"


@pytest.mark.parametrize("seed", [0, 1])
def test_generated_questions(seed):
    questions = [p.question for p in problems(300, 4, "test")]
    texts = [paraphrase(question, seed) for question in questions]
    for question, text in zip(questions, texts, strict=True):
        assert problems_with(question, text) == []
        assert text[0].isupper() or text[0].isdigit()
        assert not any(mark in text for mark in ("  ", " .", " ,", "..", "?.", " ?"))
    alike = [similarity(q, p) for q, p in zip(questions, texts, strict=True)]
    assert sum(alike) / len(alike) < 0.5
    assert len(set(texts)) == len(texts)


# Our own, in the manner of the benchmark's longer and less regular questions.
@pytest.mark.parametrize(
    "question",
    [
        "If a crate holds 12 jars, how many jars are in 4 crates?",
        "Dr. Lee works from 9 a.m. to 5 p.m. for $20.50 an hour. How much does she earn per day?",
        "A rope is 30 feet long. Calculate the length of a third of it in feet.",
        "Kim's school has 1,200 pupils; 25% of them walk. The rest take one of the 15 buses. "
        "On average, how many pupils are on each bus?",
        "How much more is 3/4 of 80 than two thirds of 60?",
        "What number is 5 more than 7?",
    ],
)
def test_questions_of_other_shapes(question):
    assert problems_with(question, paraphrase(question, 0)) == []


@pytest.mark.skipif(not REAL.is_file(), reason="GSM8K is not here (ZEROGAP_GSM8K)")
def test_gsm8k():
    for row in gsm8k.load(REAL)[::10]:
        assert problems_with(row.question, paraphrase(row.question, 1)) == []


def test_the_arguments_decide():
    assert paraphrase(QUESTION, 3) == paraphrase(QUESTION, 3)
    assert len({paraphrase(QUESTION, seed) for seed in range(8)}) > 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (REWORDED.replace("12", "a dozen"), "missing numbers: 12"),
        (REWORDED.replace("12", "21"), "invented numbers: 21"),
        (REWORDED + " Also 5.", "invented numbers: 5"),
        (REWORDED.replace(", what", ",\nwhat"), "more than one line"),
        (REWORDED + " The answer is what?", "solution"),
        (QUESTION, "hardly reworded"),
        (QUESTION.replace("buys", "purchases"), "hardly reworded"),
        (REWORDED + " and so on" * 20, "three times as long"),
    ],
)
def test_what_is_wrong_is_said(text, says):
    assert any(says in problem for problem in problems_with(QUESTION, text))


def test_a_good_paraphrase_has_no_problems():
    assert problems_with(QUESTION, REWORDED) == []


def test_numbers_in_digits_and_words():
    text = "Twenty-five of 1,200 and 2.50, one of ten, $.5 and forty two"
    assert numbers(text) == Counter(["25", "1200", "2.5", "10", "0.5", "42"])


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1).map(" ".join)


@given(words, words)
def test_similarity_is_symmetric_and_one_only_for_equals(a, b):
    assert similarity(a, b) == similarity(b, a)
    assert (similarity(a, b) == 1) == (a == b)
    assert 0 <= LARGEST_SIMILARITY < 1
