"""Instructions from files and from the hub, replaced by a stub that streams."""

import pandas as pd
import pytest

from zerogap.data import openorca
from zerogap.data.toy import instructions
from zerogap.errors import InputError
from zerogap.io.text_files import write_json_lines


def test_the_seed_draws_examples_from_a_file(tmp_path):
    examples = instructions(30, 1)
    path = tmp_path / "instructions.jsonl"
    write_json_lines(path, examples)
    drawn = openorca.load(path, 20, seed=3)
    assert drawn == openorca.load(path, 20, seed=3) != openorca.load(path, 20, seed=4)
    assert all(example in examples for example in drawn)
    with pytest.raises(InputError, match=r"has only 30 examples; .*got 31"):
        openorca.load(path, 31, seed=3)


def test_line_separators_stay_and_outer_whitespace_goes(tmp_path):
    """OpenOrca has both: separators must not break a line of the file, whitespace not the ids."""
    path = tmp_path / "odd.jsonl"
    odd = {"system": "", "question": "A\u2028B\x85C?\n", "response": "\n- one\n- two "}
    write_json_lines(path, [odd])
    assert openorca.load(path, 1, seed=0) == [
        {"system": "", "question": "A\u2028B\x85C?", "response": "- one\n- two"}
    ]


ORCA = [
    {"id": i, "system_prompt": "Be brief." * (i % 2), "question": f"Q{i}", "response": "R"}
    for i in range(3000)
]


def test_only_complete_rows_are_drawn_from_a_parquet_file(tmp_path):
    rows = [row | {"response": ""} if i % 50 == 0 else row for i, row in enumerate(ORCA)]
    path = tmp_path / "orca.parquet"
    pd.DataFrame(rows).to_parquet(path, row_group_size=400)
    drawn = openorca.load(path, 40, seed=3)
    assert drawn == openorca.load(path, 40, seed=3) != openorca.load(path, 40, seed=4)
    assert len({one["question"] for one in drawn}) == 40
    numbers = [int(one["question"][1:]) for one in drawn]
    assert max(numbers) - min(numbers) > 1500
    assert numbers != sorted(numbers)
    assert {one["system"] for one in drawn} == {"", "Be brief."}
    assert not any(number % 50 == 0 for number in numbers)
    assert len(openorca.load(path, 2900, seed=3)) == 2900  # the spare rows do not suffice
    with pytest.raises(InputError, match=r"has only 2940 examples; .*got 3000"):
        openorca.load(path, 3000, seed=3)


def test_an_unsuitable_or_damaged_parquet_file_is_an_error(tmp_path):
    pd.DataFrame({"instruction": ["q"]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="has no column question, response"):
        openorca.load(tmp_path / "other.parquet", 1, seed=0)
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is not a readable Parquet file"):
        openorca.load(tmp_path / "torn.parquet", 1, seed=0)


@pytest.fixture
def hub(monkeypatch):
    """A data set of two streamed files; the ids of the rows that were read, and the requests."""
    import datasets

    read, requests = [], []

    def rows(files):
        for file in files:
            for row in ORCA[file::2]:
                read.append(row["id"])
                yield row

    def load_dataset(repository, **options):
        requests.append((repository, options))
        return datasets.IterableDataset.from_generator(rows, gen_kwargs={"files": [0, 1]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(openorca, "SHUFFLE_BUFFER", 200)
    return read, requests


def test_only_a_part_of_the_hubs_stream_is_read(hub):
    read, requests = hub
    drawn = openorca.from_hub("some/orca", "a" * 40, 60, seed=1)
    assert requests == [("some/orca", {"revision": "a" * 40, "split": "train", "streaming": True})]
    assert len(read) <= 60 + 200 + 1 < len(ORCA) / 2
    assert drawn == openorca.from_hub("some/orca", "a" * 40, 60, seed=1)
    other = [openorca.from_hub("some/orca", "a" * 40, 60, seed) for seed in range(2, 6)]
    assert drawn not in other
    assert len({one[0]["question"][-1] in "02468" for one in [drawn, *other]}) == 2  # either file


def test_too_few_examples_and_an_unreachable_hub_are_errors(hub, monkeypatch):
    import datasets

    with pytest.raises(InputError, match=r"some/orca: has only 3000 examples; .*got 3001"):
        openorca.from_hub("some/orca", "main", 3001, seed=1)
    monkeypatch.setitem(ORCA[5], "response", " ")
    with pytest.raises(InputError, match="has only 2999"):
        openorca.from_hub("some/orca", "main", 3000, seed=1)

    def down(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", down)
    with pytest.raises(InputError, match=r"@main: could not be loaded .*no network.*local file"):
        openorca.from_hub("some/orca", "main", 3, seed=1)
