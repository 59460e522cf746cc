"""Attention to the tokens that a row has generated itself, on a CPU (numba).

Every row has keys and values of its own, so attention to them is limited by the speed of memory, as
long as computing is faster. Two generated functions do most of it: for one token after the other
they multiply a key with the queries that read it, and add up its weighted value. The queries and
sums of the heads that are computed together stay in registers.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from zerogap.engine.kernels.cpu_rows import (
    Kernel,
    as_float,
    as_stored,
    exp,
    largest,
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


@contextlib.contextmanager
def _each_token(
    at: Callable[..., Any], builder: Any, vectors: Vectors, lane: int, arguments: Any, first: bool
) -> Iterator[tuple[Any, Any]]:
    """Generates a loop over a row's tokens; its body has a token's number and its vector.

    The vector is read from `lane` on. The first loop over the keys or values, the second of the
    arguments, prefetches those of the next row.
    """
    row, head, num_tokens = arguments[2:5]
    next_row = builder.add(row, INT64(1))
    with cgutils.for_range(builder, num_tokens) as loop:
        address = at(1, row, loop.index, head, INT64(lane))
        if first:
            for start in range(lane, lane + vectors.size, CACHE_LINE // itemsize(address)):
                start_reading(builder, at(1, next_row, loop.index, head, INT64(start)))
        yield loop.index, vectors.load(address)


@intrinsic(prefer_literal=True)
def _token_scores(_, query, array, row, head, num_tokens, scores, group, size):  # type: ignore[no-untyped-def]
    """In compiled code, the products of a group's queries with the keys of a row's tokens.

    Args:
        query: (R, Hkv·group, size).
        array: the keys (≥R, T, Hkv, size).
        row: of the R.
        head: of the Hkv.
        num_tokens: the row's tokens.
        scores: (Hkv, group, ≥ num_tokens) in float32, to be written.
        group: query heads that read these keys; constant.
        size: D; constant.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = functools.partial(pointer, context, builder, signature, arguments)
        row, head = arguments[2:4]
        first_head = builder.mul(head, INT64(group.literal_value))
        for members, lane, num_lanes in _passes(group.literal_value, size.literal_value):
            vectors = Vectors(builder, num_lanes)
            queries = [
                vectors.load(at(0, row, builder.add(first_head, INT64(member)), INT64(lane)))
                for member in members
            ]
            loop = _each_token(at, builder, vectors, lane, arguments, members.start == 0)
            with loop as (token, key_vector):
                for member, query_vector in zip(members, queries, strict=True):
                    score = vectors.sum(builder.fmul(key_vector, query_vector, flags=FLAGS))
                    address = at(5, head, INT64(member), token)
                    if lane > 0:
                        score = builder.fadd(score, builder.load(address))
                    builder.store(score, address)
        return context.get_dummy_value()

    return types.void(query, array, row, head, num_tokens, scores, group, size), generate


@intrinsic(prefer_literal=True)
def _add_values(_, weights, array, row, head, num_tokens, sums, group, size):  # type: ignore[no-untyped-def]
    """In compiled code, add the values of a row's tokens, weighted for each head of a group.

    Args: as :func:`_token_scores`, but for

        weights: (Hkv, group, ≥ num_tokens) in float32.
        array: the values (≥R, T, Hkv, size).
        sums: (Hkv, group, size) in float32, to which the weighted values are added.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = functools.partial(pointer, context, builder, signature, arguments)
        head = arguments[3]
        for members, lane, num_lanes in _passes(group.literal_value, size.literal_value):
            vectors = Vectors(builder, num_lanes)
            lines = [at(5, head, INT64(member), INT64(lane)) for member in members]
            totals = [vectors.variable(vectors.load(line)) for line in lines]
            loop = _each_token(at, builder, vectors, lane, arguments, members.start == 0)
            with loop as (token, value_vector):
                for member, total in zip(members, totals, strict=True):
                    weight = vectors.splat(builder.load(at(0, head, INT64(member), token)))
                    product = builder.fmul(weight, value_vector, flags=FLAGS)
                    builder.store(builder.fadd(builder.load(total), product, flags=FLAGS), total)
            for line, total in zip(lines, totals, strict=True):
                vectors.store(builder.load(total), line)
        return context.get_dummy_value()

    return types.void(weights, array, row, head, num_tokens, sums, group, size), generate


def attend(
    query: Tensor,
    generated: tuple[Tensor, Tensor],
    num_generated: Tensor,
    prefix: tuple[Tensor, Tensor],
    question: tuple[Tensor, Tensor],
    cell_of_row: Tensor,
) -> Tensor:
    """Attention (R, H, D) of rows to generated tokens, in one softmax with prefix and question.

    Args:
        query: (R, H, D), scaled.
        generated: keys and values (≥R, T, Hkv, D) of each row's generated tokens.
        num_generated: (R,) generated tokens of each row; the others are padding.
        prefix: (Hkv, R·G, D) and (Hkv, R·G), as `attention_parts.prefix_part` returns them.
        question: (Q, Hkv, W·G, D) and (Q, Hkv, W·G), as `attention_parts.part_attention` does.
        cell_of_row: (R,) each row's grid cell, of the Q·W.
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
    divided by the sum of the weights at the end.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        (
            query, key, value, num_generated, prefix_out, prefix_weight,
            question_out, question_weight, cell_of_row, out,
        ) = arrays(job, described)  # fmt: skip
        key_heads, cells = key.shape[2], question_out.shape[2] // group
        most_keys = -(-(key.shape[1] + 2) // LANES) * LANES
        scores = np.empty((key_heads, group, most_keys), np.float32)
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
                    highest[head, member] = largest(scores[head, member, :num_keys])
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
