import re
import sys

import pytest

from zerogap.data import prompts
from zerogap.data.answers import extract
from zerogap.data.toy.situations import BOYS, GIRLS
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
    for shot in prompts.exemplars(source, 8):
        assert set(shot) == {"question", "target"}
        said = extract(shot["target"])
        assert said.extractor == "the_answer_is"
        assert said.answer in shot["target"].rpartition("The answer is")[0]


def test_generated_exemplars_are_short_and_the_shortest_come_first():
    shots = prompts.exemplars("generated", 8)
    lengths = [len(f"{shot['question']} {shot['target']}".split()) for shot in shots]
    assert max(lengths[:4]) <= 51
    assert max(lengths) <= 72
    assert max(lengths[:2]) < min(lengths[2:])


def test_the_generated_exemplars_equations_hold():
    for shot in prompts.exemplars("generated", 8):
        equations = re.findall(r"(\d+) ([-+*/]) (\d+) = (\d+)", shot["target"])
        for x, sign, y, result in equations:
            x, y = int(x), int(y)
            found = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[sign]
            assert found == int(result)
        assert shot["target"].endswith(f"The answer is {equations[-1][3]}.")


def test_the_generated_exemplars_are_no_generated_problems():
    names = re.compile(rf"\b({'|'.join(GIRLS + BOYS)})\b")
    for shot in prompts.exemplars("generated", 8):
        assert not names.search(shot["question"])  # every problem of the generator has one


def test_reading_lm_eval_imports_no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    assert len(prompts.exemplars("lm_eval", 8)) == 8


@pytest.mark.parametrize(("source", "n"), [("generated", 9), ("lm_eval", 9)])
def test_more_than_there_are(source, n):
    with pytest.raises(InputError, match=f"{n}"):
        prompts.exemplars(source, n)
