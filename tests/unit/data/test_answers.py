"""Numeric answers: extraction, canonical spelling, equality."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.data import answers
from zerogap.data.answers import Extraction, canonical, extract, same
from zerogap.errors import InputError

decimals = st.decimals(
    min_value=-(10**12), max_value=10**12, places=3, allow_nan=False, allow_infinity=False
)


@pytest.mark.parametrize(
    ("text", "answer", "extractor"),
    [
        ("So 4 + 5 = 9. The answer is 9.", "9", "the_answer_is"),
        ("The answer is 9", "9", "the_answer_is"),
        ("the answer is: $1,450.50.", "1450.5", "the_answer_is"),
        ("The answer is 7. Q: next? A: The answer is 8.", "7", "the_answer_is"),
        ("The answer is -3.", "-3", "the_answer_is"),
        ("The answer is -$3.", "-3", "the_answer_is"),
        ("The answer is $-3.", "-3", "the_answer_is"),
        ("The answer is 40%.", "40", "the_answer_is"),
        ("The answer is 18,000 dollars.", "18000", "the_answer_is"),
        ("The answer is 18, 19 or so", "18", "the_answer_is"),
        ("The answer is hard. 2 * 3 = 6\n#### 6", "6", "hash"),
        ("It is 10-3, so 7 #### 1,234", "1234", "hash"),
        ("12 dollars per 3 hours", "3", "last_number"),
        ("that leaves 10-3", "3", "last_number"),
        ("that leaves 10 - 3", "3", "last_number"),
        ("it fell to -3 degrees", "-3", "last_number"),
        ("about .5", "0.5", "last_number"),
        ("The answer is $1,234.50.", "1234.5", "the_answer_is"),
        ("The answer is £18.", "18", "the_answer_is"),
        ("The answer is € 18", "18", "the_answer_is"),
        ("The answer is −3.", "-3", "the_answer_is"),
        ("The answer is 18 dollars", "18", "the_answer_is"),
        ("The answer is 18 000 dollars.", "18000", "the_answer_is"),
        ("The answer is 1\u202f234\u202f567.", "1234567", "the_answer_is"),
        ("The answer is 18 1000 times", "18", "the_answer_is"),
        ("The answer is 1/2.", "0.5", "the_answer_is"),
        ("The answer is 36 / 2.", "18", "the_answer_is"),
        ("The answer is -3/8", "-0.375", "the_answer_is"),
        ("The answer is 1/3.", None, "the_answer_is"),
        ("The answer is 1/0.", None, "the_answer_is"),
        ("The answer is 1.8e4.", "18000", "the_answer_is"),
        ("The answer is 5E-1.", "0.5", "the_answer_is"),
        ("The answer is 3 eggs", "3", "the_answer_is"),
        ("The answer is 7.\nThe answer is 8.", "7", "the_answer_is"),
        ("The answer is 3 + 15 = 18.", "18", "the_answer_is"),
        ("The answer is 3 * 6 = $18", "18", "the_answer_is"),
        ("The answer is 2 * 3 = 6 * 3 = 18.", "18", "the_answer_is"),
        ("The answer is $1,200.50 + 3 eggs = $1,203.50.", "1203.5", "the_answer_is"),
        ("The answer is (30 + 6) / 2 = 36/2.", "18", "the_answer_is"),
        ("The answer is twice as many: 2 * 9 = 18. That is 5 more.", "5", "last_number"),
        ("The answer is 18 = 3 * 6.", "18", "the_answer_is"),
        ("The answer is 18 = 3 * 6 = 9 + 9.", "18", "the_answer_is"),
        ("The answer is 18. So x = 4.", "18", "the_answer_is"),
        ("The answer is 18, since x = 4.", "18", "the_answer_is"),
        ("The answer is 18\nx = 4", "18", "the_answer_is"),
        ("The answer is 7. The answer is 3 + 5 = 8.", "7", "the_answer_is"),
        ("The answer is 3 + 15", "3", "the_answer_is"),
        ("#### 36/2", "18", "hash"),
        ("word " * 20_000 + "The answer is 18.", "18", "the_answer_is"),
        ("9" * 100_000, "9" * 100_000, "last_number"),
        ("none here", None, "none"),
        ("", None, "none"),
    ],
)
def test_the_stated_answer_is_extracted_and_otherwise_the_last_number(text, answer, extractor):
    assert extract(text) == Extraction(answer, extractor)


@pytest.mark.parametrize(
    "next_question", [" Q: 1 + 1?\nA: ", "\n\nQ: 1 + 1?\nA: ", "\n\nQuestion: 1?\n"]
)
@pytest.mark.parametrize(
    ("response", "extractor"),
    [
        ("So 18. The answer is 18.", "the_answer_is"),
        ("So\n#### 18", "hash"),
        ("So 18", "last_number"),
    ],
)
@pytest.mark.parametrize("next_answer", ["The answer is 2.", "#### 2", "It is 2", ""])
def test_only_the_first_answer_of_a_response_that_runs_on_is_read(
    response, extractor, next_question, next_answer
):
    assert extract(response + next_question + next_answer) == Extraction("18", extractor)


@pytest.mark.parametrize(
    "text",
    [
        "Q: Tom has 4 apples.\nA: The answer is 18.",  # repeats the question
        "Let me see. Q: Tom has 4 apples.\nA: The answer is 18.",
        "Two steps.\nQuestion: how many are 2 * 9? The answer is 18.",
        "Tom has 4 in the FAQ: 9 * 2. The answer is 18.",
    ],
)
def test_a_question_that_belongs_to_the_response_does_not_end_it(text):
    assert extract(text) == Extraction("18", "the_answer_is")


@pytest.mark.parametrize("text", ["18", "18.00", "$18", "18.", " 18 ", "018", "+18", "18%"])
def test_all_spellings_of_a_number_are_the_same(text):
    assert canonical(text) == "18"
    assert same(text, "18")


@pytest.mark.parametrize(
    "text", ["", "x", "1/2", "one", "1 to 2", "--", ".", "$", "1.2.3", "1e3", "nan", "12a"]
)
def test_a_text_that_is_not_a_number_is_an_error(text):
    with pytest.raises(InputError, match="not a number"):
        canonical(text)


def test_zero_has_no_sign():
    assert canonical("-0.0") == "0"


def test_a_missing_answer_never_equals_the_gold_answer():
    assert not same(None, "3")


@given(decimals)
def test_canonical_keeps_the_value(number):
    once = canonical(f"{number:f}")
    assert Decimal(once) == number
    assert canonical(once) == once


@given(decimals, decimals)
def test_answers_are_compared_as_numbers(a, b):
    assert same(f"{a:,f}", f"${b:f}" if b >= 0 else f"{b:f}") == (a == b)


@given(decimals)
def test_any_stated_number_is_extracted(number):
    found = extract(f"We get there. The answer is {number:,f}. Q: 5?")
    assert (Decimal(found.answer), found.extractor) == (number, "the_answer_is")


@given(st.text())
def test_any_text_gives_a_canonical_answer_or_none(text):
    answer = extract(text).answer
    assert answer is None or canonical(answer) == answer


def extract_literally(text: str) -> Extraction:
    """The rule as it is stated, with every pattern applied to the whole text."""
    response = answers._NEXT_QUESTION.split(text, maxsplit=1)[0]
    text = response if answers._ANY.search(response) else text
    for extractor, pattern in (
        ("the_answer_is", answers._THE_ANSWER_IS),
        ("hash", answers._HASH),
    ):
        if match := pattern.search(text):
            parts = match.group("number", "exponent", "denominator")
            return Extraction(answers._stated_number(*parts), extractor)
    numbers = answers._ANY.findall(text)
    return (
        Extraction(canonical(numbers[-1]), "last_number") if numbers else Extraction(None, "none")
    )


WORDS = ("The answer is", "the anſwer IS ", "####", "Q:", "\n\nQuestion:", "x", "e", "é")
SYMBOLS = ("1", "20", "345", "٣", *" \n=+()-−,.$£/%", "\u00a0")


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(WORDS + SYMBOLS)).map("".join))
def test_the_shortcuts_of_extraction_change_no_answer(text):
    assert extract(text) == extract_literally(text)
