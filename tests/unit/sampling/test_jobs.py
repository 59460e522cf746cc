"""What of a configuration decides how a job draws."""

import pytest

from helpers.job_inputs import BENCHMARK
from zerogap.engine.decoder import SamplingParams
from zerogap.sampling.jobs import decoding_params, recorded

SAMPLING = {
    "num_samples": 3, "temperature": 0.6, "top_p": 0.9, "max_new_tokens": 7, "dtype": "float32",
    "batch_size": 5, "batch_invariant": True,
}  # fmt: skip
EVERY_JOB = {"max_new_tokens": 7, "stop": ["Q:"], "batch_size": 5, "batch_invariant": True}
DRAWS = {"seed": 4, "stream": "clean-batch1"}


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ({}, {"temperature": 0}),
        (DRAWS, DRAWS | {"num_samples": 3, "temperature": 0.6, "top_p": 0.9}),
    ],
    ids=["greedy", "sampled"],
)
def test_every_value_that_changes_a_response_reaches_the_decoding_loop(draws, expected):
    params = decoding_params(SAMPLING, BENCHMARK | {"stop": ("Q:",)}, **draws)
    assert params == SamplingParams(**EVERY_JOB, **expected)


def test_a_table_records_everything_but_the_batch_size():
    assert recorded(SAMPLING) | {"batch_size": 5} == SAMPLING
    assert "batch_size" not in recorded(SAMPLING)
