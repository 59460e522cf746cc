"""Where controls come from, and whether their style gives them away."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from helpers.shared_data import GSM8K, needs_gsm8k
from zerogap.errors import InputError
from zerogap.evaluation import controls, question_sets
from zerogap.evaluation.controls import style_auc

ENTRY = "Ann has {a} bags of {b} nuts. How many nuts does she have?"


NUMBERS = [(a, b) for a in range(3, 8) for b in range(23, 98, 16)]


@pytest.fixture
def questions(tmp_path):
    """A file of questions, by default of 25 whose answers mark their calculations."""

    def write(name="a.jsonl", numbers=NUMBERS, answer="She has {a}*{b}=<<{a}*{b}={c}>>{c} nuts."):
        lines = [
            {
                "question": ENTRY.format(a=a, b=b),
                "answer": f"{answer.format(a=a, b=b, c=a * b)}\n#### {a * b}",
            }
            for a, b in numbers
        ]
        path = tmp_path / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(path)

    return write


def masked(text):
    return re.sub(r"\d+", "N", text)


def asked(path, number=None):
    return question_sets.load(path, number, 0, None)


def test_rephrased_controls_are_the_questions_with_other_numbers(questions):
    benchmark = asked(questions())
    found = controls.load(benchmark, None, 0)
    originals = benchmark.questions.set_index("question_id").question
    assert len(found.questions) >= 20
    for control in found.questions.itertuples():
        assert control.question_id.startswith("control-")
        assert control.question not in set(originals)
        assert masked(control.question) == masked(originals[control.original])
        a, b = (int(word) for word in control.question.split() if word.isdigit())
        assert control.question == ENTRY.format(a=a, b=b)
        assert control.gold == str(a * b)
        assert control.rationale == f"She has {a}*{b}={a * b} nuts."


def test_a_generator_gives_new_questions():
    benchmark = asked("toy_gsm8k", 30)
    found = controls.load(benchmark, None, 0)
    assert "original" not in found.questions
    new = set(found.questions.question)
    assert len(new) == 30
    assert not new & set(asked("toy_gsm8k").questions.question)


def test_a_file_is_asked_like_the_benchmark(questions):
    benchmark = asked("toy_gsm8k", 30)
    found = controls.load(benchmark, questions(), 0)
    assert len(found.questions) == 25
    assert found.template == benchmark.template
    assert found.exemplars == benchmark.exemplars


def test_too_few_questions_have_no_controls_unless_they_are_asked_for(questions):
    benchmark = asked(questions(), 19)
    assert controls.load(benchmark, None, 0) is None
    assert controls.load(benchmark, "none", 0) is None
    with pytest.raises(InputError, match=r"--controls rephrased: 1. controls for 19 questions"):
        controls.load(benchmark, "rephrased", 0)


def test_answers_of_nothing_but_calculations_have_controls(questions):
    benchmark = asked(questions(answer="<<{a}*{b}={c}>>"))
    assert len(controls.load(benchmark, None, 0).questions) >= 20


def test_answers_without_calculations_have_no_controls(questions):
    benchmark = asked(questions(answer="She has {c} nuts."))
    assert controls.load(benchmark, None, 0) is None
    with pytest.raises(InputError, match=r"no answer of .*a\.jsonl marks its calculations"):
        controls.load(benchmark, "rephrased", 0)


def test_wrong_controls_are_errors(questions):
    for source, message in (
        ("fresh", "--controls fresh: .* has no generator"),
        ("fersh", "fersh: is not a file; give one, or rephrased, fresh or"),
        (questions("b.jsonl", NUMBERS[1:]), r"b\.jsonl: 24 of the controls are questions of the"),
    ):
        with pytest.raises(InputError, match=message):
            controls.load(asked(questions()), source, 0)


def test_the_style_of_texts_is_told_apart_only_where_it_differs():
    first = pd.Series([ENTRY.format(a=a, b=b) for a, b in NUMBERS])
    second = pd.Series([ENTRY.format(a=b, b=a) for a, b in NUMBERS])
    assert style_auc(first[::2], first[1::2], paired=False) < 0.65
    assert style_auc(first, "Problem: " + second, paired=False) == 1
    assert style_auc(first, second.str.upper(), paired=False) == 1


def test_the_auc_of_one_style_is_one_half_whatever_the_number_of_controls():
    rng, words = np.random.default_rng(0), ["ten", "pens", "of", "Ann", "cost", "two", "cups", "he"]
    texts = pd.Series([" ".join(rng.choice(words, 12)) for _ in range(480)])
    found = [style_auc(texts[k : k + 40], texts[k + 40 : k + 60], False) for k in range(0, 480, 60)]
    assert 0.43 < np.mean(found) < 0.57


@needs_gsm8k
def test_the_style_of_rephrased_gsm8k_is_that_of_gsm8k():
    benchmark = asked(str(GSM8K / "test.jsonl"), 300)
    found = controls.load(benchmark, None, 0)
    assert len(found.questions) >= 100
    originals = benchmark.questions.set_index("question_id").question[found.questions.original]
    assert style_auc(originals, found.questions.question, paired=True) == 0.5
