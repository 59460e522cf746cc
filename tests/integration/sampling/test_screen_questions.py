"""The scripts that find the test questions that a prepared base can solve, on a tiny model."""

import json
from pathlib import Path

import pandas as pd
import pytest

import draw_questions
import screen_questions
import split_questions
from helpers.job_inputs import BENCHMARK, SAMPLING, write_model
from zerogap.io import parquet
from zerogap.sampling import jobs


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model, and files of 12 questions; every third one can be solved."""
    write_model(tmp_path / "model")
    for split in ("train", "test"):
        rows = [{"question": f"{split} {k}?", "answer": f"So.\n#### {k}"} for k in range(12)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sample = jobs.sample_questions

    def sample_and_solve(sampler, golds, *arguments, **options):
        assert all(len(prompt.token_ids) < 20 for prompt in sampler.prompts)  # no exemplars
        table = sample(sampler, golds, *arguments, **options)
        number = table.question_id.str.removeprefix("test-").astype(int)
        return table.assign(correct=(number % 3 == 0) & (table.sample_id == 1))

    monkeypatch.setattr(jobs, "sample_questions", sample_and_solve)
    return tmp_path


def run(script, folder: Path, parameters, **paths):
    arguments = [("--parameters", json.dumps(parameters))]
    arguments += [(f"--{name}", folder / path) for name, path in paths.items()]
    script.main([str(word) for pair in arguments for word in pair])


def test_the_split_has_only_questions_that_a_response_solved(folder):
    files = {split: str(folder / f"{split}.jsonl") for split in ("train", "test")}
    run(
        draw_questions, folder,
        {
            "questions": {"source": "files", "files": files}, "extraction": "numeric", "seed": 0,
            "use": "screening", "num_questions": 10, "metadata": {},
        },
        output="candidates.parquet",
    )  # fmt: skip
    run(
        screen_questions, folder,
        {
            "sampling": SAMPLING | {"num_samples": 3}, "benchmark": BENCHMARK, "seed": 0,
            "metadata": {},
        },
        model="model", questions="candidates.parquet", output="screening.parquet",
    )  # fmt: skip
    counts = parquet.read(folder / "screening.parquet", "counts")
    assert counts.n_samples.tolist() == [3] * 10
    solvable = set(counts.question_id[counts.n_correct == 1])
    run(
        split_questions, folder,
        {
            "num_test": 2, "num_leaked": 1, "num_train": 4, "num_preparation": 0, "seed": 0,
            "extraction": "numeric", "metadata": {},
        },
        train="train.jsonl", test="test.jsonl", screening="screening.parquet",
        questions="split.parquet", training="training.parquet",
    )  # fmt: skip
    split = pd.read_parquet(folder / "split.parquet")
    assert len(split) == 2
    assert set(split.question_id) <= solvable
