"""Storage of generated tokens without any model; what lies where is in tests/integration/engine."""

import torch

from zerogap.engine.decoder import Capacity
from zerogap.engine.prompt_cache import PromptCache, padded_columns, padded_rows

CAPACITY = Capacity(
    max_rows=6, samples_per_prompt=4, max_new_tokens=40, max_prompts=2, max_prompt_len=5
)


def test_sizes_are_padded_to_few_values():
    assert [padded_rows(n) for n in (1, 8, 9, 33, 64, 65, 129)] == [8, 8, 16, 64, 64, 128, 192]
    assert [padded_columns(n) for n in (1, 32, 33)] == [32, 32, 64]


def test_generated_tokens_are_mapped_once_for_the_largest_batch():
    cache = PromptCache(torch.device("cpu"), mapped=CAPACITY)
    cache.start_prefix(1)
    cache.store_prefix(0, torch.ones(2, 1, 1), torch.ones(2, 1, 1))
    cache.add_questions([1], {0: (torch.ones(1, 2, 1, 1),) * 2}, torch.zeros(1).long().numpy())
    cache.make_room_for_step()
    own = cache.layers[0].generated[0]
    rows, columns = padded_rows(CAPACITY.max_rows), padded_columns(CAPACITY.max_new_tokens)
    assert own.shape == (rows, 2, columns, 1)
    cache.reorder(torch.zeros(CAPACITY.max_rows).long().numpy())
    for _ in range(CAPACITY.max_new_tokens):
        cache.make_room_for_step()
        cache.end_step()
    assert cache.layers[0].generated[0].data_ptr() == own.data_ptr()
