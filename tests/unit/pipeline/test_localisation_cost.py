from dataclasses import replace

import pytest

from zerogap.engine import sampler
from zerogap.families import ModelSize, published_size
from zerogap.pipeline import localisation_cost
from zerogap.pipeline.localisation_cost import batch_rows, decode_steps, localisation_work
from zerogap.pipeline.rates import GPUS, Rates
from zerogap.pipeline.text_lengths import TextLengths

TEXT = TextLengths(shots=800, question=80, response=90, instruction=0, characters_per_token=3)
A100 = GPUS["a100-80gb"].memory
SMALL = ModelSize(10**9, 0, (1000, 1000, 1000), 10_000)


def test_the_plan_uses_the_constants_of_the_sampler():
    """It does not import them, because the sampler loads PyTorch."""
    assert localisation_cost.MEMORY_FRACTION == sampler.MEMORY_FRACTION
    assert sampler.MAX_BATCH_SIZE["cuda"] == localisation_cost.MAX_BATCH_SIZE


def test_the_steps_are_those_of_a_batch_that_is_always_full():
    assert decode_steps(100, 1, TEXT, 90) == 100 * 90
    assert decode_steps(100, 10, TEXT, 90) == 900
    # All at once: the longest response, here cut at 200 tokens.
    assert decode_steps(100, 100, TEXT, 200) == 200


def test_groups_times_questions_times_both_models(paper):
    changes = {"group_size": 300, "num_questions": 50, "num_shards": 1}
    config = paper(**{f"neuron_localisation__{key}": value for key, value in changes.items()})
    work = localisation_work(config.neuron_localisation, 660, SMALL, TEXT, config.sampling, A100)
    num_groups = 2 * 4  # two layers of 1,000 neurons; the last layer has none
    base_passes = 4 * 1 / 3 + 4 * 2 / 3  # one of three layers for a half of the groups, or two
    num_passes = 2 * (1 + num_groups + base_passes)
    assert work.batch_rows == 50
    assert work.decoded == num_passes * 50 * 90
    assert work.decode_steps == pytest.approx(num_passes * decode_steps(50, 50, TEXT, 256))
    scored = 2 * 660 * (800 + 80 + 90)
    shots = (2 + 2 * num_groups) * 800 + 800  # the base model reads them once for all groups
    assert work.tokens["prefill"] == scored + shots + num_passes * 50 * 80


def test_the_batch_is_what_fits_next_to_the_weights(paper):
    sampling = paper().sampling
    pythia = published_size("EleutherAI/pythia-12b")
    rows = batch_rows(pythia, TEXT, sampling, A100)
    assert 40 < rows < 50
    assert batch_rows(pythia, TEXT, sampling, 2 * A100) > 2 * rows
    doubled = replace(pythia, kv_elements=2 * pythia.kv_elements)
    assert batch_rows(doubled, TEXT, sampling, A100) == pytest.approx(rows / 2, abs=1)
    assert batch_rows(pythia, TEXT, sampling, 10e9) == 1  # does not fit at all
    stated = sampling.model_copy(update={"batch_size": 7})
    assert batch_rows(pythia, TEXT, stated, A100) == 7


def test_a_smaller_batch_takes_longer_although_the_tokens_are_the_same(paper):
    config, size = paper(), published_size("EleutherAI/pythia-12b")
    costs = []
    for memory in (0.65 * A100, 2 * A100):
        work = localisation_work(
            config.neuron_localisation, 660, size, TEXT, config.sampling, memory
        )
        costs.append((work.num_tokens, Rates().nominal_seconds(work, "pythia", size)))
    assert costs[0][0] == costs[1][0]
    assert costs[0][1] > 1.5 * costs[1][1]
