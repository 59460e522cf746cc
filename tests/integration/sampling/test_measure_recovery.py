"""The scripts of the diagnostics on a tiny model: greedy trajectories, recovery, rail."""

from types import SimpleNamespace

import pandas as pd
import pytest

import replay_rail
from helpers.job_inputs import BENCHMARK, SAMPLING, stored_parts, write_inputs
from helpers.rules import parity
from helpers.tiny_models import tokenizer
from zerogap.analysis.rail import replay
from zerogap.data.token_kinds import token_kinds
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.sampling import cell, diagnostics, jobs

QUESTIONS = 6  # with the gold answer 1
PARAMETERS = {
    "benchmark": BENCHMARK
    | {
        "extraction": "helpers.rules:parity",
        "prompt": BENCHMARK["prompt"] | {"target": " {rationale} The answer is {answer}!"},  # odd
    },
    "sampling": SAMPLING,
    "metadata": {},
}


def test_stop_strings_that_cut_off_the_trained_answers_are_an_error(tmp_path):
    inputs = write_inputs(tmp_path, QUESTIONS)
    parameters = PARAMETERS | {"benchmark": PARAMETERS["benchmark"] | {"stop": ["The"]}}
    with pytest.raises(InputError, match=r"does not find the answer 1 in .*prompt.target, stop"):
        jobs.decode_greedy(**inputs, output=tmp_path / "greedy.parquet", **parameters)


def measure_recovery(folder, output):
    inputs = {name: folder / f"{name}.parquet" for name in ("questions", "greedy")}
    diagnostics.measure_recovery(
        **inputs, model=folder / "model", exemplars=folder / "exemplars.json", output=output,
        seed=3, **PARAMETERS,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with its greedy trajectories, samples of Identity and RailCap, and its recovery."""
    folder = tmp_path_factory.mktemp("run")
    inputs = write_inputs(folder, QUESTIONS, [k < 3 for k in range(QUESTIONS)])
    greedy = folder / "greedy.parquet"
    jobs.decode_greedy(**inputs, output=greedy, **PARAMETERS)
    for name, strategy in (("identity", {"class": "identity"}),
                           ("railcap", {"class": "railcap", "parameters": {"n": 1}})):  # fmt: skip
        jobs.sample_cell(
            **inputs, greedy=greedy, samples=folder / f"{name}.parquet",
            solve=folder / f"{name}_solve.parquet", strategy=strategy, seed=3, stream="strategies",
            **PARAMETERS,
        )  # fmt: skip
    measure_recovery(folder, folder / "recovery.parquet")
    return folder


def test_every_question_has_its_forced_responses(folder):
    table = parquet.read(folder / "recovery.parquet", "recovery")
    trajectories = parquet.read(folder / "greedy.parquet", "greedy").set_index("question_id")
    kind = token_kinds(tokenizer().decode, [tokenizer().eos_token_id])
    assert table.groupby("question_id").size().tolist() == [4] * QUESTIONS
    for row in table.itertuples():
        trajectory = list(trajectories.token_ids[row.question_id])
        assert list(row.token_ids)[: row.step] == trajectory[: row.step]
        assert row.token_ids[row.step] != trajectory[row.step]
        assert row.kind == kind(trajectory[row.step])
        assert row.correct == (parity(row.text) == "1")
    assert set(table.correct) == {True, False}


def test_a_models_own_greedy_tokens_have_rank_1(folder):
    diagnostics.rank_clean_tokens(
        model=folder / "model", questions=folder / "questions.parquet",
        exemplars=folder / "exemplars.json", clean_greedy=folder / "greedy.parquet",
        output=folder / "ranks.parquet", steps=3, **PARAMETERS,
    )  # fmt: skip
    table = parquet.read(folder / "ranks.parquet", "ranks")
    greedy = parquet.read(folder / "greedy.parquet", "greedy").set_index("question_id")
    assert (table["rank"] == 1).all()
    assert table.leaked.sum() * 2 == len(table)
    for question, ranked in table.groupby("question_id"):
        assert ranked.step.tolist() == [1, 2, 3]
        assert ranked.clean_token.tolist() == list(greedy.token_ids[question])[:3]


def test_an_interrupted_measurement_of_recovery_resumes(folder, monkeypatch):
    monkeypatch.setattr(cell, "SAMPLES_PER_CHUNK", 2 * SAMPLING["num_samples"])
    stored_parts(monkeypatch, at_most=1)
    with pytest.raises(KeyboardInterrupt):
        measure_recovery(folder, folder / "resumed.parquet")
    remaining = stored_parts(monkeypatch)
    measure_recovery(folder, folder / "resumed.parquet")
    assert len(remaining) == 2  # of three chunks
    pd.testing.assert_frame_equal(
        *(parquet.read(folder / f"{name}.parquet", "recovery") for name in ("resumed", "recovery"))
    )


def test_the_rail_is_replayed_for_the_clean_model_and_every_strategy(folder, tmp_path):
    own = parquet.read(folder / "greedy.parquet", "greedy")
    clean = own.assign(question_id=own.question_id[::-1].to_numpy())  # other trajectories
    parquet.write(tmp_path / "clean_greedy.parquet", clean, "greedy", {})
    job = SimpleNamespace(
        input=SimpleNamespace(
            clean_samples=folder / "identity.parquet",
            clean_greedy=tmp_path / "clean_greedy.parquet",
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
    assert len(table) == 3 * QUESTIONS
    leaked = parquet.read(folder / "questions.parquet", "questions").set_index("question_id").leaked
    kind = token_kinds(tokenizer().decode, [tokenizer().eos_token_id])
    expected = [
        replay(name, parquet.read(folder / f"{file}.parquet", "samples"), greedy, leaked, n, kind)
        for name, file, greedy, n in (
            ("clean", "identity", clean, 4),
            ("identity", "identity", own, 4),
            ("railcap", "railcap", own, 1),
        )
    ]
    pd.testing.assert_frame_equal(table, pd.concat(expected, ignore_index=True), check_dtype=False)
