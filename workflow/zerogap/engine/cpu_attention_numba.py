"""The kernel behind :func:`zerogap.engine.cpu_kernels.part_attention`: attention in one pass.

A tile of queries is multiplied with all of its keys, the scores become weights, and these are
multiplied with the values. Scores and weights of a tile stay in the processor's cache, and scores
are never rounded to bfloat16, as they are between two of PyTorch's products.

Both products are :func:`_tile_products`, on AVX-512's dot products of pairs of bfloat16 values with
float32 sums. It reads the second factor in pairs of rows, so that keys and values are packed first.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from zerogap.engine.cpu_kernels_numba import Kernel, as_bfloat16, exp, vectorise_widely
from zerogap.engine.row_kernels import RowKernel, arrays, rows

QUERIES = 6  # of a tile: 24 sums, 4 second factors and a first one fill most of 32 registers
COLUMNS = 64  # of a product: keys, or values of a key
LANES = 16  # float32 values in a register


class _BFloat(ir.Type):  # type: ignore[misc]  # llvmlite has no such type
    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


@intrinsic
def _tile_products(_, first, starts, second, start, num_pairs, out):  # type: ignore[no-untyped-def]
    """In compiled code, products (QUERIES, COLUMNS) in float32.

    Args:
        first: the factors' rows anywhere in an array, as pairs of bfloat16 in 32 bits.
        starts: (QUERIES,) index of each row's first pair.
        second: pairs of the other factor, (num_pairs, COLUMNS) from an index on.
        start: this index.
        num_pairs: how many pairs are multiplied and added up.
        out: two-dimensional, contiguous within a row; written from its beginning.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        int64, int32 = ir.IntType(64), ir.IntType(32)
        floats, pairs = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(int32, LANES)
        bfloats = ir.VectorType(_BFloat(), 2 * LANES)
        dot = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(floats, [floats, bfloats, bfloats]),
            "llvm.x86.avx512bf16.dpbf16ps.512",
        )

        def array(position: int) -> Any:
            made = context.make_array(signature.args[position])
            return made(context, builder, arguments[position])

        def lanes(address: Any, kind: Any) -> Any:
            return builder.bitcast(address, kind.as_pointer())

        row_starts, out_array = array(1).data, array(5)
        row_size = builder.extract_value(out_array.strides, 0)
        row = [
            builder.gep(array(0).data, [builder.load(builder.gep(row_starts, [int64(r)]))])
            for r in range(QUERIES)
        ]
        column = builder.gep(array(2).data, [arguments[3]])
        zeros, undefined = ir.Constant(floats, [0.0] * LANES), ir.Constant(pairs, ir.Undefined)
        registers = range(COLUMNS // LANES)
        sums = [
            [cgutils.alloca_once_value(builder, zeros) for _ in registers] for _ in range(QUERIES)
        ]
        with cgutils.for_range(builder, arguments[4]) as loop:
            line = builder.gep(column, [builder.mul(loop.index, int64(COLUMNS))])
            others = [
                builder.bitcast(
                    builder.load(lanes(builder.gep(line, [int64(LANES * k)]), pairs), align=4),
                    bfloats,
                )
                for k in registers
            ]
            for r in range(QUERIES):
                pair = builder.load(builder.gep(row[r], [loop.index]), align=4)
                pair = builder.insert_element(undefined, pair, int32(0))
                pair = builder.shuffle_vector(pair, undefined, ir.Constant(pairs, [0] * LANES))
                pair = builder.bitcast(pair, bfloats)
                for k in registers:
                    added = builder.call(dot, [builder.load(sums[r][k]), pair, others[k]])
                    builder.store(added, sums[r][k])
        out_row = builder.ptrtoint(out_array.data, int64)
        for r in range(QUERIES):
            address = builder.inttoptr(out_row, out_array.data.type)
            for k in registers:
                target = lanes(builder.gep(address, [int64(LANES * k)]), floats)
                builder.store(builder.load(sums[r][k]), target, align=4)
            out_row = builder.add(out_row, row_size)
        return context.get_dummy_value()

    return types.void(first, starts, second, start, num_pairs, out), generate


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


def _as_ordered_python(bits: Any) -> Any:
    """Map the bits of a float32 to an integer in the same order, and back."""
    signed = np.int32(bits)
    return np.int32(signed ^ np.int32((signed >> np.int32(31)) & np.int32(0x7FFFFFFF)))


_as_ordered = njit(_as_ordered_python)


@RowKernel
def part_attention(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.part_attention` for rows of (B·H, tiles).

    A tile that is not full repeats its last query. The largest score is found among the scores'
    bits, since a loop with a running maximum of floats is not vectorised: it would have to treat
    NaN. As bits, NaN is the largest; it reaches the sum through the weights.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        query, packed_key, packed_value, num_keys, num_queries, out, log_sum = arrays(
            job, described
        )
        batch_heads, most_queries, _ = query.shape
        _, blocks, size_pairs, _ = packed_key.shape
        parts, key_pairs = packed_value.shape[1], packed_value.shape[2]
        heads, tiles = batch_heads // len(num_keys), -(-most_queries // QUERIES)
        query_pairs = query.view(np.int32)
        second_keys, second_values = packed_key.view(np.int32), packed_value.view(np.int32)
        scores = np.empty((QUERIES, blocks * COLUMNS), np.float32)
        weights = np.empty((QUERIES, blocks * COLUMNS), np.uint16)
        score_bits, weight_pairs = scores.view(np.int32), weights.view(np.int32)
        weight_starts = np.arange(QUERIES) * key_pairs
        query_starts, index = np.empty(QUERIES, np.int64), np.empty(QUERIES, np.int64)
        sums, scale = np.empty((QUERIES, COLUMNS), np.float32), np.empty(QUERIES, np.float32)
        for row in rows(job):
            head, first = row // tiles, row % tiles * QUERIES
            last = num_queries[head // heads] - 1
            if first > last:
                continue
            visible = num_keys[head // heads]
            padded = -(-visible // LANES) * LANES
            for r in range(QUERIES):
                index[r] = min(first + r, last)
                query_starts[r] = (head * most_queries + index[r]) * size_pairs
            for block in range(-(-visible // COLUMNS)):
                start = (head * blocks + block) * size_pairs * COLUMNS
                block_scores = scores[:, block * COLUMNS :]
                _tile_products(
                    query_pairs, query_starts, second_keys, start, size_pairs, block_scores
                )
            for r in range(QUERIES):
                scores[r, visible:padded] = -np.inf
                largest_bits = _as_ordered(np.int32(-1))  # the smallest: a NaN
                for bits in score_bits[r, :visible]:
                    largest_bits = max(largest_bits, _as_ordered(bits))
                largest = np.int32(_as_ordered(largest_bits)).view(np.float32)
                row_scores, row_weights = scores[r, :padded], weights[r, :padded]
                total = np.float32(0)
                for key in range(padded):
                    weight = exp(row_scores[key] - largest)
                    row_weights[key] = _as_positive_bfloat16(weight)
                    total += weight
                scale[r] = np.float32(1) / total
                log_sum[head, index[r]] = largest + math.log(total)
            for part in range(parts):
                start = (head * parts + part) * key_pairs * COLUMNS
                _tile_products(weight_pairs, weight_starts, second_values, start, padded // 2, sums)
                for r in range(QUERIES):
                    line = out[head, index[r], part * COLUMNS : (part + 1) * COLUMNS]
                    for column in range(len(line)):
                        line[column] = as_bfloat16(sums[r, column] * scale[r])

    return kernel
