import hashlib
import json

from zerogap.data.instructions import instructions


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
