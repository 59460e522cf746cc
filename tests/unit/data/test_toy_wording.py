"""Varied wordings of rationales: they keep the arithmetic and its order, and differ in the rest."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerogap.data.toy import wording
from zerogap.data.toy.word_problems import problems

CHAIN = re.compile(r"\d+(?: [a-z]+)? [-+*/] \d+[-+*/= \d]*?(?: [a-z]+ = |= )[-+*/= \d]*\d")
STEPS = ("Tom has 47 + 20 = 67 stamps.", "He keeps 67 - 12 = 55 stamps.")


@pytest.fixture(scope="module")
def made():
    return problems(2000, 3, "pretrain", "varied")


def values(chain: str) -> set[float]:
    """The values of the parts between the equals signs."""
    return {_value(part) for part in chain.split("=")}


def _value(part: str) -> float:
    numbers = [int(number) for number in re.findall(r"\d+", part)]
    signs = re.findall(r"[-+*/]", part)
    result: float = numbers[0]
    for sign, number in zip(signs, numbers[1:], strict=True):
        result = {
            "+": result + number,
            "-": result - number,
            "*": result * number,
            "/": result / number,
        }[sign]
    return result


def test_the_parts_of_every_equation_are_equal(made):
    chains = [chain for problem in made for chain in CHAIN.findall(problem.rationale)]
    assert len(chains) > 3000
    assert all(len(values(chain)) == 1 for chain in chains)


def test_equations_in_words_hold(made):
    checks = {
        r"(\d+) plus (\d+) is (\d+)": lambda x, y: x + y,
        r"(\d+) minus (\d+) is (\d+)": lambda x, y: x - y,
        r"(\d+) times (\d+) is (\d+)(?! [-+*/\d])": lambda x, y: x * y,
        r"(\d+) divided by (\d+) is (\d+)": lambda x, y: x / y,
        r"Adding (\d+) to (\d+) gives (\d+)": lambda x, y: x + y,
        r"Taking (\d+) from (\d+) gives (\d+)": lambda x, y: y - x,
        r"Splitting (\d+) into (\d+) parts gives (\d+)": lambda x, y: x / y,
    }
    text = "\n".join(problem.rationale for problem in made)
    for pattern, result in checks.items():
        found = [tuple(map(int, numbers)) for numbers in re.findall(pattern, text)]
        assert len(found) > 20, pattern
        assert all(result(x, y) == value for x, y, value in found), pattern


def test_an_equation_uses_numbers_of_the_question_and_earlier_results(made):
    terms = re.compile(r"(?<!= )\b(\d+)(?: [a-z]+)? (?:[-+*/]|plus|minus|times|divided by) (\d+)")
    for problem in made:
        for match in terms.finditer(problem.rationale):
            before = f"{problem.question} {problem.rationale[: match.start()]}"
            stated = {"2", *re.findall(r"\d+", before)}  # half and twice are not written as 2
            assert set(match.groups()) <= stated, (problem, match)


def test_the_answer_is_in_one_of_the_last_sentences(made):
    for problem in made:
        assert problem.gold in re.findall(r"\d+", " ".join(problem.rationale.split(". ")[-2:]))


def test_texts_are_complete_sentences(made):
    for problem in made:
        text = problem.rationale
        assert not re.search(r"[{}\[\]|]|  |\.\.| \.| ,", text), text
        assert all(re.match(r"[A-Z0-9]", part) for part in re.split(r"(?<=[.?]) ", text)), text
        assert text.endswith(".")


def test_problems_have_two_to_six_steps_and_one_question(made):
    assert {problem.steps for problem in made} == {2, 3, 4, 5, 6}
    assert all(problem.question.count("?") == 1 for problem in made)


@given(st.integers(0, 2**32))
def test_a_name_keeps_its_capital_and_another_word_loses_it(seed):
    text = wording.vary(STEPS, ("Tom",), Random(seed))
    assert not re.search(r"\btom\b|[,a-z] He\b", text)


@given(st.integers(0, 2**32))
def test_the_results_come_in_the_order_of_the_steps(seed):
    text = wording.vary(STEPS, ("Tom",), Random(seed))
    assert 0 < text.index("67") < text.index("55")


def test_one_rationale_has_many_wordings():
    texts = {wording.vary(STEPS, ("Tom",), Random(seed)) for seed in range(500)}
    assert len(texts) > 300
    notations = ("20 + 47", "47 stamps + 20 stamps", "57 - 2", "67 minus 12")
    for notation in notations:
        assert any(notation in text for text in texts), notation
