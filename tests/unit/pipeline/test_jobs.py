from collections import Counter

import pytest

from zerogap.pipeline import jobs, targets

pytestmark = pytest.mark.usefixtures("in_checkout")


def test_a_localisation_in_shards_is_that_many_jobs_and_a_merge(paper):
    whole, sharded = (
        Counter(job.rule for job in jobs.all_jobs(config))
        for config in (paper(neuron_localisation__num_shards=1), paper())
    )
    assert (whole["localise_neurons"], whole["merge_neurons"]) == (6, 0)
    assert (sharded["localise_neurons"], sharded["merge_neurons"]) == (24, 6)
    assert whole["sample_responses"] == sharded["sample_responses"]


def test_the_time_of_a_localisation_is_that_of_its_shards(paper):
    config = paper(neuron_localisation__num_shards=2)
    timed = next(timed for timed in targets.timed_jobs(config) if timed.job.rule == jobs.LOCALISE)
    assert timed.timings == [
        f"results/paper/timings/llama2/gsm8k/localise_neurons.shard-{shard}-of-2.tsv"
        for shard in range(2)
    ]
