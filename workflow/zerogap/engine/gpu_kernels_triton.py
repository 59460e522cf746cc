"""The kernels of :mod:`zerogap.engine.gpu_kernels`, compiled by Triton.

Each is a function of Triton's language and one of the same name without underscore that launches
it. Triton compiles it when it is first launched with certain dtypes and sizes. All of them compute
in float32 and round once.
"""

import triton
import triton.language as tl
from torch import Tensor

SMALLEST_PRODUCT = 16  # rows and columns of a matrix product on tensor cores
KEYS_AT_ONCE = 32
VALUES_AT_ONCE = 1024


@triton.jit
def _add_keys(
    query, key, value, count, token_stride, largest, total, out,
    SIZE: tl.constexpr, PADDED_SIZE: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add keys and values to a softmax that has seen others: its maximum, sum and output."""
    column = tl.arange(0, PADDED_SIZE)
    for first in range(0, count, KEYS):
        token = first + tl.arange(0, KEYS)
        visible = token < count
        place = token[:, None] * token_stride + column[None, :]
        stored = visible[:, None] & (column < SIZE)[None, :]
        keys = tl.load(key + place, mask=stored, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision=PRECISION)
        scores = tl.where(visible[None, :], scores, float("-inf"))
        new_largest = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - new_largest[:, None])
        shrinkage = tl.exp(largest - new_largest)
        total = total * shrinkage + tl.sum(weights, 1)
        values = tl.load(value + place, mask=stored, other=0.0)
        out = out * shrinkage[:, None]
        out += tl.dot(weights.to(values.dtype), values, input_precision=PRECISION)
        largest = new_largest
    return largest, total, out


@triton.jit(do_not_specialize=["prefix_weight_stride"])
def _attend(
    query, prefix_out, prefix_weight, question_key, question_value, own_key, own_value,
    num_question, num_own, slot, out,
    prefix_head_stride, prefix_row_stride, prefix_weight_stride,
    question_stride, question_head_stride, question_token_stride,
    own_stride, own_head_stride, own_token_stride,
    HEADS: tl.constexpr, GROUP: tl.constexpr, PADDED_GROUP: tl.constexpr,
    SIZE: tl.constexpr, PADDED_SIZE: tl.constexpr, KEYS: tl.constexpr,
    HAS_PREFIX: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One row and one key-value head, whose query heads are the rows of the products."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    member = tl.arange(0, PADDED_GROUP)
    column = tl.arange(0, PADDED_SIZE)
    exists = (member < GROUP)[:, None] & (column < SIZE)[None, :]
    place = ((row * HEADS + head) * GROUP + member[:, None]) * SIZE + column[None, :]
    queries = tl.load(query + place, mask=exists, other=0.0)
    if HAS_PREFIX:  # counts as one key
        prefix_row = row * GROUP + member
        largest = tl.load(
            prefix_weight + head * prefix_weight_stride + prefix_row, mask=member < GROUP, other=0.0
        ).to(tl.float32)
        total = tl.full([PADDED_GROUP], 1.0, tl.float32)
        at = head * prefix_head_stride + prefix_row[:, None] * prefix_row_stride + column[None, :]
        result = tl.load(prefix_out + at, mask=exists, other=0.0).to(tl.float32)
    else:
        largest = tl.full([PADDED_GROUP], float("-inf"), tl.float32)
        total = tl.zeros([PADDED_GROUP], tl.float32)
        result = tl.zeros([PADDED_GROUP, PADDED_SIZE], tl.float32)
    question = tl.load(slot + row) * question_stride + head * question_head_stride
    largest, total, result = _add_keys(
        queries, question_key + question, question_value + question, tl.load(num_question + row),
        question_token_stride, largest, total, result, SIZE, PADDED_SIZE, KEYS, PRECISION,
    )  # fmt: skip
    own = row * own_stride + head * own_head_stride
    largest, total, result = _add_keys(
        queries, own_key + own, own_value + own, tl.load(num_own + row),
        own_token_stride, largest, total, result, SIZE, PADDED_SIZE, KEYS, PRECISION,
    )  # fmt: skip
    result = result / total[:, None]
    tl.store(out + place, result.to(out.dtype.element_ty), mask=exists)


def attend(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    question: tuple[Tensor, Tensor],
    own: tuple[Tensor, Tensor],
    num_question: Tensor,
    num_own: Tensor,
    slot: Tensor,
    out: Tensor,
) -> None:
    """See :func:`zerogap.engine.gpu_kernels.attend`; query and out are contiguous."""
    num_rows, heads, group, size = query.shape
    prefix_out, prefix_weight = prefix or (query.view(heads, num_rows * group, size), query)
    prefix_weight = prefix_weight.contiguous()
    _attend[num_rows, heads](
        query, prefix_out, prefix_weight, *question, *own, num_question, num_own, slot, out,
        prefix_out.stride(0), prefix_out.stride(1), num_rows * group,
        *question[0].stride()[:3], *own[0].stride()[:3],
        HEADS=heads, GROUP=group, PADDED_GROUP=max(SMALLEST_PRODUCT, _padded(group)),
        SIZE=size, PADDED_SIZE=max(SMALLEST_PRODUCT, _padded(size)), KEYS=KEYS_AT_ONCE,
        HAS_PREFIX=prefix is not None, PRECISION="ieee",
    )  # fmt: skip


@triton.jit
def _rms_norm(hidden, weight, out, epsilon, SIZE: tl.constexpr, PADDED_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, PADDED_SIZE)
    exists = column < SIZE
    values = tl.load(hidden + row * SIZE + column, mask=exists, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 0) / SIZE + epsilon)
    factors = tl.load(weight + column, mask=exists, other=0.0).to(tl.float32)
    result = values * scale * factors
    tl.store(out + row * SIZE + column, result.to(out.dtype.element_ty), mask=exists)


def rms_norm(hidden: Tensor, weight: Tensor, epsilon: float, out: Tensor) -> None:
    """See :func:`zerogap.engine.gpu_kernels.rms_norm`; hidden and out are (R, N)."""
    num_rows, size = hidden.shape
    _rms_norm[(num_rows,)](
        hidden, weight, out, epsilon, SIZE=size, PADDED_SIZE=_padded(size), num_warps=8
    )


@triton.jit
def _gated_silu(joined, out, SIZE: tl.constexpr, VALUES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * VALUES + tl.arange(0, VALUES)
    exists = column < SIZE
    place = joined + row * 2 * SIZE + column
    gate = tl.load(place, mask=exists, other=0.0).to(tl.float32)
    up = tl.load(place + SIZE, mask=exists, other=0.0).to(tl.float32)
    result = gate * tl.sigmoid(gate) * up
    tl.store(out + row * SIZE + column, result.to(out.dtype.element_ty), mask=exists)


def gated_silu(joined: Tensor, out: Tensor) -> None:
    """See :func:`zerogap.engine.gpu_kernels.gated_silu`; joined is (R, 2N) and out (R, N)."""
    num_rows, size = out.shape
    blocks = triton.cdiv(size, VALUES_AT_ONCE)
    _gated_silu[num_rows, blocks](joined, out, SIZE=size, VALUES=VALUES_AT_ONCE)


@triton.jit
def _rotate(
    heads, cos, sin,
    HEADS: tl.constexpr, SIZE: tl.constexpr, PADDED_HALF: tl.constexpr,
):  # fmt: skip
    """One head of one token: its two halves are the coordinates of SIZE / 2 points."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    column = tl.arange(0, PADDED_HALF)
    exists = column < SIZE // 2
    low = (row * HEADS + head) * SIZE + column
    angle = row * SIZE + column
    x = tl.load(heads + low, mask=exists, other=0.0).to(tl.float32)
    y = tl.load(heads + low + SIZE // 2, mask=exists, other=0.0).to(tl.float32)
    cos_x = tl.load(cos + angle, mask=exists, other=0.0).to(tl.float32)
    cos_y = tl.load(cos + angle + SIZE // 2, mask=exists, other=0.0).to(tl.float32)
    sin_x = tl.load(sin + angle, mask=exists, other=0.0).to(tl.float32)
    sin_y = tl.load(sin + angle + SIZE // 2, mask=exists, other=0.0).to(tl.float32)
    new_x = x * cos_x - y * sin_x
    new_y = y * cos_y + x * sin_y
    tl.store(heads + low, new_x.to(heads.dtype.element_ty), mask=exists)
    tl.store(heads + low + SIZE // 2, new_y.to(heads.dtype.element_ty), mask=exists)


def rotate(heads: Tensor, cos: Tensor, sin: Tensor, num_rotated: int) -> None:
    """See :func:`zerogap.engine.gpu_kernels.rotate`; heads are (R, H, D), the others (R, D)."""
    num_rows, num_heads, size = heads.shape
    _rotate[num_rows, num_rotated](
        heads, cos, sin, HEADS=num_heads, SIZE=size, PADDED_HALF=_padded(size // 2)
    )


def _padded(size: int) -> int:
    return 1 << (size - 1).bit_length()
