"""What makes a paraphrase valid; those by rules are valid, reworded and reproducible."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.shared_data import GSM8K, needs_gsm8k
from zerogap.data import gsm8k_format
from zerogap.data.paraphrases.rules import paraphrase
from zerogap.data.paraphrases.validation import (
    missing_numbers,
    problems_with,
    read_numbers,
    similarity,
)
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


UP_TO_NINE = "zero one two three four five six seven eight nine"
TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
UNDER_20 = f"{UP_TO_NINE} {TEENS}".split()
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spelled(number: int, join: str = " and ") -> str:
    """An English number, "two hundred and five"."""
    if number < 20:
        return UNDER_20[number]
    if number < 100:
        return TENS[number // 10] + (f"-{UNDER_20[number % 10]}" if number % 10 else "")
    for scale, word in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= scale:
            rest = number % scale
            link = join if rest < 100 else " "
            tail = link + spelled(rest, join) if rest else ""
            return f"{spelled(number // scale, join)} {word}{tail}"
    raise AssertionError(number)


def values(text: str) -> list[Fraction]:
    """The first meaning of each number that must stay."""
    return [
        value for number in read_numbers(text) if number.required for value in number.meanings[0]
    ]


large = st.integers(2, 10**9 - 1)
links = st.sampled_from([" ", " and "])


@given(large, links)
def test_words_and_digits_are_the_same_number(number: int, join: str) -> None:
    for text in (f"{number} pens", f"{number:,} pens", f"{spelled(number, join)} pens"):
        assert values(text) == [number], text


@given(st.lists(large, min_size=1, max_size=4), links, st.data())
def test_numbers_may_be_spelled_otherwise_and_occur_more_or_less_often(
    numbers: list[int], join: str, data: st.DataObject
) -> None:
    digits = ", then ".join(f"{number} pens" for number in numbers)
    again = data.draw(st.permutations([*numbers, *numbers[:1]]))
    words = ", then ".join(f"{spelled(number, join)} pens" for number in again)
    assert missing_numbers(digits, words) == []
    assert missing_numbers(words, digits) == []


@given(st.lists(large, min_size=2, max_size=4, unique=True))
def test_a_lost_or_a_new_number_is_found(numbers: list[int]) -> None:
    complete = ", then ".join(f"{spelled(number)} pens" for number in numbers)
    shorter = ", then ".join(f"{number} pens" for number in numbers[1:])
    assert missing_numbers(complete, shorter) == [spelled(numbers[0])]
    assert missing_numbers(shorter, complete) == []


def test_words_that_may_be_several_numbers_contain_each_of_them() -> None:
    assert missing_numbers("2 pens", "two hundred and two pencils") == []
    assert missing_numbers("3 pens", "two hundred and two pencils") == ["3"]


@given(st.text(max_size=60))
def test_any_text_can_be_read_and_has_its_own_numbers(text: str) -> None:
    assert missing_numbers(text, text) == []


SAME = [
    ("100 men", "a hundred men"), ("1200 men", "twelve hundred men"),
    ("2,500,000 men", "2.5 million men"), ("12 eggs", "a dozen eggs"),
    ("36 eggs", "three dozen eggs"), ("6 eggs", "half a dozen eggs"),
    ("500,000 men", "half a million men"), ("twice as many", "2 times as many"),
    ("doubled", "two times"), ("triples it", "three times it"), ("half of it", "1/2 of it"),
    ("half of it", "50% of it"), ("a quarter of it", "25 percent of it"),
    ("a third of them", "1/3 of them"), ("three quarters of them", "75% of them"),
    ("3 quarters and a dime", "three quarters and a dime"), ("1.5 hours", "an hour and a half"),
    ("1 1/2 hours", "one and a half hours"), ("2 1/4 cups", "two and one quarter cups"),
    ("1 apple", "an apple"), ("two pens", "a pair of pens"), ("25 pens", "twenty five pens"),
    ("He has 5 and 5", "He has five each time"), ("$1,000", "a thousand dollars"),
    ("his 3rd day", "his third day"), ("0 left", "none left"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_no_number_is_missing_that_is_there_in_other_words(one: str, other: str) -> None:
    assert missing_numbers(one, other) == []
    assert missing_numbers(other, one) == []


LOST = [
    ("a dozen eggs", "some eggs", "a dozen"), ("half of it", "part of it", "half"),
    ("twice as many", "as many", "twice"), ("twice as many", "three times as many", "twice"),
    ("1/2 of it", "2 of it", "1/2"), ("1.5 pies", "half a pie", "1.5"),
    ("one and a half pies", "half a pie", "one and a half"),
    ("100% of a group", "some of a group", "100"), ("a hundred men", "a man", "a hundred"),
    ("two hundred and five men", "200 men", "two hundred and five"),
    ("3 hundred men", "3 men", "3 hundred"), ("a third of them", "some of them", "a third"),
    ("2/3 of 9", "3 of 9", "2/3"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "paraphrase", "missing"), LOST)
def test_a_lost_or_changed_number_is_missing(text: str, paraphrase: str, missing: str) -> None:
    assert missing_numbers(text, paraphrase) == [missing]


def test_articles_ordinals_and_dates_are_not_numbers_of_their_own() -> None:
    assert values("On the second day a boy and one of his friends bought a third one") == []
    assert values("from 5/10/2020 to 9 a.m.") == [5, 10, 2020, 9]
