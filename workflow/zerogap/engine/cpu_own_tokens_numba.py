"""The kernels behind :func:`zerogap.engine.cpu_kernels.attend` and `store`: a row's own tokens.

Every row has keys and values of its own, so attention to them is limited by the speed of memory, as
long as computing is faster. Two generated functions do most of it: for one token after the other
they multiply a key with the queries that read it, and add up its weighted value. A vector is as
long as a head there, and the queries and sums of a group of heads stay in registers.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from zerogap.engine.cpu_kernels_numba import (
    SMALLEST,
    Kernel,
    as_float,
    as_ordered,
    as_stored,
    exp,
    vectorise_widely,
)
from zerogap.engine.row_kernels import RowKernel, arrays, rows
from zerogap.engine.vector_code import (
    CACHE_LINE,
    FLAGS,
    INT64,
    LANES,
    Vectors,
    itemsize,
    pointer,
    start_reading,
)

MOST_LANES = 256  # of the query heads that are computed together: half of the registers


def _members(group: int, size: int) -> list[range]:
    """The heads of a group, so many at a time that their vectors fit into registers."""
    step = max(1, MOST_LANES // size)
    return [range(first, min(first + step, group)) for first in range(0, group, step)]


class _Tokens:
    """Generates a loop over the keys or values of a row's tokens.

    Args:
        context: of the compilation.
        heads: generates operations on heads.
        kind: numba's type of the array of keys or values.
        array: the array (≥R, T, Hkv, D).
        row: of the R.
        head: of the Hkv.
    """

    def __init__(
        self, context: Any, builder: Any, heads: Vectors, kind: Any, array: Any, row: Any, head: Any
    ) -> None:
        self._builder, self._heads = builder, heads
        made, first = context.make_array(kind)(context, builder, array), INT64(0)
        of_row = [row, first, head, first]
        of_next_row = [builder.add(row, INT64(1)), *of_row[1:]]
        self._first, self._ahead = (
            cgutils.get_item_pointer(context, builder, kind, made, indices)
            for indices in (of_row, of_next_row)
        )
        self._line = CACHE_LINE // itemsize(self._first.type.pointee)  # values of a cache line
        num_heads = builder.extract_value(made.shape, 2)
        self._token_size = builder.mul(num_heads, INT64(heads.size))

    @contextlib.contextmanager
    def each(self, num_tokens: Any, *, prefetch: bool) -> Iterator[tuple[Any, Any]]:
        """The code that is generated meanwhile is run with each token's number and its vector."""
        with cgutils.for_range(self._builder, num_tokens) as loop:
            at = self._builder.mul(loop.index, self._token_size)
            if prefetch:
                for item in range(0, self._heads.size, self._line):
                    address = self._builder.gep(self._ahead, [self._builder.add(at, INT64(item))])
                    start_reading(self._builder, address)
            yield loop.index, self._heads.load(self._builder.gep(self._first, [at]))


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
        heads, (at_row, at_head, count) = Vectors(builder, size.literal_value), arguments[2:5]
        tokens = _Tokens(context, builder, heads, signature.args[1], arguments[1], at_row, at_head)
        first_head = builder.mul(at_head, INT64(group.literal_value))
        for members in _members(group.literal_value, size.literal_value):
            queries = [
                heads.load(at(0, at_row, builder.add(first_head, INT64(member)), INT64(0)))
                for member in members
            ]
            with tokens.each(count, prefetch=members.start == 0) as (token, key_vector):
                for member, query_vector in zip(members, queries, strict=True):
                    score = heads.sum(builder.fmul(key_vector, query_vector, flags=FLAGS))
                    builder.store(score, at(5, at_head, INT64(member), token))
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
        heads, (at_row, at_head, count) = Vectors(builder, size.literal_value), arguments[2:5]
        tokens = _Tokens(context, builder, heads, signature.args[1], arguments[1], at_row, at_head)
        for members in _members(group.literal_value, size.literal_value):
            lines = [at(5, at_head, INT64(member), INT64(0)) for member in members]
            totals = [heads.variable(heads.load(line)) for line in lines]
            with tokens.each(count, prefetch=members.start == 0) as (token, value_vector):
                for member, total in zip(members, totals, strict=True):
                    weight = builder.load(at(0, at_head, INT64(member), token))
                    weights_vector = heads.spread(weight)
                    added = heads.add_product(builder.load(total), weights_vector, value_vector)
                    builder.store(added, total)
            for line, total in zip(lines, totals, strict=True):
                heads.store(builder.load(total), line)
        return context.get_dummy_value()

    return types.void(weights, value, row, head, num_tokens, sums, group, size), generate


@RowKernel
def attend(described: str, group: int, size: int) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.attend` for groups of query heads of a size.

    Prefix and question count as two more keys behind the row's own tokens. The weights are divided
    by their sum at the end. While keys or values are read, those of the next row are prefetched.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        (
            query,
            key,
            value,
            num_own,
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
            num_tokens = num_own[row]
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


@RowKernel
def store(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.store`."""

    def kernel(job: Any) -> None:
        vectorise_widely()
        new_key, new_value, column, key, value = arrays(job, described)
        _, heads, size = new_key.shape
        for row in rows(job):
            for head in range(heads):
                for d in range(size):
                    key[row, column[row], head, d] = new_key[row, head, d]
                    value[row, column[row], head, d] = new_value[row, head, d]

    return kernel


@RowKernel
def move_rows(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.move_rows`."""

    def kernel(job: Any) -> None:
        vectorise_widely()
        source, target, width, key, value = arrays(job, described)
        for row in rows(job):
            for token in range(width[0]):
                for head in range(key.shape[2]):
                    for d in range(key.shape[3]):
                        key[target[row], token, head, d] = key[source[row], token, head, d]
                        value[target[row], token, head, d] = value[source[row], token, head, d]

    return kernel
