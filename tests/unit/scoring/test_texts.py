"""Texts of files of responses, for the page of `zerogap score --html`."""

import tempfile
from pathlib import Path

import pytest

from helpers.response_files import json_lines, record
from helpers.synthetic_run import questions_table, samples_table
from zerogap.io import parquet
from zerogap.scoring.texts import read_texts
from zerogap.strategies.filtering import DROPPED


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
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:  # no folder of a run is above it
        path = json_lines(Path(file.name), [{"id": 1, "n_correct": 1, "n_samples": 2}])
        assert read_texts(path).questions == {}


def test_the_texts_of_an_lm_eval_log_are_those_of_one_filter(tmp_path):
    records = [
        record(number, list(texts), kind=kind)
        for kind in ("first", "second")
        for number, texts in ((7, "abcd"), (8, "ab"))
    ]
    texts = read_texts(json_lines(tmp_path / "log.jsonl", records))
    assert texts.questions == {"7": "How much?", "8": "How much?"}
    assert texts.responses == {"7": ["a", "b", "c"], "8": ["a", "b"]}


def test_responses_that_a_strategy_dropped_are_not_shown(tmp_path):
    log = json_lines(tmp_path / "log.jsonl", [record(7, ["a", DROPPED, DROPPED])])
    assert read_texts(log).responses == {"7": ["a"]}
