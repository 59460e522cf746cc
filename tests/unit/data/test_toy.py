"""The toy language: correct problems and paraphrases, disjoint splits, instructions."""

import hashlib
import json
import re
from collections import Counter

import pytest

from zerogap.data import toy
from zerogap.data.paraphrases.validation import problems_with
from zerogap.errors import InputError

EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)")
NAME = re.compile(r"\b[A-Z][a-z]+\b")


@pytest.fixture(scope="module")
def made():
    return {split: toy.problems(1500, 3, split) for split in toy.SPLITS}


def values(text):
    """The equations of a text as (result, stated result)."""
    signs = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__truediv__}
    return [(signs[s](int(x), int(y)), int(result)) for x, s, y, result in EQUATION.findall(text)]


def test_every_equation_holds_and_the_last_one_is_the_answer(made):
    for problem in made["pretrain"]:
        equations = values(problem.rationale)
        assert 1 <= len(equations) <= 3
        assert all(value == result for value, result in equations)
        assert problem.gold == str(equations[-1][1])


def test_a_paraphrase_has_the_same_numbers_in_other_words(made):
    asked = made["test"][:40]
    found = toy.paraphrases([problem.question for problem in asked], 3)
    assert found == {problem.question: problem.paraphrase for problem in asked}
    for problem in made["pretrain"]:
        assert problems_with(problem.question, problem.paraphrase) == []
        numbers = [re.findall(r"\d+", text) for text in (problem.question, problem.paraphrase)]
        assert Counter(numbers[0]) == Counter(numbers[1])
        stated = re.findall(r"\d+", problem.signature.partition(":")[2])
        assert Counter(numbers[0]) == Counter(stated)


def test_splits_share_neither_text_nor_signature(made):
    for key in ("question", "signature"):
        sets = [{getattr(problem, key) for problem in problems} for problems in made.values()]
        assert len(set.union(*sets)) == 3 * 1500


def test_problems_and_instructions_are_the_same_on_every_machine():
    texts = [f"{p.question}\t{p.paraphrase}\t{p.rationale}" for p in toy.problems(200, 11, "test")]
    texts += [json.dumps(example) for example in toy.instructions(200, 1)]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    assert digest[:16] == "edd86ee751344541"
    assert toy.problems(50, 1, "test") != toy.problems(50, 2, "test")
    assert toy.instructions(20, 1) != toy.instructions(20, 2)


def test_exemplars_are_correct_and_of_other_people():
    problems = toy.problems(500, 0, "test")
    people = {name for problem in problems for name in NAME.findall(problem.question)}
    names = set()
    for shot in toy.exemplars():
        names |= set(re.findall(r"(?<=[a-z] )[A-Z][a-z]+", shot["question"]))
        assert all(value == result for value, result in values(shot["target"]))
        assert shot["target"].endswith(f"The answer is {values(shot['target'])[-1][1]}.")
    assert len(names) > 3
    assert not names & people


def test_every_generated_question_has_a_paraphrase():
    last = toy.problems(5001, 0, "test")[-1]
    assert toy.paraphrases([last.question], 0) == {last.question: last.paraphrase}


def test_the_paraphrase_of_a_question_that_is_not_generated_is_an_error(monkeypatch):
    monkeypatch.setattr(toy, "_MAX_DRAWS", 20)  # without a new problem
    with pytest.raises(InputError, match=r"1 questions are not generated .'How many\?'"):
        toy.paraphrases(["How many?"], 0)
