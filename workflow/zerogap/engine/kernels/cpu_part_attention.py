"""Attention to a part of the keys in one pass, on a CPU with AVX-512's dot products (numba).

A tile of queries is multiplied with all of its keys, the scores become weights, and these are
multiplied with the values. Scores and weights of a tile stay in the processor's cache, and scores
are never rounded to bfloat16, as they are between two of PyTorch's products.

Both products are :func:`~zerogap.engine.kernels.cpu_products.tile_products`, which reads the second
factor in pairs, so that keys and values are packed first.
"""

import functools
import math
from typing import Any

import numpy as np
import torch
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from zerogap.engine.kernels.cpu_products import COLUMNS, ROWS, tile_products
from zerogap.engine.kernels.cpu_rows import Kernel, as_bfloat16, vectorise_widely
from zerogap.engine.kernels.row_kernels import RowKernel, arrays, rows
from zerogap.engine.kernels.vector_code import FLOAT, INT64, LANES, WideVectors, pointer


def part_attention(
    query: Tensor,
    row_of_cell: Tensor,
    num_rows: Tensor,
    key: Tensor,
    value: Tensor,
    num_keys: Tensor,
) -> tuple[Tensor, Tensor]:
    """:func:`zerogap.engine.kernels.attention_parts.part_attention` in bfloat16, for an even D."""
    batch, heads, most_keys, size = key.shape
    group, batch_heads = query.shape[2], batch * heads
    blocks, parts = -(-most_keys // COLUMNS), -(-size // COLUMNS)
    packed_key = key.new_empty(batch_heads, blocks, size // 2, 2 * COLUMNS)
    packed_value = key.new_empty(batch_heads, parts, blocks * COLUMNS // 2, 2 * COLUMNS)
    flat = [tensor.reshape(batch_heads, -1, size) for tensor in (key, value)]
    _pack_kernel(batch_heads * blocks, *flat, num_keys, packed_key, packed_value)
    num_queries = row_of_cell.shape[1] * group
    out = query.new_empty(batch, heads, num_queries, size)
    log_sum = query.new_empty(batch, heads, num_queries, dtype=torch.float32)
    tiles = batch_heads * -(-num_queries // ROWS)
    tensors = query, row_of_cell, num_rows, packed_key, packed_value, num_keys
    _part_attention_kernel(tiles, *tensors, out.flatten(0, 1), log_sum.flatten(0, 1))
    return out, log_sum


@RowKernel
def _pack_kernel(described: str) -> Kernel:
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


@intrinsic
def _tile_weights(_, scores, num_keys, weights, highest, totals):  # type: ignore[no-untyped-def]
    """In compiled code, each line's weights exp(score - highest) and their sum before rounding.

    The lines are computed in turn, so that no step waits for the one before.

    Args:
        scores: (ROWS, ≥ num_keys) in float32.
        num_keys: a multiple of LANES; a score of -inf has the weight 0.
        weights: (ROWS, ≥ num_keys) bits of bfloat16, to be written.
        highest: (ROWS,) in float32, to be written; NaN may be passed over.
        totals: (ROWS,) in float32, to be written; NaN if any score is NaN.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = functools.partial(pointer, context, builder, signature, arguments)
        vectors, lines = WideVectors(builder), range(ROWS)
        num_vectors = builder.sdiv(arguments[1], INT64(LANES))
        tops = [vectors.variable(vectors.constant(-math.inf)) for _ in lines]
        with cgutils.for_range(builder, num_vectors) as loop:
            first = builder.mul(loop.index, INT64(LANES))
            for line, top in zip(lines, tops, strict=True):
                line_scores = vectors.load(at(0, INT64(line), first))
                builder.store(vectors.larger(line_scores, builder.load(top)), top)
        splat_tops = []
        for line, top in zip(lines, tops, strict=True):
            name = f"vector.reduce.fmax.v{LANES}f32"
            largest = vectors.call(name, builder.load(top), kind=FLOAT)
            builder.store(largest, at(3, INT64(line)))
            splat_tops.append(vectors.splat(largest))
        sums = [vectors.variable(vectors.constant(0.0)) for _ in lines]
        with cgutils.for_range(builder, num_vectors) as loop:
            first = builder.mul(loop.index, INT64(LANES))
            for line, top, total in zip(lines, splat_tops, sums, strict=True):
                line_scores = vectors.load(at(0, INT64(line), first))
                weight = vectors.exponential(builder.fsub(line_scores, top))
                builder.store(builder.fadd(builder.load(total), weight), total)
                vectors.store_rounded(weight, at(2, INT64(line), first))
        for line, total in zip(lines, sums, strict=True):
            builder.store(vectors.sum(builder.load(total)), at(4, INT64(line)))
        return context.get_dummy_value()

    return types.void(scores, num_keys, weights, highest, totals), generate


@RowKernel
def _part_attention_kernel(described: str) -> Kernel:
    """:func:`part_attention` for rows of (B·H, tiles).

    A tile that is not full repeats its last query. NaN among the scores reaches the sum through the
    weights.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        query, row_of_cell, num_rows, packed_key, packed_value, num_keys, out, log_sum = arrays(
            job, described
        )
        (_, heads, group, _), most_queries = query.shape, out.shape[1]
        _, blocks, size_pairs, _ = packed_key.shape
        parts, key_pairs = packed_value.shape[1], packed_value.shape[2]
        tiles = -(-most_queries // ROWS)
        query_pairs = query.view(np.int32)
        second_keys, second_values = packed_key.view(np.int32), packed_value.view(np.int32)
        scores = np.empty((ROWS, blocks * COLUMNS), np.float32)
        weights = np.empty((ROWS, blocks * COLUMNS), np.uint16)
        weight_pairs = weights.view(np.int32)
        weight_starts = np.arange(ROWS) * key_pairs
        query_starts, index = np.empty(ROWS, np.int64), np.empty(ROWS, np.int64)
        sums, scale = np.empty((ROWS, COLUMNS), np.float32), np.empty(ROWS, np.float32)
        highest, totals = np.empty(ROWS, np.float32), np.empty(ROWS, np.float32)
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
                ahead = start + size_pairs * COLUMNS
                factors = query_pairs, query_starts, second_keys, start, size_pairs
                tile_products(*factors, scores, 0, block * COLUMNS, ahead)
            for r in range(ROWS):
                scores[r, visible:padded] = -np.inf
            _tile_weights(scores, padded, weights, highest, totals)
            for r in range(ROWS):
                scale[r] = np.float32(1) / totals[r]
                log_sum[head, index[r]] = highest[r] + math.log(totals[r])
            for part in range(parts):
                start = (head * parts + part) * key_pairs * COLUMNS
                ahead = start + key_pairs * COLUMNS
                factors = weight_pairs, weight_starts, second_values, start, padded // 2
                tile_products(*factors, sums, 0, 0, ahead)
                for r in range(ROWS):
                    line = out[head, index[r], part * COLUMNS : (part + 1) * COLUMNS]
                    for column in range(len(line)):
                        line[column] = as_bfloat16(sums[r, column] * scale[r])

    return kernel
