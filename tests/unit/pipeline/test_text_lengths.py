import json

import pytest

from zerogap.pipeline.text_lengths import text_lengths

pytestmark = pytest.mark.usefixtures("in_checkout")


def test_a_response_ends_at_max_new_tokens(paper):
    config = paper(sampling__max_new_tokens=10)
    assert text_lengths(config, "llama2", "gsm8k", 3.0).response == 10


def test_generated_texts_are_measured_with_the_local_tokenizer(quick):
    text = text_lengths(quick(), "llama2", "gsm8k", characters_per_token=1000)
    assert 40 < text.response < 60  # the shipped models' responses have about 49


def test_local_files_are_measured(quick, tmp_path):
    row = {"question": "x" * 300, "answer": f"{'y' * 600}\n#### 7"}
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps(row))
    files = {"source": "files", "files": {"train": str(path), "test": str(path)}}
    text = text_lengths(quick(benchmarks__gsm8k__questions=files), "llama2", "gsm8k", 3.0)
    assert text.response == 96  # max_new_tokens
    assert text.question > 2 * text_lengths(quick(), "llama2", "gsm8k", 3.0).question


def test_the_template_of_the_benchmark_counts(paper):
    short, long = (
        text_lengths(paper(benchmarks__gsm8k__prompt=prompt), "llama2", "gsm8k", 1.0)
        for prompt in ({}, {"template": "Here is a question: {question}\nA:", "num_shots": 7})
    )
    assert long.question - short.question == len("Here is a question: ") - len("Q: ")
    assert long.shots < short.shots + 8 * 17


def test_local_instructions_are_measured(paper, tmp_path):
    path = tmp_path / "instructions.jsonl"
    path.write_text(json.dumps({"system": "", "question": "q" * 50, "response": "r" * 30}))
    config = paper(instructions={"source": "files", "files": str(path), "num_examples": 1})
    assert text_lengths(config, "llama2", "gsm8k", 1.0).instruction == 81
