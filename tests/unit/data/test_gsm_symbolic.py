"""GSM-Symbolic: a package made up for the tests, and the real one if it is installed."""

import ast
import importlib.metadata

import pytest

from zerogap.data import gsm8k_format, gsm_symbolic
from zerogap.errors import InputError

UTILS = '''
def template(subject, num_words):
    """Questions that differ in a name and one of 30 numbers; rationales of so many words."""
    def generate(rng, difficulty):
        name, number = rng.choice(["Ann", "Bob", "Eve"]), rng.choice(range(10, 40))
        question = f"{name} has {number} {subject}. How many has {name}?"
        return {"question": question, "metadata": {"answer_cot": f"{'word ' * num_words}#### 1"}}
    return generate
'''
GENERATORS = """
from reasoning_gym.utils import template
for index in range(10):
    globals()[f"generate_{FIRST + index}"] = template(f"things{FIRST + index}", 5 + index)
"""


@pytest.fixture
def templates(monkeypatch, tmp_path):
    """A package of the templates 30 to 39, of which 32, 35 and 37 are broken."""
    folder = tmp_path / "arithmetic/gsm_symbolic"
    folder.mkdir(parents=True)
    (tmp_path / "utils.py").write_text(UTILS)
    (folder / "generators_00_49.py").write_text(GENERATORS.replace("FIRST", "30"))
    (folder / "generators_50_99.py").touch()
    monkeypatch.setattr(gsm_symbolic, "package_file", lambda package, path: tmp_path)


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
    few = gsm_symbolic.entries(5, 60, None)  # draws the same
    assert (few["test"], few["train"]) == (splits["test"], splits["train"][:5])


@pytest.mark.usefixtures("templates")
def test_a_split_goes_through_all_templates_in_turn():
    test = gsm_symbolic.entries(7, 14, None)["test"]
    sound = {f"things{number}." for number in (30, 31, 33, 34, 36, 38, 39)}
    for turn in (test[:7], test[7:]):
        assert {number_and_subject(entry)[1] for entry in turn} == sound


@pytest.mark.usefixtures("templates")
def test_templates_with_longer_rationales_are_left_out():
    splits = gsm_symbolic.entries(20, 20, max_words=8)
    subjects = {number_and_subject(entry)[1] for entries in splits.values() for entry in entries}
    assert subjects == {"things30.", "things31.", "things33."}
    with pytest.raises(InputError, match=r"only \d+ train .*num_train \(got 500\)"):
        gsm_symbolic.entries(500, 10, None)


def test_a_missing_package_is_named(monkeypatch):
    def missing(package):
        raise importlib.metadata.PackageNotFoundError(package)

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
        return distribution.locate_file("reasoning_gym/arithmetic/gsm_symbolic")

    def test_only_the_templates_that_it_calls_sound_are_used(self, folder):
        tree = ast.parse((folder / "gsm_symbolic.py").read_text())
        lists = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
        }
        assert set(lists["tasks_need_fix"]) == gsm_symbolic.BROKEN
        assert set(range(100)) - gsm_symbolic.BROKEN == set(lists["tasks_ok"])

    def test_its_questions_are_entries_with_a_number_as_answer(self):
        splits = gsm_symbolic.entries(300, 200, 40)
        texts = set()
        for entry in [*splits["train"], *splits["test"]]:
            question = gsm8k_format.parse(entry)
            assert len(question.rationale.split()) <= 40
            texts.add(question.question)
        assert len(texts) == 500
