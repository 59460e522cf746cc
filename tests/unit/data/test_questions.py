"""Questions: their sources, drawing, leaking, ids, paraphrases."""

import json
import types

import pytest
import yaml

from helpers.paths import ROOT
from helpers.shared_data import GSM8K, needs_gsm8k
from zerogap.data import gsm8k_format, question_sources
from zerogap.data.gsm8k_format import with_few_calculations
from zerogap.data.questions import Question, check_disjoint, split_test_questions, with_paraphrases
from zerogap.errors import InputError
from zerogap.io import parquet

QUESTIONS = [Question(f"Question {i}?", f"Because {i}.", str(i)) for i in range(40)]


def test_as_many_questions_leak_as_requested():
    table = split_test_questions(QUESTIONS, len(QUESTIONS), 20, seed=1)
    assert list(table.question_id) == [f"test-{i:04d}" for i in range(40)]
    assert table.leaked.sum() == 20
    assert table.paraphrase.isna().all()
    assert list(table.gold) == [question.gold for question in QUESTIONS]
    whole = table.set_index("question_id").question
    for row in split_test_questions(QUESTIONS, 7, 3, 1).itertuples():  # ids are positions
        assert whole[row.question_id] == row.question


def test_only_eligible_questions_are_drawn():
    table = split_test_questions(QUESTIONS, 6, 3, 1, range(0, 40, 4))
    assert set(table.question_id) < {f"test-{position:04d}" for position in range(0, 40, 4)}
    assert table.leaked.sum() == 3
    for number in (0, 11):
        with pytest.raises(InputError, match=rf"num_test must be between 1 and 10, .*got {number}"):
            split_test_questions(QUESTIONS, number, 0, 1, range(0, 40, 4))
    with pytest.raises(InputError, match="num_test must be between 1 and 40, "):
        split_test_questions(QUESTIONS, 41, 5, 1)


def test_consecutive_seeds_draw_disjoint_questions_while_there_are_enough():
    drawn = [set(split_test_questions(QUESTIONS, 12, 6, seed).question_id) for seed in range(6)]
    for first in (0, 3):
        assert len(set.union(*drawn[first : first + 3])) == 36
    assert drawn[0] != drawn[3]


def test_questions_are_chosen_by_the_calculations_of_their_answers():
    answers = ["7 = 7", "<<1+1=2>>2", "<<1+1=2>>2 <<2*3=6>>6", "<<1=1>>1 <<2=2>>2 <<3=3>>3"]
    entries = [{"question": "?", "answer": answer} for answer in answers]
    assert with_few_calculations(entries, 2) == [0, 1, 2]
    assert with_few_calculations(entries, None) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="no answer of the test questions marks its calculations"):
        with_few_calculations(entries[:1], 2)


def test_leaked_questions_get_their_paraphrases(tmp_path):
    table = split_test_questions(QUESTIONS, 10, 4, 1)
    texts = {i: f"New {i}" for i in table.question_id[table.leaked]}
    for without in ([], list(texts)[:1]):  # a question without a paraphrase no longer leaks
        joined = with_paraphrases(table, texts | dict.fromkeys(without))
        parquet.write(tmp_path / "q.parquet", joined, "questions", {})
        back = parquet.read(tmp_path / "q.parquet", "questions").set_index("question_id")
        expected = {i: text for i, text in texts.items() if i not in without}
        assert back.paraphrase.dropna().to_dict() == expected
        assert list(back.index[back.leaked]) == list(expected)
    with pytest.raises(InputError, match="no question has a valid paraphrase"):
        with_paraphrases(table, dict.fromkeys(texts))
    with pytest.raises(InputError, match="1 questions only leak or only have"):
        with_paraphrases(table, {**texts, "test-9999": "New"})
    texts.popitem()
    with pytest.raises(InputError, match="1 questions only leak"):
        with_paraphrases(table, texts)


def test_a_test_question_among_the_training_questions_is_an_error():
    check_disjoint(QUESTIONS[:5], QUESTIONS[5:])
    with pytest.raises(InputError, match="test question 1 "):
        check_disjoint(QUESTIONS[4:6], QUESTIONS[5:])


GSM8K_QUESTIONS = yaml.safe_load((ROOT / "workflow/benchmarks/gsm8k.yaml").read_text())["questions"]
COMMIT = "a" * 40


@pytest.fixture
def hub(monkeypatch):
    """A hub whose data set is `splits`; `requests` are the calls that it got."""
    import datasets

    served = types.SimpleNamespace(
        splits={split: entries(number, split) for split, number in (("train", 9), ("test", 7))},
        requests=[],
    )

    def load_dataset(repository, name, *, revision, split):
        served.requests.append((repository, name, revision, split))
        if split not in served.splits:
            raise ConnectionError("no network")
        return datasets.Dataset.from_list(served.splits[split])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return served


def entries(number, split):
    return [
        {"question": f"What is {i} + 1 ({split})?", "answer": f"<<{i}+1={i + 1}>>So.\n#### {i + 1}"}
        for i in range(number)
    ]


def hub_options(splits, **changed):
    """The `hub` section of a benchmark file that pins the splits."""
    sha256 = gsm8k_format.fingerprint(splits)
    return {"repository": "some/set", "revision": COMMIT, "sha256": sha256} | changed


def from_hub(options):
    return question_sources.fetch({"source": "hub", "hub": options}, seed=0)


def from_files(folder, options):
    files = {split: str(folder / f"{split}.jsonl") for split in ("train", "test")}
    return question_sources.fetch({"source": "files", "files": files, "hub": options}, seed=0)


def test_the_hub_and_files_give_the_same_entries(hub, tmp_path, capsys):
    options = hub_options(hub.splits)
    downloaded = from_hub(options)
    assert hub.requests == [("some/set", "main", COMMIT, split) for split in ("train", "test")]
    for split, rows in hub.splits.items():
        (tmp_path / f"{split}.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    local = from_files(tmp_path, options)
    assert local == downloaded == hub.splits
    assert "these are the questions of the original data set" in capsys.readouterr().out


def test_a_changed_text_is_an_error_from_the_hub_and_a_note_for_files(hub, tmp_path, capsys):
    pinned = hub_options(hub.splits)
    hub.splits["train"][3]["question"] += " "
    with pytest.raises(InputError, match=r"some/set@a+: the questions' sha256 is .*hub.sha256"):
        from_hub(pinned)
    assert from_hub(pinned | {"sha256": None}) == hub.splits
    for split, rows in hub.splits.items():
        gsm8k_format.write(tmp_path / f"{split}.jsonl", rows)
    from_files(tmp_path, pinned)
    assert "not the original data set: the questions' sha256" in capsys.readouterr().out


def test_other_columns_and_an_unreachable_hub_are_errors(hub):
    pinned = hub_options(hub.splits)
    hub.splits = {"train": [{"prompt": "?"}]}
    with pytest.raises(InputError, match="has no column 'question'"):
        from_hub(pinned)
    hub.splits = {}
    with pytest.raises(InputError, match=r"could not be loaded from the hub: .*no network.*local"):
        from_hub(pinned)


def test_only_a_branch_or_tag_is_looked_up(monkeypatch):
    import huggingface_hub

    def dataset_info(self, repository, revision):
        return types.SimpleNamespace(sha="b" * 40)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    assert question_sources.resolve_commit("some/set", "main") == "b" * 40
    monkeypatch.delattr(huggingface_hub.HfApi, "dataset_info")
    assert question_sources.resolve_commit("some/set", "c" * 40) == "c" * 40
    with pytest.raises(InputError, match="some/set@main: could not be loaded"):
        question_sources.resolve_commit("some/set", "main")


@needs_gsm8k
def test_the_pinned_hash_is_that_of_openais_files(capsys):
    from_files(GSM8K, GSM8K_QUESTIONS["hub"])
    assert "these are the questions of the original data set" in capsys.readouterr().out
