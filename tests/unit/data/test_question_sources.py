"""Sources of questions: the generator, files, and the hub, replaced by a stub."""

import json
import types

import pytest
import yaml

from helpers.paths import ROOT
from helpers.shared_data import GSM8K, needs_gsm8k
from zerogap.data import gsm8k_format, question_sources
from zerogap.errors import InputError

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
