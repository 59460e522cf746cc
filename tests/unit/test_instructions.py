import hashlib
import json

import pytest

from zerogap.data import orca
from zerogap.data.instructions import instructions
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
    orca.write(path, made)
    drawn = orca.load(path, 20, seed=3)
    assert drawn == orca.load(path, 20, seed=3) != orca.load(path, 20, seed=4)
    assert all(example in made for example in drawn)
    with pytest.raises(InputError, match="n is 31; .* has 30"):
        orca.load(path, 31, seed=3)


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
        orca.load(path, 1, seed=0)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        orca.load(tmp_path / "none.jsonl", 1, seed=0)
