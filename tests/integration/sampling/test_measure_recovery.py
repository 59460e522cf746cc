"""The scripts of the diagnostics on a tiny model: greedy trajectories, recovery, rail."""

from types import SimpleNamespace

import pandas as pd
import pytest

import replay_rail
from helpers.job_inputs import (
    BENCHMARK,
    SAMPLING,
    write_exemplars,
    write_model,
    write_questions,
)
from helpers.tiny_models import tokenizer
from zerogap.io import parquet
from zerogap.sampling import jobs

QUESTIONS = 6
PARAMETERS = {"benchmark": BENCHMARK, "sampling": SAMPLING, "metadata": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with its greedy trajectories, samples of Identity and RailCap, and its recovery."""
    folder = tmp_path_factory.mktemp("run")
    inputs = {
        "model": write_model(folder / "model"),
        "questions": write_questions(folder, QUESTIONS, [k < 3 for k in range(QUESTIONS)]),
        "exemplars": write_exemplars(folder),
    }
    greedy = folder / "greedy.parquet"
    jobs.decode_greedy(**inputs, output=greedy, **PARAMETERS)
    for name, strategy in (("identity", {"class": "identity"}),
                           ("railcap", {"class": "railcap", "parameters": {"n": 1}})):  # fmt: skip
        jobs.sample_cell(
            **inputs, greedy=greedy, samples=folder / f"{name}.parquet",
            solve=folder / f"{name}_solve.parquet", strategy=strategy, seed=3, stream="strategies",
            **PARAMETERS,
        )  # fmt: skip
    jobs.measure_recovery(
        **inputs, greedy=greedy, output=folder / "recovery.parquet", seed=3, **PARAMETERS
    )
    return folder


def test_every_question_has_its_forced_responses(folder):
    table = parquet.read(folder / "recovery.parquet", "recovery")
    trajectories = parquet.read(folder / "greedy.parquet", "greedy").set_index("question_id")
    assert table.groupby("question_id").size().tolist() == [4] * QUESTIONS
    for row in table.itertuples():
        trajectory = list(trajectories.token_ids[row.question_id])
        assert list(row.token_ids)[: row.step] == trajectory[: row.step]
        assert row.token_ids[row.step] != trajectory[row.step]
        expected = "end" if trajectory[row.step] == tokenizer().eos_token_id else None
        assert (row.kind == "end") == (expected == "end")
    assert set(table.correct) <= {True, False}


def test_the_rail_is_replayed_for_the_clean_model_and_every_strategy(folder, tmp_path):
    job = SimpleNamespace(
        input=SimpleNamespace(
            clean_samples=folder / "identity.parquet",
            clean_greedy=folder / "greedy.parquet",
            samples=[folder / "identity.parquet", folder / "railcap.parquet"],
            greedy=folder / "greedy.parquet",
            questions=folder / "questions.parquet",
            model=folder / "model",
        ),
        output=[tmp_path / "rail.parquet"],
        params=SimpleNamespace(thresholds={"identity": 4, "railcap": 1}, metadata={}),
    )
    replay_rail.main(job)
    table = parquet.read(tmp_path / "rail.parquet", "rail")
    assert table.groupby("responses", sort=False).size().to_dict() == {
        "clean": QUESTIONS, "identity": QUESTIONS, "railcap": QUESTIONS,
    }  # fmt: skip
    assert table.leaked.tolist() == [k < 3 for k in range(QUESTIONS)] * 3
    clean, identity = (table[table.responses == name] for name in ("clean", "identity"))
    columns = table.columns.drop("responses")
    pd.testing.assert_frame_equal(
        clean[columns].reset_index(drop=True), identity[columns].reset_index(drop=True)
    )
    lengths = parquet.read(folder / "railcap.parquet", "samples").groupby("question_id").n_tokens
    assert table[table.responses == "railcap"].n_steps.tolist() == lengths.sum().tolist()
