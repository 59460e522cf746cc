import json
import os
import types
from pathlib import Path

import pytest
import yaml

import fetch_questions
from helpers.paths import ROOT
from zerogap.data import gsm8k
from zerogap.data.questions import questions
from zerogap.errors import InputError

REAL = Path(os.environ.get("ZEROGAP_GSM8K", ROOT.parent / "shared/data/gsm8k"))
real = pytest.mark.skipif(
    not (REAL / "test.jsonl").is_file(), reason="GSM8K is not here (ZEROGAP_GSM8K: its folder)"
)
HUB = yaml.safe_load((ROOT / "workflow/benchmarks/gsm8k.yaml").read_text())["questions"]["hub"]
HUB["rows"] = HUB.pop("num_rows")
GOOD = {"question": "What is 2 + 3?", "answer": "It is 2+3=<<2+3=5>>5.\nDone.\n#### 5"}


def written(tmp_path, *lines):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_rationale_is_cleaned(tmp_path):
    (row,) = gsm8k.load(written(tmp_path, GOOD))
    assert row == gsm8k.Row("What is 2 + 3?", "It is 2+3=5. Done.", "5")


@pytest.mark.parametrize(
    ("gold", "number"), [("1,450,000", "1450000"), ("$-3", "-3"), ("2.50", "2.5")]
)
def test_gold_is_canonical(gold, number):
    assert gsm8k.parse({"question": "q", "answer": f"r #### {gold}"}).gold == number


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ({"answer": "r #### 1"}, "'question' is missing or empty"),
        ({"question": " ", "answer": "r #### 1"}, "'question' is missing or empty"),
        ({"question": "q", "answer": None}, "'answer' is missing or empty"),
        ({"question": "q", "answer": "r"}, "no '#### N'"),
        ({"question": "q", "answer": "#### 1"}, "no reasoning"),
        ({"question": "q", "answer": "r #### five"}, "'five' is not a number"),
        (GOOD, "question of line 1 again"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, says):
    with pytest.raises(InputError, match=rf"rows\.jsonl, line 3: .*{says}"):
        gsm8k.load(written(tmp_path, GOOD, "", line))


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        gsm8k.load(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no questions"):
        gsm8k.load(written(tmp_path, ""))
    (tmp_path / "latin.jsonl").write_bytes(b'{"question": "\xe9"}')
    with pytest.raises(InputError, match="UTF-8"):
        gsm8k.load(tmp_path / "latin.jsonl")


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "deep" / "rows.jsonl"
    gsm8k.write(path, [gsm8k.entry("How many\u2028 é?", "One.", "1"), GOOD])
    assert [row.gold for row in gsm8k.load(path)] == ["1", "5"]


def test_nothing_half_written(tmp_path):
    with pytest.raises(InputError, match="entry 2"):
        gsm8k.write(tmp_path / "rows.jsonl", [GOOD, {"question": "q", "answer": "r"}])
    assert list(tmp_path.iterdir()) == []


@real
def test_all_of_gsm8k():
    train, test = gsm8k.load(REAL / "train.jsonl"), gsm8k.load(REAL / "test.jsonl")
    assert (len(train), len(test)) == (7473, 1319)
    for row in train + test:
        assert "<<" not in row.rationale and "####" not in row.rationale
        assert "\n" not in row.rationale + row.question
    assert test[0].gold == "18"


# The hub, stood in for by a stub of `datasets.load_dataset`.


@pytest.fixture
def hub(monkeypatch):
    """A hub whose data set is `splits`; `asked` is what was asked of it."""
    import datasets

    served = types.SimpleNamespace(splits={}, asked=[])

    def load_dataset(repository, name, *, revision, split):
        served.asked.append((repository, name, revision, split))
        if split not in served.splits:
            raise ConnectionError("no network")
        return datasets.Dataset.from_list(served.splits[split])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return served


def entries(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def some(n, split):
    return [
        {
            "question": f"What is {i} + 1 ({split})?",
            "answer": f"<<{i}+1={i + 1}>>So.\n#### {i + 1}",
        }
        for i in range(n)
    ]


def made(folder, source):
    fetch_questions.main(
        ["--source", json.dumps(source), "--train", f"{folder}/train.jsonl",
         "--test", f"{folder}/test.jsonl"]
    )  # fmt: skip
    return {split: (folder / f"{split}.jsonl").read_bytes() for split in ("train", "test")}


def hub_source(splits, **changed):
    rows = {split: len(found) for split, found in splits.items()}
    pin = {"rows": rows, "sha256": gsm8k.fingerprint(splits)}
    return {"kind": "hub", "repository": "some/set", "revision": "a" * 40} | pin | changed


@pytest.fixture
def small(hub):
    hub.splits = {"train": some(9, "train"), "test": some(7, "test")}
    return hub


def test_hub_and_files_give_the_same_bytes_and_ids(small, tmp_path, capsys):
    from_hub = made(tmp_path / "hub", hub_source(small.splits))
    assert small.asked == [("some/set", "main", "a" * 40, split) for split in ("train", "test")]
    for split, found in small.splits.items():
        (tmp_path / f"{split}.jsonl").write_text("\n\n".join(map(json.dumps, found)))
    files = {"kind": "files"} | {split: f"{tmp_path}/{split}.jsonl" for split in small.splits}
    pin = {key: hub_source(small.splits)[key] for key in ("rows", "sha256")}
    assert made(tmp_path / "files", files | pin) == from_hub
    assert "the original data set" in capsys.readouterr().out
    tables = [
        questions(gsm8k.load(tmp_path / kind / "test.jsonl"), 5, 2, 3) for kind in ("hub", "files")
    ]
    assert tables[0].equals(tables[1])


def test_another_text_from_the_hub_is_an_error_and_from_files_none(small, tmp_path, capsys):
    pinned = hub_source(small.splits)
    small.splits["train"][3]["question"] += " "  # no number of rows changes
    with pytest.raises(InputError, match=r"some/set@a+: the questions' sha256 is .*data.hub"):
        made(tmp_path / "hub", pinned)
    assert not (tmp_path / "hub").exists()
    gsm8k.write(tmp_path / "train.jsonl", small.splits["train"])
    gsm8k.write(tmp_path / "test.jsonl", small.splits["test"])
    files = {"kind": "files"} | {split: f"{tmp_path}/{split}.jsonl" for split in small.splits}
    made(tmp_path / "files", files | {key: pinned[key] for key in ("rows", "sha256")})
    assert "not the original data set: the questions' sha256" in capsys.readouterr().out


def test_an_incomplete_hub_is_said_so(small, tmp_path):
    pinned = hub_source(small.splits)
    del small.splits["test"][-1]
    with pytest.raises(InputError, match=r"6 test questions where data.hub.rows has 7"):
        made(tmp_path, pinned)
    made(tmp_path, pinned | {"sha256": None})  # unchecked


def test_a_hub_that_is_down_or_has_another_form(small, tmp_path):
    pinned = hub_source(small.splits)
    small.splits = {"train": [{"prompt": "?"}]}
    with pytest.raises(InputError, match="no column 'question'"):
        made(tmp_path, pinned)
    small.splits = {}
    with pytest.raises(InputError, match="not loaded from the hub .no network.*give local files"):
        made(tmp_path, pinned)


def test_a_commit_is_not_looked_up_and_a_branch_is(monkeypatch):
    import huggingface_hub

    def dataset_info(self, repository, revision):
        return types.SimpleNamespace(sha="b" * 40)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    assert gsm8k.commit("some/set", "main") == "b" * 40
    monkeypatch.delattr(huggingface_hub.HfApi, "dataset_info")
    assert gsm8k.commit("some/set", "c" * 40) == "c" * 40
    with pytest.raises(InputError, match="some/set@main: not loaded"):
        gsm8k.commit("some/set", "main")


@real
def test_the_pin_is_that_of_openais_files(hub, tmp_path):
    hub.splits = {split: entries(REAL / f"{split}.jsonl") for split in ("train", "test")}
    from_hub = made(tmp_path / "hub", {"kind": "hub", **HUB})
    files = {"kind": "files"} | {split: f"{REAL}/{split}.jsonl" for split in hub.splits}
    assert made(tmp_path / "files", files | HUB) == from_hub
    table = questions(gsm8k.load(tmp_path / "hub/test.jsonl"), 1319, 660, 0)
    assert (len(table), table.leaked.sum()) == (1319, 660)
    assert list(table.question_id[[0, 1318]]) == ["test-0000", "test-1318"]
