import hashlib
import json

import pandas as pd
import pytest

from zerogap.data import openorca
from zerogap.data.toy.instructions import instructions
from zerogap.errors import InputError


def test_shape_and_variety():
    made = instructions(3000, 5)
    assert len({x["question"] for x in made}) == 3000
    assert len({x["question"].split()[0] for x in made}) > 12
    for example in made:
        assert set(example) == {"system", "question", "response"}
        assert example["question"] and example["response"]
        assert len(" ".join(example.values()).split()) <= 60


def test_responses_do_what_is_asked():
    for example in instructions(3000, 6):
        question, response = example["question"], example["response"]
        given = question.split(": ", 1)[-1]
        if question.startswith("Change to uppercase"):
            assert response == given.upper()
        if question.startswith("Sort from smallest to largest"):
            numbers = [int(x) for x in given.split(", ")]
            assert [int(x) for x in response.split(", ")] == sorted(numbers)
        if question.startswith("Count the words"):
            assert f" {len(question.split('. ', 1)[1].split())} " in response


def test_same_bytes_everywhere():
    digest = hashlib.sha256(json.dumps(instructions(200, 1)).encode()).hexdigest()
    assert digest[:16] == "3d2bcf658306f7e4"
    assert instructions(20, 1) != instructions(20, 2)


def test_a_file_of_instructions(tmp_path):
    made = instructions(30, 1)
    path = tmp_path / "instructions.jsonl"
    openorca.write(path, made)
    drawn = openorca.load(path, 20, seed=3)
    assert drawn == openorca.load(path, 20, seed=3) != openorca.load(path, 20, seed=4)
    assert all(example in made for example in drawn)
    with pytest.raises(InputError, match="n is 31; .* has 30"):
        openorca.load(path, 31, seed=3)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"question": "q"}', "'response' is missing"),
        ('{"question": " ", "response": "r"}', "'question' is missing or empty"),
        ('{"question": 3, "response": "r"}', "must be a text"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, says):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "q", "response": "r"}\n' + line)
    with pytest.raises(InputError, match=f"bad.jsonl, line 2: .*{says}"):
        openorca.load(path, 1, seed=0)


def test_other_line_separators_and_seams(tmp_path):
    """OpenOrca has both: the one must not break a line of the file, the other not the ids."""
    path = tmp_path / "odd.jsonl"
    odd = {"system": "", "question": "A\u2028B\x85C?\n", "response": "\n- one\n- two "}
    openorca.write(path, [odd])
    assert openorca.load(path, 1, seed=0) == [
        {"system": "", "question": "A\u2028B\x85C?", "response": "- one\n- two"}
    ]


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        openorca.load(tmp_path / "none.jsonl", 1, seed=0)


ORCA = [
    {
        "id": f"flan.{i}",
        "system_prompt": "Be brief." * (i % 2),
        "question": f"Q{i}",
        "response": "R",
    }
    for i in range(3000)
]


def test_a_parquet_file_of_openorca(tmp_path):
    rows = [row | {"response": ""} if i % 50 == 0 else row for i, row in enumerate(ORCA)]
    path = tmp_path / "orca.parquet"
    pd.DataFrame(rows).to_parquet(path, row_group_size=400)
    drawn = openorca.load(path, 40, seed=3)
    assert drawn == openorca.load(path, 40, seed=3) != openorca.load(path, 40, seed=4)
    assert len({one["question"] for one in drawn}) == 40
    numbers = [int(one["question"][1:]) for one in drawn]
    assert max(numbers) - min(numbers) > 1500 and numbers != sorted(numbers)
    assert {one["system"] for one in drawn} == {"", "Be brief."}
    assert not any(number % 50 == 0 for number in numbers)
    with pytest.raises(InputError, match="n is 3000; .* has 2940"):
        openorca.load(path, 3000, seed=3)


def test_a_parquet_file_of_another_form(tmp_path):
    pd.DataFrame({"instruction": ["q"]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="no column question, response"):
        openorca.load(tmp_path / "other.parquet", 1, seed=0)
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        openorca.load(tmp_path / "torn.parquet", 1, seed=0)


@pytest.fixture
def hub(monkeypatch):
    """OpenOrca's stand-in: two files of rows, streamed; `read` is what was taken of them."""
    import datasets

    read, asked = [], []

    def rows(files):
        for file in files:
            for row in ORCA[file::2]:
                read.append(row["id"])
                yield row

    def load_dataset(repository, **options):
        asked.append((repository, options))
        return datasets.IterableDataset.from_generator(rows, gen_kwargs={"files": [0, 1]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(openorca, "_BUFFER", 200)
    return read, asked


def test_the_hub_is_streamed_and_read_in_part(hub):
    read, asked = hub
    drawn = openorca.from_hub("some/orca", "a" * 40, 60, seed=1)
    assert asked == [("some/orca", {"revision": "a" * 40, "split": "train", "streaming": True})]
    assert len(read) <= 60 + 200 + 1 < len(ORCA) / 2
    assert drawn == openorca.from_hub("some/orca", "a" * 40, 60, seed=1)
    other = [openorca.from_hub("some/orca", "a" * 40, 60, seed) for seed in range(2, 6)]
    assert drawn not in other
    assert len({one[0]["question"][-1] in "02468" for one in [drawn, *other]}) == 2  # either file


def test_the_hub_has_too_few_or_is_down(hub, monkeypatch):
    import datasets

    with pytest.raises(InputError, match="n is 3001; some/orca has 3000"):
        openorca.from_hub("some/orca", "main", 3001, seed=1)
    monkeypatch.setitem(ORCA[5], "response", " ")
    with pytest.raises(InputError, match="has 2999"):
        openorca.from_hub("some/orca", "main", 3000, seed=1)

    def down(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", down)
    with pytest.raises(InputError, match="some/orca@main: not loaded .*no network.*local file"):
        openorca.from_hub("some/orca", "main", 3, seed=1)
