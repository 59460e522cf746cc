"""The kernel behind :func:`zerogap.engine.cpu_kernels.product`, and what attention shares with it.

:func:`tile_products` multiplies a few rows with a block of columns, on AVX-512's dot products of
pairs of bfloat16 values with float32 sums. A row's products do not depend on the other rows.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from zerogap.engine.cpu_kernels_numba import (
    LANES,
    Kernel,
    as_bfloat16,
    silu,
    start_reading,
    vectorise_widely,
)
from zerogap.engine.row_kernels import RowKernel, arrays, rows

ROWS = 6  # of a tile: 24 sums, 4 second factors and a first one fill most of 32 registers
COLUMNS = 64  # of a tile
GATED = COLUMNS // 2  # columns of output of a tile that is half gates and half factors
MAX_TILES = 8  # that are multiplied with a block of columns one after the other


class _BFloat(ir.Type):  # type: ignore[misc]  # llvmlite has no such type
    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


@intrinsic
def tile_products(_, first, starts, second, start, num_pairs, out, ahead):  # type: ignore[no-untyped-def]
    """In compiled code, products (ROWS, COLUMNS) with float32 sums.

    Args:
        first: the factors' rows anywhere in an array, as pairs of bfloat16 in 32 bits.
        starts: (ROWS,) index of each row's first pair.
        second: pairs of the other factor, (num_pairs, COLUMNS) from an index on.
        start: this index.
        num_pairs: how many pairs are multiplied and added up.
        out: float32, or uint16 for bfloat16; two-dimensional, contiguous within a row; written from
            its beginning.
        ahead: index in the other factor from which LANES · num_pairs pairs are prefetched.
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
        halves = ir.VectorType(_BFloat(), LANES)
        rounded = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(halves, [floats]),
            "llvm.x86.avx512bf16.cvtneps2bf16.512",
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
            for r in range(ROWS)
        ]
        column = builder.gep(array(2).data, [arguments[3]])
        next_column = builder.gep(array(2).data, [arguments[6]])
        zeros, undefined = ir.Constant(floats, [0.0] * LANES), ir.Constant(pairs, ir.Undefined)
        registers = range(COLUMNS // LANES)
        sums = [[cgutils.alloca_once_value(builder, zeros) for _ in registers] for _ in range(ROWS)]
        with cgutils.for_range(builder, arguments[4]) as loop:
            start_reading(
                builder, builder.gep(next_column, [builder.mul(loop.index, int64(LANES))])
            )
            line = builder.gep(column, [builder.mul(loop.index, int64(COLUMNS))])
            others = [
                builder.bitcast(
                    builder.load(lanes(builder.gep(line, [int64(LANES * k)]), pairs), align=4),
                    bfloats,
                )
                for k in registers
            ]
            for r in range(ROWS):
                pair = builder.load(builder.gep(row[r], [loop.index]), align=4)
                pair = builder.insert_element(undefined, pair, int32(0))
                pair = builder.shuffle_vector(pair, undefined, ir.Constant(pairs, [0] * LANES))
                pair = builder.bitcast(pair, bfloats)
                for k in registers:
                    added = builder.call(dot, [builder.load(sums[r][k]), pair, others[k]])
                    builder.store(added, sums[r][k])
        out_row = builder.ptrtoint(out_array.data, int64)
        for r in range(ROWS):
            address = builder.inttoptr(out_row, out_array.data.type)
            for k in registers:
                result = builder.load(sums[r][k])
                if out.dtype == types.uint16:
                    result = builder.call(rounded, [result])
                target = lanes(builder.gep(address, [int64(LANES * k)]), result.type)
                builder.store(result, target, align=out.dtype.bitwidth // 8)
            out_row = builder.add(out_row, row_size)
        return context.get_dummy_value()

    return types.void(first, starts, second, start, num_pairs, out, ahead), generate


def num_groups(tiles: int) -> int:
    """Groups of at most MAX_TILES tiles."""
    return -(-tiles // MAX_TILES)


_num_groups = njit(num_groups)


def _product(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.product` for rows of (column blocks, groups of tiles).

    The output (⌈R/ROWS⌉·ROWS, N·COLUMNS) has room for whole tiles; the last tile repeats the last
    row. The groups of a column block follow each other, so that a thread reads the block from
    memory once, and the next block is prefetched meanwhile. With half as many columns of output, a
    block is GATED columns of gates next to as many factors of their silu.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        values, packed, out = arrays(job, described)
        num_pairs, tiles = packed.shape[1], len(out) // ROWS
        groups = _num_groups(tiles)
        value_pairs, packed_pairs = values.view(np.int32), packed.view(np.int32)
        starts, sums = np.empty(ROWS, np.int64), np.empty((ROWS, COLUMNS), np.float32)
        is_gated = out.shape[1] < len(packed) * COLUMNS
        for row in rows(job):
            block, group = row // groups, row % groups
            start = block * num_pairs * COLUMNS
            for tile in range(group * tiles // groups, (group + 1) * tiles // groups):
                for r in range(ROWS):
                    starts[r] = min(tile * ROWS + r, len(values) - 1) * num_pairs
                ahead = start + (COLUMNS + tile * LANES % COLUMNS) * num_pairs
                if is_gated:
                    tile_products(value_pairs, starts, packed_pairs, start, num_pairs, sums, ahead)
                    for r in range(ROWS):
                        line = out[tile * ROWS + r, block * GATED : (block + 1) * GATED]
                        for column in range(GATED):
                            line[column] = as_bfloat16(
                                silu(sums[r, column]) * sums[r, GATED + column]
                            )
                else:
                    lines = out[tile * ROWS :, block * COLUMNS :]
                    tile_products(value_pairs, starts, packed_pairs, start, num_pairs, lines, ahead)

    return kernel


product = RowKernel(_product, min_rows_per_piece=1)
