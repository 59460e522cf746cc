"""Products with packed weights in bfloat16, on a CPU with AVX-512's dot products (numba).

:func:`tile_products` multiplies a few rows with a block of columns, on AVX-512's dot products of
pairs of bfloat16 values with float32 sums. A row's products do not depend on the other rows.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor, nn

from zerogap.engine.kernels.cpu_rows import Kernel, vectorise_widely
from zerogap.engine.kernels.row_kernels import RowKernel, arrays, rows
from zerogap.engine.kernels.vector_code import (
    INT32,
    INT64,
    LANES,
    BFloat,
    WideVectors,
    pointer,
    start_reading,
)
from zerogap.engine.memory import Storage

ROWS = 6  # of a tile: 24 sums, 4 second factors and a first one fill most of 32 registers
COLUMNS = 64  # of a tile
GATED = COLUMNS // 2  # columns of output of a tile that is half gates and half factors
MAX_TILES = 8  # that are multiplied with a block of columns one after the other


def _tile_intrinsic(combined: Callable[[WideVectors, Any, list[Any]], list[Any]]) -> Any:
    """A function that multiplies a tile and stores what `combined` makes of a row's sums."""

    def products(_, first, starts, second, start, num_pairs, out, row, column, ahead):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            vectors = WideVectors(builder)
            store = vectors.store if out.dtype == types.float32 else vectors.store_rounded
            for r, sums in enumerate(_tile_sums(context, builder, signature, arguments)):
                for k, vector in enumerate(combined(vectors, builder, sums)):
                    at = (
                        builder.add(arguments[6], INT64(r)),
                        builder.add(arguments[7], INT64(LANES * k)),
                    )
                    store(vector, pointer(context, builder, signature, arguments, 5, *at))
            return context.get_dummy_value()

        arguments = first, starts, second, start, num_pairs, out, row, column, ahead
        return types.void(*arguments), generate

    return intrinsic(products)


def _gated(vectors: WideVectors, builder: Any, sums: list[Any]) -> list[Any]:
    """silu(gates) * factors, of half a row's sums each."""
    out = []
    for gate, factor in zip(sums[: GATED // LANES], sums[GATED // LANES :], strict=True):
        falling = vectors.exponential(builder.fneg(gate))
        silu = builder.fdiv(gate, builder.fadd(vectors.constant(1.0), falling))
        out.append(builder.fmul(silu, factor))
    return out


def _tile_sums(context: Any, builder: Any, signature: Any, arguments: Any) -> list[list[Any]]:
    """Generates a tile's products as vectors, (ROWS, COLUMNS / LANES)."""

    def flat(position: int, index: Any) -> Any:
        """Address of an array's element, counted as if it had one dimension."""
        array = context.make_array(signature.args[position])
        return builder.gep(array(context, builder, arguments[position]).data, [index])

    start, num_pairs, ahead = arguments[3], arguments[4], arguments[8]
    vectors, pairs = WideVectors(builder), ir.VectorType(INT32, LANES)
    bfloats, undefined = ir.VectorType(BFloat(), 2 * LANES), ir.Constant(pairs, ir.Undefined)
    row = [flat(0, builder.load(flat(1, INT64(r)))) for r in range(ROWS)]
    column, next_column = flat(2, start), flat(2, ahead)
    registers = range(COLUMNS // LANES)
    zeros = vectors.constant(0.0)
    sums = [[vectors.variable(zeros) for _ in registers] for _ in range(ROWS)]
    with cgutils.for_range(builder, num_pairs) as loop:
        read_ahead = builder.gep(next_column, [builder.mul(loop.index, INT64(LANES))])
        start_reading(builder, read_ahead)
        line = builder.gep(column, [builder.mul(loop.index, INT64(COLUMNS))])
        others = []
        for k in registers:
            address = builder.gep(line, [INT64(LANES * k)])
            loaded = builder.load(builder.bitcast(address, pairs.as_pointer()), align=4)
            others.append(builder.bitcast(loaded, bfloats))
        for r in range(ROWS):
            pair = builder.load(builder.gep(row[r], [loop.index]), align=4)
            pair = builder.insert_element(undefined, pair, INT32(0))
            pair = builder.shuffle_vector(pair, undefined, ir.Constant(pairs, [0] * LANES))
            pair = builder.bitcast(pair, bfloats)
            for k in registers:
                name = "x86.avx512bf16.dpbf16ps.512"
                added = vectors.call(name, builder.load(sums[r][k]), pair, others[k])
                builder.store(added, sums[r][k])
    return [[builder.load(total) for total in line] for line in sums]


# Products (ROWS, COLUMNS) with float32 sums, in compiled code. Arguments:
#     first: the factors' rows anywhere in an array, as pairs of bfloat16 in 32 bits.
#     starts: (ROWS,) index of each row's first pair.
#     second: pairs of the other factor, (num_pairs, COLUMNS) from an index on.
#     start: this index.
#     num_pairs: how many pairs are multiplied and added up.
#     out: (≥ ROWS, ≥ COLUMNS) in float32, or uint16 for bfloat16; contiguous.
#     row: the first one of `out` to be written.
#     column: the first one of `out` to be written.
#     ahead: index in the other factor from which LANES · num_pairs pairs are prefetched.
tile_products = _tile_intrinsic(lambda vectors, builder, sums: sums)
# The same for half as many columns of output: silu(gates) * factors of half a tile's columns each.
_gated_tile_products = _tile_intrinsic(_gated)


def _make_product(described: str, columns: int) -> Kernel:
    """:func:`product` for rows of (column blocks, groups of tiles).

    The output (⌈R/ROWS⌉·ROWS, N·columns) has room for whole tiles; the last tile repeats the last
    row. The groups of a column block follow each other, so that a thread reads the block from
    memory once, and the next block is prefetched meanwhile. A block has COLUMNS columns of output,
    or GATED for :func:`_gated_tile_products`.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        values, packed, out = arrays(job, described)
        num_pairs, tiles = packed.shape[1], len(out) // ROWS
        groups = -(-tiles // MAX_TILES)
        value_pairs, packed_pairs = values.view(np.int32), packed.view(np.int32)
        starts = np.empty(ROWS, np.int64)
        for row in rows(job):
            block, group = row // groups, row % groups
            start = block * num_pairs * COLUMNS
            for tile in range(group * tiles // groups, (group + 1) * tiles // groups):
                for r in range(ROWS):
                    starts[r] = min(tile * ROWS + r, len(values) - 1) * num_pairs
                ahead = start + (COLUMNS + tile * LANES % COLUMNS) * num_pairs
                factors = value_pairs, starts, packed_pairs, start, num_pairs
                arguments = (*factors, out, tile * ROWS, block * columns, ahead)
                if columns == COLUMNS:
                    tile_products(*arguments)
                else:
                    _gated_tile_products(*arguments)

    return kernel


_product_kernel = RowKernel(_make_product, min_rows_per_piece=1)


def packed(matrix: Tensor) -> Tensor:
    """A matrix (N, K) in bfloat16 as :func:`product` reads it, (⌈N/64⌉, K/2, 64·2); K is even.

    Values are in pairs of one row; a block has 64 rows, the last one is padded with zeros.
    """
    rows, size = matrix.shape
    padded = nn.functional.pad(matrix, (0, 0, 0, -rows % COLUMNS))
    pairs = padded.view(torch.int32).view(-1, COLUMNS, size // 2)
    return pairs.transpose(1, 2).contiguous().view(matrix.dtype)


def packed_gates(matrix: Tensor) -> Tensor:
    """A matrix (2N, K) of gates above factors as :func:`gated_product` reads it."""
    rows, size = matrix.shape
    parts = matrix.view(2, rows // 2, size)
    parts = nn.functional.pad(parts, (0, 0, 0, -(rows // 2) % GATED))
    blocks = parts.view(2, -1, GATED, size).transpose(0, 1)
    return packed(blocks.reshape(-1, size))


def product(
    values: Tensor,
    packed_matrix: Tensor,
    num_columns: int,
    columns_per_block: int = COLUMNS,
    storage: Storage | None = None,
) -> Tensor:
    """Products (…, N) in bfloat16 of values (…, K) with a :func:`packed` matrix (N, K)."""
    flat, blocks = values.reshape(-1, values.shape[-1]), len(packed_matrix)
    tiles = -(-len(flat) // ROWS)
    shape = tiles * ROWS, blocks * columns_per_block
    out = storage.tensor(shape, values.dtype) if storage else values.new_empty(shape)
    num_tasks = blocks * -(-tiles // MAX_TILES)
    _product_kernel(num_tasks, flat, packed_matrix, out, constants=(columns_per_block,))
    whole = out[: len(flat), :num_columns].contiguous()
    return whole.view(*values.shape[:-1], num_columns)


# silu(gates) * factors (…, N) of the products with :func:`packed_gates` (2N, K), rounded once.
gated_product = functools.partial(product, columns_per_block=GATED)
