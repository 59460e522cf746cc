"""Worked reasoning among the generated instructions: correct, short, and of many kinds."""

import re
from random import Random

import pytest

from zerogap.data.toy.instructions import instructions
from zerogap.data.toy.reasoning import REASONING_TASKS
from zerogap.data.toy.vocabulary import WEEK


@pytest.fixture(scope="module")
def examples():
    return [task(Random(seed)) for seed in range(300) for task in REASONING_TASKS]


def test_every_equation_holds(examples):
    found = 0
    for _, response in examples:
        for x, sign, y, result in re.findall(r"(\d+) ([-+*]) (\d+) = (\d+)", response):
            value = {"+": int(x) + int(y), "-": int(x) - int(y), "*": int(x) * int(y)}[sign]
            assert value == int(result), response
            found += 1
    assert found > 1500


def test_the_conclusion_answers_the_question(examples):
    for question, response in examples:
        numbers = [int(number) for number in re.findall(r"\d+", question)]
        if "sum of these" in question or question.startswith("Add these"):
            assert response.endswith(f"the sum is {sum(numbers)}.")
        if question.startswith("Sort"):
            assert response.endswith(f"{', '.join(map(str, sorted(numbers)))}.")
        if question.startswith("Is "):
            assert response.endswith("odd." if numbers[0] % 2 else "even.")
        if question.startswith("Today"):
            today = WEEK.index(question.split()[2].rstrip("."))
            assert response.endswith(f"It is {WEEK[(today + numbers[0]) % 7]}.")
        if question.startswith("Which is closer"):
            goal, *pair = numbers
            closer = min(pair, key=lambda number: abs(number - goal))
            assert response.endswith(f"{closer} is closer.")
        if asked := re.search(r"Who is the (\w+)\?", question):
            before, after = map(
                set, zip(*re.findall(r"(\w+) is \w+ than (\w+)", question), strict=True)
            )
            is_first = asked[1] in ("tallest", "oldest", "fastest")
            (expected,) = before - after if is_first else after - before
            assert response.endswith(f"so {expected} is the {asked[1]}.")


def test_half_of_the_varied_instructions_are_worked_reasoning():
    starts = ("Add these", "What is the sum", "Find the rule", "Today is", "Which is closer")
    counts = [
        sum(example["question"].startswith(starts) for example in instructions(1000, 5, language))
        for language in ("plain", "varied")
    ]
    assert counts[0] == 0
    assert 150 < counts[1] < 350
    assert all(
        len(" ".join(example.values()).split()) <= 60 for example in instructions(1000, 5, "varied")
    )
