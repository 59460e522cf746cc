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


@WITH_AND_WITHOUT_CAPACITY
def test_rows_keep_their_question_and_own_tokens_when_they_split_move_and_leave(capacity):
    cache = filled(capacity)
    write_step(cache, [1, 2])
    cache.reorder(np.array([0, 1, 0]))  # row 0 splits
    write_step(cache, [3, 4, 5])
    assert own_keys(cache) == [[1, 3], [2, 4], [1, 5]]
    cache.reorder(np.array([2, 1]))  # row 0 leaves, row 2 takes its number
    assert own_keys(cache) == [[1, 5], [2, 4]]
    assert row_questions(cache) == [10, 20]


@WITH_AND_WITHOUT_CAPACITY
def test_a_new_row_without_storage_takes_the_number_of_a_row_that_left(capacity):
    cache = filled(capacity)
    write_step(cache, [1, 2])
    cache.add_questions([1], {0: (keys(30, length=1), keys(31, length=1))}, ONE_ROW)
    cache.reorder(np.array([2, 0]))  # row 1 leaves; the new row 2 has no storage yet
    assert row_questions(cache) == [30, 10]
    assert own_keys(cache) == [[], [1]]


@WITH_AND_WITHOUT_CAPACITY
def test_a_question_enters_after_the_current_rows_and_changes_places_with_them(capacity):
    cache = filled(capacity)
    write_step(cache, [1, 2])
    cache.reorder(np.array([1]))  # question 10 has no row left
    cache.add_questions([1], {0: (keys(30, length=1), keys(31, length=1))}, ONE_ROW)
    write_step(cache, [3, 4])
    assert row_questions(cache) == [20, 30]
    assert own_keys(cache) == [[2, 3], [4]]
    assert cache.question_length[cache.row_question].tolist() == [2, 1]
    cache.reorder(np.array([1, 0]))
    assert row_questions(cache) == [30, 20]
    assert own_keys(cache) == [[4], [2, 3]]


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
def test_rows_may_start_behind_the_same_question(capacity):
    cache = filled(capacity)
    cache.reorder(np.array([1]))
    new = keys(30, 40, length=2)
    cache.add_questions([2, 1], {0: (new, new)}, np.array([1, 0, 1]))
    write_step(cache, [1, 2, 3, 4])
    assert row_questions(cache) == [20, 40, 30, 40]
    assert cache.question_length[cache.row_question].tolist() == [2, 1, 2, 1]
    assert own_keys(cache) == [[1], [2], [3], [4]]


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


def test_own_tokens_laid_out_by_token_have_the_same_shape_and_content():
    by_head, by_token = filled(None), filled(None)
    by_token.layers[0].step_kernel = "cpu"
    for cache in (by_head, by_token):
        for token in range(40):  # beyond the first allocation
            write_step(cache, [token, token + 100])
    assert own_keys(by_head) == own_keys(by_token)
    own = by_token.layers[0].generated[0]
    assert own.shape == by_head.layers[0].generated[0].shape
    assert own.transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("order", [[0, 1, 0], [2, 1], [2, 0, 1], [1, 1, 2, 2]])
def test_rows_laid_out_by_token_move_also_where_one_takes_the_place_of_another(order):
    cache = filled(None)
    cache.layers[0].step_kernel = "cpu"
    cache.reorder(np.array([0, 1, 0]))
    write_step(cache, [1, 2, 3])
    write_step(cache, [4, 5, 6])
    before = own_keys(cache)
    cache.reorder(np.array(order))
    assert own_keys(cache) == [before[row] for row in order]
    assert (
        cache.layers[0].generated[1][: len(order)].equal(cache.layers[0].generated[0][: len(order)])
    )


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
