"""What neuron localisation costs: many greedy decodes in the batch that fits.

The search (:mod:`zerogap.strategies.neuron_localisation`) scores the leaked questions' responses
once with each model. Then it decodes some of these questions with each of the two models: once
unpatched, and once for every group of neurons together with the base model, which is computed up
to the group's layer. The weights of two models leave little memory for the batch, and a step takes
about as long for ten rows as for thirty, so the time is that of the steps and not of the tokens.
Shards divide the groups; each shard scores the responses and decodes unpatched itself.
"""

import math

from zerogap.config.sampling import NeuronLocalisation, Sampling
from zerogap.families import ModelSize
from zerogap.pipeline.rates import Work
from zerogap.pipeline.text_lengths import TextLengths

NUM_MODELS = 2  # whose weights, keys and values are on the GPU: the patched model and the base
# As in zerogap.engine.sampler.auto_batch_size, which decides the batch of the job.
MEMORY_FRACTION = 0.8
MAX_BATCH_SIZE = 1024
CUDA_BYTES = 1e9  # of the CUDA context and libraries
LONGEST_TEXT = 2.5  # length of the longest of a hundred texts, relative to the mean


def localisation_work(
    localisation: NeuronLocalisation,
    num_leaked: int,
    size: ModelSize,
    text: TextLengths,
    sampling: Sampling,
    gpu_memory: float,
) -> Work:
    """The tokens and decoding steps of the search in one setting, in all shards together.

    Args:
        localisation: the configuration's section.
        num_leaked: leaked questions of the benchmark.
        size: the model's.
        text: lengths of the benchmark's texts.
        sampling: the configuration's section.
        gpu_memory: bytes of the device.
    """
    num_questions = min(localisation.num_questions, num_leaked)
    rows = min(num_questions, batch_rows(size, text, sampling, gpu_memory))
    # The last layer has no groups.
    num_groups = [math.ceil(width / localisation.group_size) for width in size.widths[:-1]]
    unpatched, patched = 2 * localisation.num_shards, 2 * sum(num_groups)
    computed_layers = sum(layer * count for layer, count in enumerate(num_groups, start=1))
    num_passes = unpatched + patched + 2 * computed_layers / len(size.widths)
    scored = 2 * localisation.num_shards * num_leaked * (text.shots + text.question + text.response)
    # The base model reads the shots once for all patches.
    num_prefixes = unpatched + patched + localisation.num_shards
    prompts = num_prefixes * text.shots + num_passes * num_questions * text.question
    return Work(
        tokens={"prefill": scored + prompts},
        decode_steps=num_passes * decode_steps(num_questions, rows, text, sampling.max_new_tokens),
        decoded=num_passes * num_questions * text.response,
        batch_rows=rows,
    )


def batch_rows(size: ModelSize, text: TextLengths, sampling: Sampling, gpu_memory: float) -> int:
    """How many responses fit next to the weights, at least one."""
    if sampling.batch_size != "auto":
        return sampling.batch_size
    bytes_per_number = 4 if sampling.dtype == "float32" else 2
    weights = NUM_MODELS * size.parameters * bytes_per_number
    free_bytes = MEMORY_FRACTION * (gpu_memory - CUDA_BYTES - weights)
    tokens_per_row = sampling.max_new_tokens + LONGEST_TEXT * text.question
    bytes_per_token = NUM_MODELS * size.kv_elements * bytes_per_number
    fitting = int(free_bytes / (tokens_per_row * bytes_per_token))
    return max(1, min(MAX_BATCH_SIZE, fitting))


def decode_steps(num_questions: int, rows: int, text: TextLengths, max_new_tokens: int) -> float:
    """Steps until all questions are answered, if a question enters as soon as a row is free."""
    longest = min(max_new_tokens, LONGEST_TEXT * text.response)
    return num_questions * text.response / rows + longest - text.response
