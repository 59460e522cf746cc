"""The kernel behind :func:`zerogap.engine.cpu_kernels.part_attention`: attention in one pass.

A tile of queries is multiplied with all of its keys, the scores become weights, and these are
multiplied with the values. Scores and weights of a tile stay in the processor's cache, and scores
are never rounded to bfloat16, as they are between two of PyTorch's products.

Both products are :func:`~zerogap.engine.cpu_products_numba.tile_products`, which reads the second
factor in pairs, so that keys and values are packed first.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from zerogap.engine.cpu_kernels_numba import (
    LANES,
    SMALLEST,
    Kernel,
    as_bfloat16,
    as_ordered,
    exp,
    vectorise_widely,
)
from zerogap.engine.cpu_products_numba import COLUMNS, ROWS, tile_products
from zerogap.engine.row_kernels import RowKernel, arrays, rows


@RowKernel
def pack(described: str) -> Kernel:
    """Keys and values (B·H, K, D) in pairs, for rows of (B·H, N): N blocks of COLUMNS keys.

    Keys become (B·H, N, D/2, COLUMNS, 2), which pairs values of a key; values become
    (B·H, D/COLUMNS, N·COLUMNS/2, COLUMNS, 2), which pairs keys. What is not visible is 0.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        key, value, num_keys, packed_key, packed_value = arrays(job, described)
        batch_heads, _, size = key.shape
        heads, blocks = batch_heads // len(num_keys), packed_key.shape[1]
        key_pairs, packed_pairs = key.view(np.int32), packed_key.view(np.int32)
        no_value = np.zeros(size, np.uint16)
        for row in rows(job):
            head, first = row // blocks, row % blocks * COLUMNS
            visible = min(num_keys[head // heads] - first, COLUMNS)
            if visible < COLUMNS or size % COLUMNS:
                packed_key[head, row % blocks] = 0
                packed_value[head, :, first // 2 : (first + COLUMNS) // 2] = 0
            for k in range(visible):
                for pair in range(size // 2):
                    packed_pairs[head, row % blocks, pair, k] = key_pairs[head, first + k, pair]
            for k in range(0, visible, 2):
                one = value[head, first + k]
                other = value[head, first + k + 1] if k + 1 < visible else no_value
                for part in range(packed_value.shape[1]):
                    start = part * COLUMNS
                    pairs = packed_value[head, part, (first + k) // 2]
                    for column in range(min(COLUMNS, size - start)):
                        pairs[2 * column] = one[start + column]
                        pairs[2 * column + 1] = other[start + column]

    return kernel


def _as_positive_bfloat16_python(value: Any) -> Any:
    """The 16 bits of a float32 of at least 0, rounded to bfloat16; half is rounded up."""
    bits = np.uint32(np.float32(value).view(np.uint32) + np.uint32(0x8000))
    return np.uint16(bits >> np.uint32(16))


_as_positive_bfloat16 = njit(_as_positive_bfloat16_python)


@RowKernel
def part_attention(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.part_attention` for rows of (B·H, tiles).

    A tile that is not full repeats its last query. NaN among the scores reaches the sum through the
    weights.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        (
            query,
            row_of_cell,
            num_rows,
            packed_key,
            packed_value,
            num_keys,
            out,
            log_sum,
        ) = arrays(job, described)
        (_, heads, group, _), most_queries = query.shape, out.shape[1]
        _, blocks, size_pairs, _ = packed_key.shape
        parts, key_pairs = packed_value.shape[1], packed_value.shape[2]
        tiles = -(-most_queries // ROWS)
        query_pairs = query.view(np.int32)
        second_keys, second_values = packed_key.view(np.int32), packed_value.view(np.int32)
        scores = np.empty((ROWS, blocks * COLUMNS), np.float32)
        weights = np.empty((ROWS, blocks * COLUMNS), np.uint16)
        score_bits, weight_pairs = scores.view(np.int32), weights.view(np.int32)
        weight_starts = np.arange(ROWS) * key_pairs
        query_starts, index = np.empty(ROWS, np.int64), np.empty(ROWS, np.int64)
        sums, scale = np.empty((ROWS, COLUMNS), np.float32), np.empty(ROWS, np.float32)
        for row in rows(job):
            head, first = row // tiles, row % tiles * ROWS
            entry = head // heads
            last = num_rows[entry] * group - 1
            if first > last:
                continue
            visible = num_keys[entry]
            padded = -(-visible // LANES) * LANES
            for r in range(ROWS):
                index[r] = min(first + r, last)
                query_row = row_of_cell[entry, index[r] // group] * heads + head % heads
                query_starts[r] = (query_row * group + index[r] % group) * size_pairs
            for block in range(-(-visible // COLUMNS)):
                start = (head * blocks + block) * size_pairs * COLUMNS
                block_scores = scores[:, block * COLUMNS :]
                ahead = start + size_pairs * COLUMNS
                tile_products(
                    query_pairs, query_starts, second_keys, start, size_pairs, block_scores, ahead
                )
            for r in range(ROWS):
                scores[r, visible:padded] = -np.inf
                highest_bits = as_ordered(np.int32(SMALLEST))
                for bits in score_bits[r, :visible]:
                    highest_bits = max(highest_bits, as_ordered(bits))
                highest = np.int32(as_ordered(highest_bits)).view(np.float32)
                row_scores, row_weights = scores[r, :padded], weights[r, :padded]
                total = np.float32(0)
                for key in range(padded):
                    weight = exp(row_scores[key] - highest)
                    row_weights[key] = _as_positive_bfloat16(weight)
                    total += weight
                scale[r] = np.float32(1) / total
                log_sum[head, index[r]] = highest + math.log(total)
            for part in range(parts):
                start = (head * parts + part) * key_pairs * COLUMNS
                ahead = start + key_pairs * COLUMNS
                tile_products(
                    weight_pairs, weight_starts, second_values, start, padded // 2, sums, ahead
                )
                for r in range(ROWS):
                    line = out[head, index[r], part * COLUMNS : (part + 1) * COLUMNS]
                    for column in range(len(line)):
                        line[column] = as_bfloat16(sums[r, column] * scale[r])

    return kernel
