"""Fresh numbers: the same questions with other numbers and recomputed answers."""

import re
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.shared_data import GSM8K, needs_gsm8k
from zerogap.data import gsm8k_format
from zerogap.data.fresh_numbers import with_fresh_numbers

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")


def numbers(text: str) -> list[Fraction]:
    return [Fraction(digits.rstrip(",").replace(",", "")) for digits in NUMBER.findall(text)]


def masked(text: str) -> str:
    return re.sub(r"[\d,]*\.?\d", "#", text)


def annotations_are_true(answer: str) -> bool:
    equations = [found.split("=") for found in re.findall(r"<<([^<>]*)>>", answer)]
    bare = [[side.replace("%", "/100").lstrip("0") or "0" for side in e] for e in equations]
    return all(abs(eval(side) - float(sides[-1])) < 1e-6 for sides in bare for side in sides)


def entry_gold(entry: gsm8k_format.Entry) -> Fraction:
    return Fraction(gsm8k_format.parse(entry).gold)


def draws(question: str, answer: str, number: int = 20) -> list[gsm8k_format.Entry | None]:
    entry = {"question": question, "answer": answer}
    return [with_fresh_numbers(entry, Random(seed)) for seed in range(number)]


def fresh(question: str, answer: str, number: int = 20) -> list[gsm8k_format.Entry]:
    found = [entry for entry in draws(question, answer, number) if entry]
    assert len(found) == number
    return found


@given(st.integers(2, 40), st.integers(2, 9), st.integers(41, 99), st.integers())
@settings(deadline=None, max_examples=50)
def test_the_answer_is_the_one_for_the_new_numbers(a: int, b: int, c: int, seed: int) -> None:
    question = "Tim has {} bags of {} pens and buys {:,} more. How many pens has he?"
    answer = "He has {}*{}=<<{}*{}={}>>{} pens.\nThen {}+{}=<<{}+{}={}>>{}.\n#### {}"

    def entry(a: int, b: int, c: int) -> gsm8k_format.Entry:
        x, y = a * b, a * b + c
        values = (a, b, a, b, x, x, x, c, x, c, y, y, y)
        return {"question": question.format(a, b, c), "answer": answer.format(*values)}

    new = with_fresh_numbers(entry(a, b, c), Random(seed))
    if new is not None:
        inputs = [int(number) for number in numbers(new["question"])]
        assert new == entry(*inputs)
        assert new["answer"].split("#")[-1] != entry(a, b, c)["answer"].split("#")[-1]


def test_all_inputs_change_and_stay_alike() -> None:
    question = "A shop has 1,200 pens at $2.50 and 48 cups at $7. What are they worth?"
    answer = (
        "Pens: 1,200 x 2.5 = $<<1200*2.5=3000>>3,000\nCups: 48*7=$<<48*7=336>>336\n"
        "Together $3,000+336=$<<3000+336=3336>>3,336\n#### 3336"
    )
    for entry in fresh(question, answer):
        pens, price, cups, cup = re.findall(r"[\d,.]*\d", entry["question"])
        assert re.fullmatch(r"\d,[1-9]00", pens)
        assert pens != "1,200"
        assert re.fullmatch(r"[1-5]\.[1-9]0", price)
        assert price != "2.50"
        assert 24 <= int(cups) <= 96
        assert cups != "48"
        assert cup in ["4", "5", "6", "8", "9"]
        gold = int(Fraction(pens.replace(",", "")) * Fraction(price)) + int(cups) * int(cup)
        assert entry["answer"].endswith(f"\n#### {gold}")
        assert f">>{gold:,}" in entry["answer"]


@pytest.mark.parametrize(
    ("share", "calculation", "gold"),
    [
        ("30%", "200*.3=<<200*.3=60>>60", 60),
        ("30 percent", "200*30/100=<<200*30*.01=60>>60", 60),
        ("30 cents", "200*$.30=<<200*.3=60>>60", 60),
    ],
)
def test_percentages_and_cents_keep_their_form(share: str, calculation: str, gold: int) -> None:
    question = f"Of 200 pens, {share}. How many?"
    for entry in fresh(question, f"{calculation}\n#### {gold}"):
        new_share = numbers(entry["question"])[1]
        assert masked(entry["question"]) == masked(question)
        assert annotations_are_true(entry["answer"])
        assert new_share in (20, 40, 50, 60)


def test_numbers_that_are_no_input_stay() -> None:
    question = "The 3rd van of 2 pm drives 5 hours at 40 miles an hour in 2019. How far?"
    answer = "It drives 5*40=<<5*40=200>>200 miles.\n#### 200"
    for entry in fresh(question, answer):
        third, time, hours, speed, year = numbers(entry["question"])
        assert (third, time, year) == (3, 2, 2019)
        assert (hours != 5, speed != 40) == (True, True)


def test_numbers_that_words_imply_stay() -> None:
    question = "Ann runs 60 minutes and 36 more. How many hours?"
    answer = "She runs 60+36=<<60+36=96>>96 minutes, or 96/60=<<96/60=1.6>>1.6 hours.\n#### 1.6"
    for entry in fresh(question, answer):
        assert "runs 60 minutes" in entry["question"]


@pytest.mark.parametrize(
    ("reason", "question", "answer"),
    [
        ("no annotation", "Tim has 14 pens. How many?", "He has many.\n#### 14"),
        ("untrue", "14 men and 23 women?", "14+23=<<14+23=38>>38\n#### 38"),
        ("rounded", "25 pens for 7 men?", "25/7=<<25/7=3.57>>3.57\n#### 3.57"),
        ("not arithmetic", "14 men?", "<<14**2=196>>196\n#### 196"),
        ("another gold answer", "14 and 23?", "14+23=<<14+23=37>>37\nSo 36.\n#### 36"),
        ("no input", "Two and two?", "2+2=<<2+2=4>>4\n#### 4"),
        ("unknown operand", "14 men and some?", "14+23=<<14+23=37>>37\n#### 37"),
        ("unknown number", "14 and 23?", "Of 88: 14+23=<<14+23=37>>37\n#### 37"),
        ("a word for an input", "Eight men and 8 cats?", "8+8=<<8+8=16>>16\n#### 16"),
        ("a result like another number", "14, 23 or 37?", "14+23=<<14+23=37>>37\n#### 37"),
        ("no change", "9 of 14 pens?", "14-14=<<14-14=0>>0\n#### 0"),
        ("negative", "14 less 23?", "14-23=<<14-23=-9>>-9\n#### -9"),
        ("one", "1 pen and 1 cup?", "1+1=<<1+1=2>>2\n#### 2"),
        ("a clock time", "From 9:30 for two hours?", "9+2=<<9+2=11>>11\n#### 11"),
        ("days a week", "She works 5 days a week. Twice?", "5*2=<<5*2=10>>10\n#### 10"),
        ("a quotient", "Half of 3/4?", "3/4/2=<<3/4/2=.375>>.375\n#### .375"),
        ("an unused total", "Of 42 pens, 14 red, 23 green?", "14+23=<<14+23=37>>37\n#### 37"),
        ("a list", "3 cats, Al, Bo and Cy. Bo is 20, Al 3 more?", "20+3=<<20+3=23>>23\n#### 23"),
        ("a month", "20 a day, 28 days in the month?", "20*28=<<20*28=560>>560\n#### 560"),
        ("a unit", "20 pounds? 16 ounces in a pound.", "20*16=<<20*16=320>>320\n#### 320"),
        ("a rate", "20 miles? 1 equals 1.6 km.", "20*1.6=<<20*1.6=32>>32\n#### 32"),
        ("minutes after hours", "1 hour and 45 minutes?", "60+45=<<60+45=105>>105\n#### 105"),
        ("a height", "He is 66 inches tall, she 2 more?", "66+2=<<66+2=68>>68\n#### 68"),
        ("a deck", "20 decks of 52 cards?", "20*52=<<20*52=1040>>1040\n#### 1040"),
        ("quarters", "3 quarters of 20?", "3*20=<<3*20=60>>60\n60/4=<<60/4=15>>15\n#### 15"),
    ],
)
def test_numbers_that_may_not_change_stay(reason: str, question: str, answer: str) -> None:
    assert draws(question, answer, 5) == [None] * 5, reason


def test_powers_of_ten_and_two_stay_and_round_numbers_stay_round() -> None:
    answer = "100*40=<<100*40=4000>>4000\n4000*2=<<4000*2=8000>>8000\n#### 8000"
    for entry in fresh("100 boxes of 40 pens, on 2 shelves?", answer):
        assert re.fullmatch("100 boxes of [35678]0 pens, on 2 shelves[?]", entry["question"])


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("30 men and 40 women?", "30+40=<<30+40=70>>70\n#### 70"),
        ("60 of 90 men?", "90-60=<<90-60=30>>30\n#### 30"),
    ],
)
def test_results_have_as_many_digits(question: str, answer: str) -> None:
    assert {len(entry["answer"].split()[-1].rstrip("0")) for entry in fresh(question, answer)} == {
        1
    }


def test_sums_have_as_many_carries() -> None:
    for entry in fresh("14 men and 23 women?", "14+23=<<14+23=37>>37\n#### 37"):
        men, women = numbers(entry["question"])
        assert men % 10 + women % 10 < 10
    for entry in fresh("37 men and 45 women?", "37+45=<<37+45=82>>82\n#### 82"):
        men, women = numbers(entry["question"])
        assert men % 10 + women % 10 >= 10


def test_numbers_keep_their_order() -> None:
    question = "Of 24 pens, 7 are red and 9 are blue. How many have another colour?"
    answer = "7+9=<<7+9=16>>16 are.\n24-16=<<24-16=8>>8\n#### 8"
    for entry in fresh(question, answer):
        total, red, blue = numbers(entry["question"])
        assert red < entry_gold(entry) < blue < red + blue < total


def test_no_number_becomes_one() -> None:
    for entry in fresh("Of 9 pens 7 are red. How many are not?", "9-7=<<9-7=2>>2\n#### 2"):
        assert 1 not in numbers(entry["answer"])


def test_articles_fit_the_new_numbers() -> None:
    question = "Tim buys a 9 foot board and an 8 foot one. How many feet?"
    found = [entry["question"] for entry in draws(question, "9+8=<<9+8=17>>17\n#### 17") if entry]
    assert found
    assert all(re.search(r"\ba (?!8|1[18])\d+ .* an 11 foot", text) for text in found)


def test_the_same_state_gives_the_same_entry() -> None:
    question, answer = "14 men and 23 women?", "14+23=<<14+23=37>>37\n#### 37"
    first, second = (fresh(question, answer) for _ in range(2))
    assert first == second
    assert len({entry["question"] for entry in first}) > 10


@needs_gsm8k
def test_two_fifths_of_gsm8k_have_fresh_numbers() -> None:
    entries = gsm8k_format.load_entries(GSM8K / "test.jsonl")[::12]
    pairs = [(entry, with_fresh_numbers(entry, Random(at))) for at, entry in enumerate(entries)]
    found = [(old, new) for old, new in pairs if new]
    assert len(found) >= 0.4 * len(entries)
    for old, new in found:
        assert gsm8k_format.parse(new).gold != gsm8k_format.parse(old).gold
        assert masked(new["question"]) == masked(old["question"])
        assert annotations_are_true(new["answer"])
        assert new["question"] != old["question"]
    sizes = [entry_gold(new) / entry_gold(old) for old, new in found]
    assert 0.9 < np.exp(np.mean(np.log(np.array(sizes, float)))) < 1.1
