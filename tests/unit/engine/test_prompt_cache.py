"""Storage of keys and values without any model: what lies where after each operation."""

import numpy as np
import pytest
import torch

from zerogap.engine.decoder import Capacity
from zerogap.engine.prompt_cache import PromptCache, padded_columns, padded_rows, row_grid

CPU = torch.device("cpu")
CAPACITY = Capacity(
    max_rows=6, samples_per_prompt=4, max_new_tokens=40, max_prompts=2, max_prompt_len=5
)
ONE_ROW = np.zeros(1, dtype=np.int64)
WITH_AND_WITHOUT_CAPACITY = pytest.mark.parametrize("capacity", [None, CAPACITY])


def keys(*questions: int, length: int = 3) -> torch.Tensor:
    """Keys (q, Hkv 2, S, D 1) of which every entry names its question."""
    values = torch.tensor(questions, dtype=torch.float32)
    return values[:, None, None, None].expand(-1, 2, length, 1).clone()


def filled(capacity: Capacity | None, mapped: Capacity | None = None) -> PromptCache:
    """A cache with a prefix of four tokens and questions 10 and 20, of 3 and 2 tokens."""
    cache = PromptCache(CPU, capacity, mapped)
    cache.start_prefix(4)
    cache.store_prefix(0, torch.ones(2, 4, 1), torch.ones(2, 4, 1))
    cache.add_questions([3, 2], {0: (keys(10, 20), keys(11, 21))}, np.arange(2))
    return cache


def write_step(cache: PromptCache, tokens: list[float]) -> None:
    """What a step stores: one key and value per row."""
    cache.make_room_for_step()
    for store in cache.layers[0].generated:
        store[np.arange(len(tokens)), :, cache.num_generated] = torch.tensor(tokens).float()[
            :, None, None
        ]
    cache.end_step()


def own_keys(cache: PromptCache) -> list[list[float]]:
    own = cache.layers[0].generated[0]
    return [own[row, 0, :length, 0].tolist() for row, length in enumerate(cache.num_generated)]


def row_questions(cache: PromptCache) -> list[float]:
    return cache.layers[0].question[0][cache.row_question, 0, 0, 0].tolist()


def test_with_a_capacity_storage_stays_in_place():
    cache = filled(CAPACITY)
    write_step(cache, [1, 2])
    layer = cache.layers[0]
    stores = (*layer.prefix, *layer.question, *layer.generated)
    addresses = [store.data_ptr() for store in stores]
    cache.reorder(np.array([1, 1, 1]))
    cache.add_questions([1], {0: (keys(30, length=1), keys(31, length=1))}, ONE_ROW)
    for _ in range(30):
        write_step(cache, [1, 2, 3, 4])
    cache.start_prefix(4)
    cache.store_prefix(0, torch.zeros(2, 4, 1), torch.zeros(2, 4, 1))
    assert [
        store.data_ptr() for store in (*layer.prefix, *layer.question, *layer.generated)
    ] == addresses
    assert layer.prefix[0].eq(0).all()


def test_more_questions_than_the_capacity_foresees_enlarge_the_storage():
    cache = filled(CAPACITY)
    assert cache.is_reusable(4)
    cache.add_questions([1], {0: (keys(30, length=1), keys(31, length=1))}, ONE_ROW)
    assert row_questions(cache) == [10, 20, 30]
    assert not cache.is_reusable(4)


@WITH_AND_WITHOUT_CAPACITY
def test_the_grid_lists_the_rows_of_each_question(capacity):
    cache = filled(capacity)
    cache.reorder(np.array([0, 1, 0, 0]))
    row_of_cell, cell_of_row = row_grid(cache)
    width = 4 if capacity else 3
    assert row_of_cell.shape == (2, width)
    assert row_of_cell[0, :3].tolist() == [0, 2, 3]
    assert row_of_cell[1, 0] == 1
    assert cell_of_row.tolist() == [0, width, 1, 2]


def test_sizes_are_padded_to_few_values():
    assert [padded_rows(n) for n in (1, 8, 9, 33, 64, 65, 129)] == [8, 8, 16, 64, 64, 128, 192]
    assert [padded_columns(n) for n in (1, 32, 33)] == [32, 32, 64]


def test_own_tokens_are_mapped_once_for_the_largest_batch():
    cache = filled(None, mapped=CAPACITY)
    write_step(cache, [1, 2])
    own = cache.layers[0].generated[0]
    rows, columns = padded_rows(CAPACITY.max_rows), padded_columns(CAPACITY.max_new_tokens)
    assert own.shape == (rows, 2, columns, 1)
    cache.reorder(np.array([0, 1, 0, 1, 0, 1]))
    for token in range(2, CAPACITY.max_new_tokens + 1):
        write_step(cache, [token] * CAPACITY.max_rows)
    assert cache.layers[0].generated[0].data_ptr() == own.data_ptr()
    assert own_keys(cache)[4] == list(range(1, CAPACITY.max_new_tokens + 1))
