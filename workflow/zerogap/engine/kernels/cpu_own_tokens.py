"""Attention to the tokens that a row has generated itself, on a CPU (numba).

Every row has keys and values of its own, so attention to them is limited by the speed of memory, as
long as computing is faster. Two generated functions do most of it: for one token after the other
they multiply a key with the queries that read it, and add up its weighted value. The queries and
sums of the heads that are computed together stay in registers.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from zerogap.engine.kernels.cpu_rows import (
    SMALLEST,
    Kernel,
    as_float,
    as_ordered,
    as_stored,
    exp,
    vectorise_widely,
)
from zerogap.engine.kernels.row_kernels import RowKernel, arrays, rows
from zerogap.engine.kernels.vector_code import (
    CACHE_LINE,
    FLAGS,
    INT64,
    LANES,
    Vectors,
    itemsize,
    pointer,
    start_reading,
)

HAS_WIDE_REGISTERS = bool(torch.cpu.get_capabilities().get("avx512_f"))
# Values of the query heads that are computed together: half of the registers.
MOST_VALUES = 32 // 2 * 16 if HAS_WIDE_REGISTERS else 16 // 2 * 8
MOST_LANES = MOST_VALUES // 2  # of a vector


def _passes(group: int, size: int) -> list[tuple[range, int, int]]:
    """Heads of a group, and the first lane and number of lanes that are computed together.

    LLVM keeps only vectors whose length is a power of two in registers as a whole.
    """
    passes, first = [], 0
    while first < size:
        lanes = min(MOST_LANES, 1 << (size - first).bit_length() - 1)
        step = MOST_VALUES // lanes
        heads = [range(member, min(member + step, group)) for member in range(0, group, step)]
        passes += [(members, first, lanes) for members in heads]
        first += lanes
    return passes


class _Tokens:
    """Generates a loop over lanes of the keys or values of a row's tokens.

    Args:
        context: of the compilation.
        builder: of the function that is generated.
        kind: numba's type of the array of keys or values.
        array: the array (≥R, T, Hkv, D).
        row: of the R.
        head: of the Hkv.
        lane: the first one, of the D.
        num_lanes: how many.
    """

    def __init__(
        self,
        context: Any,
        builder: Any,
        kind: Any,
        array: Any,
        row: Any,
        head: Any,
        lane: int,
        num_lanes: int,
    ) -> None:
        self._builder, self._vectors = builder, Vectors(builder, num_lanes)
        made = context.make_array(kind)(context, builder, array)
        self._first, self._ahead = (
            cgutils.get_item_pointer(
                context, builder, kind, made, [of_row, INT64(0), head, INT64(lane)]
            )
            for of_row in (row, builder.add(row, INT64(1)))
        )
        self._line = CACHE_LINE // itemsize(self._first.type.pointee)  # values of a cache line
        num_heads, size = (builder.extract_value(made.shape, axis) for axis in (2, 3))
        self._token_size = builder.mul(num_heads, size)

    @contextlib.contextmanager
    def each(self, num_tokens: Any, *, prefetch: bool) -> Iterator[tuple[Any, Any]]:
        """The body of a loop over tokens: yields a token's number and its vector.

        With `prefetch`, the same token of the next row starts to be read.
        """
        builder = self._builder
        with cgutils.for_range(builder, num_tokens) as loop:
            at = builder.mul(loop.index, self._token_size)
            if prefetch:
                for lane in range(0, self._vectors.size, self._line):
                    start_reading(builder, builder.gep(self._ahead, [builder.add(at, INT64(lane))]))
            yield loop.index, self._vectors.load(builder.gep(self._first, [at]))


@intrinsic(prefer_literal=True)
def _token_scores(_, query, key, row, head, num_tokens, scores, group, size):  # type: ignore[no-untyped-def]
    """In compiled code, the products of a group's queries with the keys of a row's tokens.

    Args:
        query: (R, Hkv·group, size).
        key: (≥R, T, Hkv, size); those of the next row are prefetched meanwhile.
        row: of the R.
        head: of the Hkv.
        num_tokens: the row's tokens.
        scores: (Hkv, group, ≥ num_tokens) in float32, to be written.
        group: query heads that read these keys; constant.
        size: D; constant.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = functools.partial(pointer, context, builder, signature, arguments)
        at_row, at_head, count = arguments[2:5]
        first_head = builder.mul(at_head, INT64(group.literal_value))
        for members, lane, num_lanes in _passes(group.literal_value, size.literal_value):
            vectors, keys = Vectors(builder, num_lanes), (signature.args[1], arguments[1])
            tokens = _Tokens(context, builder, *keys, at_row, at_head, lane, num_lanes)
            queries = [
                vectors.load(at(0, at_row, builder.add(first_head, INT64(member)), INT64(lane)))
                for member in members
            ]
            with tokens.each(count, prefetch=members.start == 0) as (token, key_vector):
                for member, query_vector in zip(members, queries, strict=True):
                    score = vectors.sum(builder.fmul(key_vector, query_vector, flags=FLAGS))
                    address = at(5, at_head, INT64(member), token)
                    if lane > 0:
                        score = builder.fadd(score, builder.load(address))
                    builder.store(score, address)
        return context.get_dummy_value()

    return types.void(query, key, row, head, num_tokens, scores, group, size), generate


@intrinsic(prefer_literal=True)
def _add_values(_, weights, value, row, head, num_tokens, sums, group, size):  # type: ignore[no-untyped-def]
    """In compiled code, add the values of a row's tokens, weighted for each head of a group.

    Args:
        weights: (Hkv, group, ≥ num_tokens) in float32.
        value: (≥R, T, Hkv, size); those of the next row are prefetched meanwhile.
        row: of the R.
        head: of the Hkv.
        num_tokens: the row's tokens.
        sums: (Hkv, group, size) in float32, to which the weighted values are added.
        group: query heads that read these values; constant.
        size: D; constant.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = functools.partial(pointer, context, builder, signature, arguments)
        at_row, at_head, count = arguments[2:5]
        for members, lane, num_lanes in _passes(group.literal_value, size.literal_value):
            vectors, values = Vectors(builder, num_lanes), (signature.args[1], arguments[1])
            tokens = _Tokens(context, builder, *values, at_row, at_head, lane, num_lanes)
            lines = [at(5, at_head, INT64(member), INT64(lane)) for member in members]
            totals = [vectors.variable(vectors.load(line)) for line in lines]
            with tokens.each(count, prefetch=members.start == 0) as (token, value_vector):
                for member, total in zip(members, totals, strict=True):
                    weight = vectors.splat(builder.load(at(0, at_head, INT64(member), token)))
                    added = vectors.add_product(builder.load(total), weight, value_vector)
                    builder.store(added, total)
            for line, total in zip(lines, totals, strict=True):
                vectors.store(builder.load(total), line)
        return context.get_dummy_value()

    return types.void(weights, value, row, head, num_tokens, sums, group, size), generate


def attend(
    query: Tensor,
    generated: tuple[Tensor, Tensor],
    num_generated: Tensor,
    prefix: tuple[Tensor, Tensor],
    question: tuple[Tensor, Tensor],
    cell_of_row: Tensor,
) -> Tensor:
    """Attention of rows to their generated tokens, in one softmax with prefix and question.

    The two other parts are as :mod:`zerogap.engine.kernels.attention_parts` returns them, where the
    G query heads that read the same keys are queries of these keys.

    Args:
        query: (R, H, D), scaled.
        generated: keys and values (≥R, T, Hkv, D) of each row's generated tokens.
        num_generated: (R,) generated tokens of each row; the others are padding.
        prefix: the output (Hkv, R·G, D) of attention to the prefix, and the logarithm (Hkv, R·G) of
            its summed weights in float32.
        question: the same for the questions, (Q, Hkv, W·G, D) and (Q, Hkv, W·G), for W grid cells
            per question.
        cell_of_row: (R,) each row's grid cell, of the Q·W.

    Returns:
        (R, H, D) in the dtype of the queries; all sums are float32.
    """
    num_rows, heads, size = query.shape
    out = torch.empty_like(query, memory_format=torch.contiguous_format)
    constants = heads // generated[0].shape[2], size
    arguments = query, *generated, num_generated, *prefix, *question, cell_of_row, out
    _attend_kernel(num_rows, *arguments, constants=constants)
    return out


@RowKernel
def _attend_kernel(described: str, group: int, size: int) -> Kernel:
    """:func:`attend` for groups of query heads of a size.

    Prefix and question count as two more keys behind the row's own tokens. Weighted values are
    divided by the sum of the weights at the end. While a row's keys or values are read, those of
    the next row are prefetched.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        (
            query,
            key,
            value,
            num_generated,
            prefix_out,
            prefix_weight,
            question_out,
            question_weight,
            cell_of_row,
            out,
        ) = arrays(job, described)
        key_heads, cells = key.shape[2], question_out.shape[2] // group
        most_keys = -(-(key.shape[1] + 2) // LANES) * LANES
        scores = np.empty((key_heads, group, most_keys), np.float32)
        score_bits = scores.view(np.int32)
        sums = np.empty((key_heads, group, size), np.float32)
        highest = np.empty((key_heads, group), np.float32)
        scales = np.empty((key_heads, group), np.float32)
        for row in rows(job):
            num_tokens = num_generated[row]
            num_keys = -(-(num_tokens + 2) // LANES) * LANES
            of_prefix, question = row * group, cell_of_row[row] // cells
            of_question = cell_of_row[row] % cells * group
            for head in range(key_heads):
                _token_scores(query, key, row, head, num_tokens, scores, group, size)
            for head in range(key_heads):
                for member in range(group):
                    scores[head, member, num_tokens] = prefix_weight[head, of_prefix + member]
                    to_question = question_weight[question, head, of_question + member]
                    scores[head, member, num_tokens + 1] = to_question
                    for k in range(num_tokens + 2, num_keys):
                        scores[head, member, k] = -np.inf
                    highest_bits = as_ordered(np.int32(SMALLEST))
                    for k in range(num_keys):
                        highest_bits = max(highest_bits, as_ordered(score_bits[head, member, k]))
                    highest[head, member] = np.int32(as_ordered(highest_bits)).view(np.float32)
            # A loop of its own: processors overlap the searches for the largest scores.
            for head in range(key_heads):
                for member in range(group):
                    top, total = highest[head, member], np.float32(0)
                    for k in range(num_keys):
                        weight = exp(scores[head, member, k] - top)
                        scores[head, member, k] = weight
                        total += weight
                    scales[head, member] = np.float32(1) / total
                    to_prefix = scores[head, member, num_tokens]
                    to_question = scores[head, member, num_tokens + 1]
                    for d in range(size):
                        shared = to_prefix * as_float(prefix_out[head, of_prefix + member, d])
                        shared += to_question * as_float(
                            question_out[question, head, of_question + member, d]
                        )
                        sums[head, member, d] = shared
            for head in range(key_heads):
                _add_values(scores, value, row, head, num_tokens, sums, group, size)
                for member in range(group):
                    scale = scales[head, member]
                    for d in range(size):
                        scaled = sums[head, member, d] * scale
                        out[row, head * group + member, d] = as_stored(scaled, out)

    return kernel
