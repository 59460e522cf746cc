import sys

import pytest

from zerogap.data import prompts
from zerogap.data.answers import extract
from zerogap.errors import InputError


def test_format_of_the_prompt():
    prefix = prompts.few_shot_prefix([{"question": "One?", "target": "Yes. The answer is 1."}])
    assert prefix == "Q: One?\nA: Yes. The answer is 1.\n\n"
    assert prompts.prompt(prefix, "Two?") == prefix + "Q: Two?\nA:"
    assert prompts.response("It is 2.", "2") == " It is 2. The answer is 2."


def test_a_shot_has_the_form_of_a_training_example():
    (shot,) = prompts.exemplars("generated", 1)
    rationale, _, answer = shot["target"].partition(" The answer is ")
    text = prompts.prompt("", shot["question"]) + prompts.response(rationale, answer.rstrip("."))
    assert prompts.few_shot_prefix([shot]) == text + "\n\n"


@pytest.mark.parametrize("source", ["generated", "lm_eval"])
def test_every_target_says_its_answer(source):
    for shot in prompts.exemplars(source, 4 if source == "generated" else 8):
        assert set(shot) == {"question", "target"}
        said = extract(shot["target"])
        assert said.extractor == "the_answer_is"
        assert said.answer in shot["target"].rpartition("The answer is")[0]


def test_generated_exemplars_are_short():
    for shot in prompts.exemplars("generated", 4):
        assert len(shot["question"].split()) <= 26
        assert len(shot["target"].split()) <= 25


def test_reading_lm_eval_imports_no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    assert len(prompts.exemplars("lm_eval", 8)) == 8


@pytest.mark.parametrize(("source", "n"), [("generated", 5), ("lm_eval", 9)])
def test_more_than_there_are(source, n):
    with pytest.raises(InputError, match=f"{n}"):
        prompts.exemplars(source, n)
