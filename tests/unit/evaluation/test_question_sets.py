import json

import pytest
import yaml

from helpers.paths import ROOT
from zerogap.data.prompts import DEFAULT_TEMPLATE
from zerogap.errors import InputError
from zerogap.evaluation import question_sets

QUESTIONS = [
    {"question": "1 and 2?", "answer": "1 + 2 = 3\n#### 3"},
    {"question": "2 and 2?", "gold": 4},
    {"question": "2 and 3?", "answer": "5"},
]


@pytest.fixture
def questions(tmp_path):
    def write(*entries):
        path = tmp_path / "questions.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return str(path)

    return write


def load(benchmark, num_questions=None, extraction=None):
    return question_sets.load(str(benchmark), num_questions, 0, extraction)


def rejected(*arguments, **options):
    with pytest.raises(InputError) as error:
        load(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_gold_answer_is_a_field_or_the_end_of_the_answer(questions):
    question_set = load(questions(*QUESTIONS))
    assert list(question_set.questions.gold) == ["3", "4", "5"]
    assert list(question_set.questions.question_id) == ["test-0000", "test-0001", "test-0002"]


def test_a_file_of_questions_is_asked_with_the_prompt_of_gsm8k(questions):
    question_set = load(questions(*QUESTIONS))
    assert question_set.template == DEFAULT_TEMPLATE
    assert len(question_set.exemplars) == 8
    assert (question_set.stop, question_set.rule.name) == (["Q:"], "numeric")
    assert question_set.repository is None


def test_a_number_of_questions_is_drawn_and_keeps_its_ids(questions):
    path = questions(*QUESTIONS)
    drawn, everything = load(path, num_questions=2).questions, load(path).questions
    assert len(drawn) == 2
    assert set(drawn.question_id) < set(everything.question_id)
    assert "--num-questions must be from 1 to 3" in rejected(path, num_questions=4)


def test_a_number_of_questions_from_the_benchmark_is_named_by_its_key(tmp_path, questions):
    values = yaml.safe_load((ROOT / "workflow/benchmarks/gsm8k.yaml").read_text())
    test = str(questions(*QUESTIONS))
    source = {"source": "files", "files": {"train": test, "test": test}}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values | {"questions": source}))
    assert "num_test must be from 1 to 3, the number of questions (got 1319)" in rejected(path)


def test_a_shipped_benchmark_is_named():
    question_set = load("toy_gsm8k", num_questions=5, extraction="flexible-extract")
    assert question_set.rule.name == "flexible-extract"
    assert len(question_set.questions) == 5
    assert len(question_set.exemplars) == 1


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"question": "1 and 2?"}, "line 1: the question has no gold answer"),
        ({"question": "1 and 2?", "answer": "text ####"}, "the question has no gold answer"),
        ({"question": "1 and 2?", "answer": "three"}, "invalid gold answer: 'three'"),
        ({"answer": "3"}, "'question' is missing or empty"),
    ],
)
def test_a_question_without_text_or_gold_answer_is_named(questions, entry, problem):
    assert problem in rejected(questions(entry))
    assert "contains no questions" in rejected(questions())


def test_a_benchmark_that_cannot_be_asked_is_named():
    assert "gsm8k, gsm_symbolic" in rejected("gsm9k")
    assert "has the questions and prompts of 'gsm8k'" in rejected("pq")


def test_a_mistake_in_a_benchmark_file_names_the_key(tmp_path):
    values = yaml.safe_load((ROOT / "workflow/benchmarks/toy_gsm8k.yaml").read_text())
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values | {"prompt": values["prompt"] | {"num_shots": 0}}))
    assert f"{path}: prompt.num_shots must be a positive integer" in rejected(path)
    path.write_text(yaml.safe_dump(values | {"prompt": values["prompt"] | {"template": "Q: {q}"}}))
    assert f"{path}: prompt.template is 'Q: {{q}}'" in rejected(path)


def test_questions_that_cannot_be_downloaded_say_where_they_are(monkeypatch):
    def offline(*_):
        raise InputError("the hub does not answer")

    monkeypatch.setattr(question_sets.question_sources, "fetch", offline)
    error = rejected("gsm8k")
    assert "gsm8k: the hub does not answer; or download" in error
    assert "https://github.com/openai/grade-school-math" in error
    assert "--benchmark test.jsonl" in error


def test_own_ids_are_kept(questions):
    entries = [entry | {"id": f"q{k}"} for k, entry in enumerate(QUESTIONS)]
    drawn = load(questions(*entries), num_questions=2).questions
    golds = dict(zip(["q0", "q1", "q2"], ["3", "4", "5"], strict=True))
    assert list(drawn.gold) == [golds[name] for name in drawn.question_id]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "a", "b"], "line 2: the question has the id 'a' of line 1"),
        (["a", None, "b"], "line 2: the question has no id; give all or none"),
        (["a", ["b"], "c"], r"line 2: the question has the id \['b'\]; give a text or a whole"),
        (["a", "\x1b[1m", "c"], "line 2: the question has the id "),
        (["a", True, "c"], "line 2: the question has the id True"),
        (["a", " ", "c"], "line 2: the question has the id ' '"),
    ],
)
def test_own_ids_that_cannot_be_used_are_errors(ids, message, questions):
    entries = [entry | {"id": name} for name, entry in zip(ids, QUESTIONS, strict=True)]
    with pytest.raises(InputError, match=message):
        load(questions(*entries))


def test_without_network_the_hub_is_asked_once_and_the_cache_is_used(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub").constants
    config = pytest.importorskip("datasets").config
    for settings in (constants, config):
        monkeypatch.setattr(settings, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    assert rejected("gsm8k").startswith("gsm8k: http://127.0.0.1:9 does not answer (")
    assert constants.HF_HUB_OFFLINE


def test_without_a_number_at_most_so_many_questions_are_drawn(questions):
    path = questions(*QUESTIONS)
    for benchmark, number in ((path, 3), ("toy_gsm8k", 40)):
        for at_most in (2, 100):
            drawn = question_sets.load(benchmark, None, 0, None, at_most).questions
            assert len(drawn) == min(number, at_most)
    assert len(question_sets.load(path, 3, 0, None, 2).questions) == 3
