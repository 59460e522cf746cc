"""GSM-Symbolic: templates made up for the tests, and the package's own if it is installed."""

import ast
import importlib.metadata

import pytest

from zerogap.data import gsm8k_format, gsm_symbolic
from zerogap.errors import InputError

NUMBERS = range(10, 40)


def template(subject, num_words):
    """Questions that differ in a name and one of `NUMBERS`; rationales of so many words."""

    def generate(rng, difficulty):
        name, number = rng.choice(["Ann", "Bob", "Eve"]), rng.choice(NUMBERS)
        rationale = " ".join(["word"] * num_words)
        return {
            "question": f"{name} has {number} {subject}. How many has {name}?",
            "metadata": {"answer_cot": f"{rationale}\n#### {number}"},
        }

    return generate


@pytest.fixture
def templates(monkeypatch):
    found = {index: template(f"things{index}", 5 + index) for index in range(8)}
    monkeypatch.setattr(gsm_symbolic, "_templates", lambda: found)
    return found


def number_and_subject(entry):
    """What identifies a question, apart from its name."""
    words = entry["question"].split()
    return words[2], words[3]


@pytest.mark.usefixtures("templates")
def test_no_two_questions_share_template_and_numbers():
    splits = gsm_symbolic.entries(100, 60, None)
    assert [len(splits[split]) for split in ("train", "test")] == [100, 60]
    keys = [number_and_subject(entry) for entries in splits.values() for entry in entries]
    assert len(set(keys)) == len(keys)


@pytest.mark.usefixtures("templates")
def test_a_split_goes_through_all_templates_in_turn():
    test = gsm_symbolic.entries(8, 16, None)["test"]
    for turn in (test[:8], test[8:]):
        assert len({number_and_subject(entry)[1] for entry in turn}) == 8


@pytest.mark.usefixtures("templates")
def test_the_number_of_training_questions_does_not_change_the_test_questions():
    few, many = (gsm_symbolic.entries(number, 20, None) for number in (5, 50))
    assert few["test"] == many["test"]
    assert few["train"] == many["train"][:5]


@pytest.mark.usefixtures("templates")
def test_templates_with_longer_rationales_are_left_out():
    splits = gsm_symbolic.entries(20, 20, max_words=7)
    subjects = {number_and_subject(entry)[1] for entries in splits.values() for entry in entries}
    assert subjects == {"things0.", "things1.", "things2."}


@pytest.mark.usefixtures("templates")
def test_more_questions_than_there_are_numbers_is_an_error():
    with pytest.raises(InputError, match=r"only \d+ train .*num_train \(got 500\)"):
        gsm_symbolic.entries(500, 10, None)


def test_a_missing_package_is_named(monkeypatch):
    def missing(package):
        raise importlib.metadata.PackageNotFoundError(package)

    gsm_symbolic._templates.cache_clear()
    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(InputError, match=r"reasoning-gym is not installed; install it \("):
        gsm_symbolic.entries(10, 10, None)


class TestThePackage:
    @pytest.fixture(autouse=True)
    def folder(self):
        try:
            distribution = importlib.metadata.distribution("reasoning-gym")
        except importlib.metadata.PackageNotFoundError:
            pytest.skip("reasoning-gym is not installed (envs/smollm2.txt)")
        gsm_symbolic._templates.cache_clear()
        return distribution.locate_file("reasoning_gym/arithmetic/gsm_symbolic")

    def test_only_the_templates_that_it_calls_sound_are_used(self, folder):
        tree = ast.parse((folder / "gsm_symbolic.py").read_text())
        lists = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
        }
        assert set(lists["tasks_need_fix"]) == gsm_symbolic.BROKEN
        assert list(gsm_symbolic._templates()) == lists["tasks_ok"]

    def test_its_questions_are_entries_with_a_number_as_answer(self):
        splits = gsm_symbolic.entries(300, 200, 40)
        texts = set()
        for entry in [*splits["train"], *splits["test"]]:
            question = gsm8k_format.parse(entry)
            assert len(question.rationale.split()) <= 40
            texts.add(question.question)
        assert len(texts) == 500
