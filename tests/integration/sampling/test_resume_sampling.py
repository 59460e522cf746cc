"""A sampling job that is killed at several points writes the bytes of one that is not."""

import pytest

from helpers.job_inputs import (
    BENCHMARK,
    SAMPLING,
    kill_after,
    num_parts,
    start_job,
    write_greedy,
    write_inputs,
)
from zerogap.sampling import jobs
from zerogap.sampling.tables import merge_shards

QUESTIONS = 420  # five chunks
PARAMETERS = {
    "strategy": {"class": "railcap", "parameters": {"n": 1}},
    "sampling": SAMPLING | {"num_samples": 50, "max_new_tokens": 4},
    "benchmark": BENCHMARK,
    "seed": 5,
    "stream": "strategies",
    "metadata": {},
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    greedy = write_greedy(folder, [[1, 2, 3]] * QUESTIONS)
    return write_inputs(folder, QUESTIONS) | {"greedy": greedy}


def start(inputs, folder):
    """Start a sampling job that writes into the folder."""
    folder.mkdir(exist_ok=True)
    outputs = {name: folder / f"{name}.parquet" for name in ("samples", "solve")}
    return start_job("sample_responses", PARAMETERS, **inputs, **outputs)


@pytest.mark.slow
def test_a_job_killed_at_several_points_writes_the_bytes_of_an_undisturbed_one(inputs, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = start(inputs, whole)
    journal = killed / "samples.parquet.work/parts.jsonl"
    for parts in (1, 2, 4):
        kill_after(parts, start(inputs, killed), journal)
        assert not (killed / "samples.parquet").exists()
        assert parts <= num_parts(journal) < 5
    assert undisturbed.wait() == 0, undisturbed.stderr.read()
    second = start(inputs, killed)
    assert second.wait() == 0, second.stderr.read()
    for name in ("samples.parquet", "solve.parquet"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not journal.parent.exists()


def test_merged_shards_have_the_bytes_of_an_undivided_job(tmp_path):
    inputs = write_inputs(tmp_path, 6) | {"greedy": write_greedy(tmp_path, [[1, 2, 3]] * 6)}

    def sample(name, **shard):
        (tmp_path / name).mkdir()
        samples, solve = (tmp_path / name / f"{table}.parquet" for table in ("samples", "solve"))
        jobs.sample_cell(**inputs, **PARAMETERS, samples=samples, solve=solve, **shard)
        return samples, solve

    whole = sample("whole")
    samples, solve = zip(*(sample(f"{k}", shard=(k, 2)) for k in range(2)), strict=True)
    merged = tmp_path / "samples.parquet", tmp_path / "solve.parquet"
    merge_shards(
        samples=samples,
        solve=solve,
        questions=inputs["questions"],
        merged_samples=merged[0],
        merged_solve=merged[1],
    )
    for one, other in zip(merged, whole, strict=True):
        assert one.read_bytes() == other.read_bytes()
