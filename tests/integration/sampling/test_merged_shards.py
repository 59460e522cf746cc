"""A cell in shards; jobs that are killed are in tests/slurm and tests/kill."""

from helpers.job_inputs import BENCHMARK, SAMPLING, write_greedy, write_inputs
from zerogap.sampling import jobs
from zerogap.sampling.tables import merge_shards

PARAMETERS = {
    "strategy": {"class": "railcap", "parameters": {"n": 1}},
    "sampling": SAMPLING | {"num_samples": 50, "max_new_tokens": 4},
    "benchmark": BENCHMARK,
    "seed": 5,
    "stream": "strategies",
    "metadata": {},
}


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
