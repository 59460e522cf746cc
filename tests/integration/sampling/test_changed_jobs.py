"""Cells: none is resumed by a job that would sample something else; shards merge to a whole one."""

import json
import re

import pandas as pd
import pytest

from helpers.job_inputs import (
    BENCHMARK,
    SAMPLING,
    stored_parts,
    write_greedy,
    write_inputs,
    write_model,
)
from zerogap.errors import InputError
from zerogap.io import parquet
from zerogap.sampling import cell, jobs
from zerogap.sampling.tables import merge_shards

QUESTIONS = 4


def with_end_token(model, token):
    path = model / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": [token]}))
    return model


CHANGES = {
    "models": lambda folder: {"model": write_model(folder / "model", seed=1)},
    "end_tokens": lambda folder: {"model": with_end_token(write_model(folder / "model"), 7)},
    "greedy": lambda folder: {"greedy": write_greedy(folder, [[7, 8]] * QUESTIONS)},
    "seed": lambda folder: {"seed": 4},
    "sampling": lambda folder: {"sampling": SAMPLING | {"top_p": 0.9}},
    "stream": lambda folder: {"stream": "other"},
    "strategy_parameters": lambda folder: {"strategy": {"class": "identity"}},
    "extraction": lambda folder: {"benchmark": BENCHMARK | {"extraction": "flexible-extract"}},
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    return {
        **write_inputs(folder, QUESTIONS),
        "greedy": write_greedy(folder, [[1, 2, 3]] * QUESTIONS),
        "benchmark": BENCHMARK,
        "sampling": SAMPLING,
        "metadata": {},
        "strategy": {"class": "railcap", "parameters": {"n": 1}},
        "seed": 3,
        "stream": "strategies",
    }


@pytest.fixture
def sample(inputs, tmp_path):
    def sample(name, **changed):
        path = tmp_path / f"{name}.parquet"
        solve = tmp_path / f"{name}_solve.parquet"
        jobs.sample_cell(**inputs | changed, samples=path, solve=solve)
        return parquet.read(path, "samples")

    return sample


@pytest.mark.parametrize("key", CHANGES)
def test_a_cell_starts_over_if_what_its_samples_depend_on_has_changed(
    key, sample, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(cell, "SAMPLES_PER_CHUNK", 2 * SAMPLING["num_samples"])
    stored_parts(monkeypatch, at_most=1)
    with pytest.raises(KeyboardInterrupt):
        sample("cell")
    stored_parts(monkeypatch)
    changed = CHANGES[key](tmp_path)
    table = sample("cell", **changed)
    assert re.search(rf"settings changed since the last run \(.*\b{key}\b", capsys.readouterr().err)
    pd.testing.assert_frame_equal(table, sample("fresh", **changed))


def test_a_strategy_that_filters_samples_no_cell(sample):
    with pytest.raises(InputError, match="TED filters the responses of another strategy"):
        sample("ted", strategy={"class": "ted"})


def test_merged_shards_of_a_cell_have_the_bytes_of_an_undivided_one(inputs, sample, tmp_path):
    for name, shard in (("whole", (0, 1)), ("0", (0, 2)), ("1", (1, 2))):
        sample(name, shard=shard)
    merge_shards(
        samples=[tmp_path / f"{shard}.parquet" for shard in range(2)],
        solve=[tmp_path / f"{shard}_solve.parquet" for shard in range(2)],
        questions=inputs["questions"],
        merged_samples=tmp_path / "merged.parquet",
        merged_solve=tmp_path / "merged_solve.parquet",
    )
    for table in ("", "_solve"):
        merged, whole = (tmp_path / f"{name}{table}.parquet" for name in ("merged", "whole"))
        assert merged.read_bytes() == whole.read_bytes()
