"""The few-shot prompt: its text, its exemplars, other templates."""

import json
import sys

import pytest

from zerogap.data import prompts
from zerogap.data.answers import extract
from zerogap.data.extraction import extraction_rule
from zerogap.data.prompts import DEFAULT_TEMPLATE, PromptTemplate
from zerogap.data.questions import Question
from zerogap.errors import InputError


def test_the_default_template_writes_gsm8k_prompts():
    prefix = DEFAULT_TEMPLATE.few_shot_prefix(
        [{"question": "One?", "target": "Yes. The answer is 1."}]
    )
    assert prefix == "Q: One?\nA: Yes. The answer is 1.\n\n"
    assert DEFAULT_TEMPLATE.prompt(prefix, "Two?") == prefix + "Q: Two?\nA:"
    assert DEFAULT_TEMPLATE.response("It is 2.", "2") == " It is 2. The answer is 2."


def test_a_template_of_another_benchmark_is_used_throughout():
    template = PromptTemplate(
        "Question: {question}\nAnswer:", "\n{rationale}\n= {answer}", "\n--\n"
    )
    prefix = template.few_shot_prefix([{"question": "One?", "target": "Yes.\n= {1}"}])
    assert prefix == "Question: One?\nAnswer:\nYes.\n= {1}\n--\n"
    assert template.prompt(prefix, "{x}?") == prefix + "Question: {x}?\nAnswer:"
    assert template.response("It is {rationale}.", "2") == "\nIt is {rationale}.\n= 2"
    assert PromptTemplate.of(vars(template) | {"num_shots": 2}) == template


@pytest.mark.parametrize("source", ["toy", "lm_eval"])
def test_every_exemplar_states_its_answer(source):
    for shot in prompts.exemplars(source, 8):
        assert set(shot) == {"question", "target"}
        said = extract(shot["target"])
        assert said.extractor == "the_answer_is"
        assert said.answer in shot["target"].rpartition("The answer is")[0]


def test_reading_lm_eval_exemplars_does_not_import_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    assert len(prompts.exemplars("lm_eval", 8)) == 8


def test_exemplars_are_read_from_a_file(tmp_path):
    path = tmp_path / "mine.jsonl"
    shots = [{"question": f"{n} + 1?", "target": f"It is {n + 1}."} for n in range(3)]
    path.write_text("\n\n".join(map(json.dumps, shots)) + "\n")
    assert prompts.exemplars(str(path), 2) == shots[:2]
    with pytest.raises(InputError, match="at most 3"):
        prompts.exemplars(str(path), 4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "invalid JSON"),
        ("[]", "must be a JSON object with question and target"),
        ('{"question": "1 + 1?", "answer": "2"}', "must be a JSON object with question and target"),
        ('{"question": "1 + 1?", "target": 2}', "'target' must be a non-empty text"),
        ('{"question": " ", "target": "2"}', "'question' must be a non-empty text"),
    ],
)
def test_a_mistake_in_a_file_of_exemplars_names_its_line(line, message, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(f'{{"question": "1 + 1?", "target": "2"}}\n{line}\n')
    with pytest.raises(InputError, match=rf"mine\.jsonl, line 2: {message}"):
        prompts.exemplars(str(path), 1)


def test_questions_with_the_same_answer_are_all_checked():
    questions = [Question(f"q{k}", "So.", str(k % 4)) for k in range(200)]
    rule, template = extraction_rule("numeric"), PromptTemplate(target=" {answer}, done at 9.")
    with pytest.raises(InputError, match=r"does not find the answer 0 in ' 0, done at 9\.'"):
        prompts.check_targets(questions, template, [], rule)
    prompts.check_targets(questions, DEFAULT_TEMPLATE, ["Q:"], rule)
