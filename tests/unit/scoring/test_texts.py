"""Texts of files of responses, for the page of `zerogap score --html`."""

import pytest

from helpers.synthetic_run import questions_table, samples_table
from zerogap.io import parquet
from zerogap.scoring.texts import read_texts


@pytest.fixture
def samples(tmp_path):
    """Samples where a run has them."""
    path = tmp_path / "run/llama2/gsm8k/cells/railcap/samples.parquet"
    path.parent.mkdir(parents=True)
    parquet.write(path, samples_table(3, 2), "samples", {})
    return path


def test_samples_of_a_run_have_the_questions_of_their_benchmark(samples, tmp_path):
    table = questions_table(3)
    for benchmark, text in (("gsm8k", "How many?"), ("pq", "Which?")):
        folder = tmp_path / "run/data" / benchmark
        folder.mkdir(parents=True)
        parquet.write(folder / "questions.parquet", table.assign(question=text), "questions", {})
    texts = read_texts(samples)
    assert texts.questions == dict.fromkeys(table["question_id"], "How many?")
    assert len(texts.responses) == 3


def test_samples_elsewhere_have_no_questions(samples):
    assert read_texts(samples).questions == {}
