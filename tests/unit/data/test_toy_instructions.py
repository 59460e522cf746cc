"""Generated instructions: variety, correctness, reproducibility."""

import hashlib
import json

from zerogap.data.toy.instructions import instructions


def test_instructions_are_unique_varied_and_short():
    examples = instructions(3000, 5)
    assert len({example["question"] for example in examples}) == 3000
    assert len({example["question"].split()[0] for example in examples}) > 12
    for example in examples:
        assert set(example) == {"system", "question", "response"}
        assert example["question"]
        assert example["response"]
        assert len(" ".join(example.values()).split()) <= 60


def test_responses_solve_their_tasks():
    for example in instructions(3000, 6):
        question, response = example["question"], example["response"]
        text = question.split(": ", 1)[-1]
        if question.startswith("Change to uppercase"):
            assert response == text.upper()
        if question.startswith("Sort from smallest to largest"):
            numbers = [int(x) for x in text.split(", ")]
            assert [int(x) for x in response.split(", ")] == sorted(numbers)
        if question.startswith("Count the words"):
            assert f" {len(question.split('. ', 1)[1].split())} " in response


def test_instructions_are_the_same_bytes_on_every_machine():
    digest = hashlib.sha256(json.dumps(instructions(200, 1)).encode()).hexdigest()
    assert digest[:16] == "3d2bcf658306f7e4"
    assert instructions(20, 1) != instructions(20, 2)
