"""What makes a paraphrase valid; those by rules are valid, reworded and reproducible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.shared_data import GSM8K, needs_gsm8k
from zerogap.data import gsm8k_format
from zerogap.data.paraphrases.rules import paraphrase
from zerogap.data.paraphrases.validation import MAX_SIMILARITY, problems_with, similarity
from zerogap.data.toy import problems

QUESTION = "Ann has 12 pens and buys three packs of 5. How many pens does Ann have now?"


@pytest.mark.parametrize("seed", [0, 1])
def test_paraphrases_of_generated_questions_are_valid_and_well_formed(seed):
    questions = [p.question for p in problems(300, 4, "test")]
    texts = [paraphrase(question, seed) for question in questions]
    for question, text in zip(questions, texts, strict=True):
        assert problems_with(question, text) == []
        assert text[0].isupper() or text[0].isdigit()
        assert not any(mark in text for mark in ("  ", " .", " ,", "..", "?.", " ?"))
    similarities = [similarity(q, p) for q, p in zip(questions, texts, strict=True)]
    assert sum(similarities) / len(similarities) < 0.5
    assert len(set(texts)) == len(texts)


# Written for this test in the style of the benchmark's longer and less regular questions.
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
def test_paraphrases_of_irregular_questions_are_valid(question):
    assert problems_with(question, paraphrase(question, 0)) == []


@needs_gsm8k
def test_paraphrases_of_gsm8k_are_valid():
    for question in gsm8k_format.load(GSM8K / "test.jsonl")[::10]:
        assert problems_with(question.question, paraphrase(question.question, 1)) == []


def test_question_and_seed_determine_the_paraphrase():
    assert paraphrase(QUESTION, 3) == paraphrase(QUESTION, 3)
    assert len({paraphrase(QUESTION, seed) for seed in range(8)}) > 3


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
