"""Generated word problems: correctness, language, disjoint splits, reproducibility."""

import hashlib
import re
from collections import Counter

import pytest

from zerogap.data.toy.language import LANGUAGES
from zerogap.data.toy.situations import BOYS, GIRLS, SITUATIONS
from zerogap.data.toy.word_problems import problems
from zerogap.errors import InputError

EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)")


@pytest.fixture(scope="module")
def made():
    return {split: problems(2500, 3, split) for split in ("pretrain", "train", "test")}


def test_every_equation_holds_and_the_last_one_is_the_answer(made):
    for problem in made["pretrain"]:
        equations = EQUATION.findall(problem.rationale)
        assert len(equations) == problem.steps
        for x, sign, y, result in equations:
            value = {"+": int(x) + int(y), "-": int(x) - int(y), "*": int(x) * int(y)}.get(
                sign, int(x) / int(y)
            )
            assert value == int(result)
        assert problem.gold == equations[-1][3]


def test_the_question_has_all_numbers_of_the_signature(made):
    for problem in made["pretrain"]:
        words = problem.question.replace("twice", "2")
        found = Counter(re.findall(r"\d+", words))
        _, numbers = problem.signature.split(":")
        assert not Counter(numbers.split("-")) - found, problem


def test_texts_are_complete_sentences_without_template_marks(made):
    for problem in made["pretrain"]:
        for text in (problem.question, problem.rationale):
            assert not re.search(r"[{}\[\]|]|  |\.\.| \.| ,", text), text
            assert re.match(r"[A-Z0-9]", text)
            assert all(re.match(r"[A-Z0-9]", s) for s in re.split(r"(?<=[.?]) ", text)), text
            assert not re.search(r"\b[Aa] [aeio]\w+|\b[Aa]n (?!hour)[^aeiou\W]", text), text
        assert problem.question.endswith("?")
        assert problem.rationale.endswith(".")
        assert problem.question.count("?") == 1


def test_a_pronoun_never_comes_before_a_name(made):
    for problem in made["pretrain"]:
        for text in (problem.question, problem.rationale):
            pronoun = re.search(r"\b(he|she|his|her|him)\b", text, re.I)
            if pronoun:
                before = set(re.findall(r"\w+", text[: pronoun.start()]))
                assert before & set(GIRLS + BOYS), text


def test_splits_share_neither_text_nor_signature(made):
    for key in ("question", "signature"):
        sets = [{getattr(p, key) for p in ps} for ps in made.values()]
        assert all(len(s) == 2500 for s in sets)
        assert not (sets[0] & sets[1])
        assert not (sets[0] & sets[2])
        assert not (sets[1] & sets[2])


def test_numbers_of_steps_and_situations_are_distributed_as_declared(made):
    varied = problems(2500, 3, "pretrain", "varied")
    for language, texts in (("plain", made["pretrain"]), ("varied", varied)):
        steps = Counter(p.steps for p in texts)
        for step, weight in enumerate(LANGUAGES[language].step_weights, start=1):
            assert abs(steps[step] / 2500 - weight) < 0.05
    assert len(SITUATIONS) >= 30
    assert {p.situation for p in made["pretrain"]} == {s.name for s in SITUATIONS}


def test_step_weights_replace_those_of_the_language():
    made = problems(1000, 3, "test", "varied", step_weights=(0, 3, 0, 0, 0, 1))
    steps = Counter(p.steps for p in made)
    assert set(steps) == {2, 6}
    assert abs(steps[2] / 1000 - 0.75) < 0.05


def test_problems_are_the_same_bytes_on_every_machine():
    text = "\n".join(f"{p.question}\t{p.rationale}\t{p.gold}" for p in problems(200, 11, "test"))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "67575be6326e7a82"
    assert problems(50, 1, "test") != problems(50, 2, "test")


def test_every_beat_has_a_rationale():
    for situation in SITUATIONS:
        for beat in (*situation.openers, *situation.moves):
            assert beat.shows or beat.why, (situation.name, beat)


def test_an_unknown_split_is_an_error():
    with pytest.raises(InputError, match="'dev'"):
        problems(1, 0, "dev")
