"""Compiled kernels for a GPU: attention of a step, and what lies between the products of a layer.

Triton compiles a kernel when it is first launched with certain dtypes and sizes; it needs a C
compiler at run time. Each is a function of Triton's language and one of the same name without
underscore that launches it. All of them compute in float32 and round once.
"""

import contextlib
import sys
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import next_power_of_2

OLDEST_CAPABILITY = (8, 0)  # before it there is neither bfloat16 nor flash attention
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
    query, prefix_out, prefix_weight, question_key, question_value, generated_key, generated_value,
    num_question, num_generated, slot, out,
    prefix_head_stride, prefix_row_stride, prefix_weight_stride,
    question_stride, question_head_stride, question_token_stride,
    generated_stride, generated_head_stride, generated_token_stride,
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
    place_of_row = row * generated_stride + head * generated_head_stride
    largest, total, result = _add_keys(
        queries, generated_key + place_of_row, generated_value + place_of_row,
        tl.load(num_generated + row), generated_token_stride,
        largest, total, result, SIZE, PADDED_SIZE, KEYS, PRECISION,
    )  # fmt: skip
    result = result / total[:, None]
    tl.store(out + place, result.to(out.dtype.element_ty), mask=exists)


def attend(
    query: Tensor,
    prefix: tuple[Tensor, Tensor] | None,
    question: tuple[Tensor, Tensor],
    generated: tuple[Tensor, Tensor],
    num_question: Tensor,
    num_generated: Tensor,
    slot: Tensor,
) -> Tensor:
    """:func:`~zerogap.engine.kernels.attention_parts.attend_step`, whose arguments these are.

    `prefix` is what `prefix_part` returns, None without a prefix; `question` (Q, Hkv, S, D) and
    `generated` (≥R, Hkv, ≥T, D) are keys and values, `slot` (R,) is each row's question.
    """
    query = query.contiguous()
    out = torch.empty_like(query)
    num_rows, heads, group, size = query.shape
    prefix_out, prefix_weight = prefix or (query.view(heads, num_rows * group, size), query)
    prefix_weight = prefix_weight.contiguous()
    with _current_device(query):
        _attend[num_rows, heads](
            query, prefix_out, prefix_weight, *question, *generated, num_question, num_generated,
            slot, out,
            prefix_out.stride(0), prefix_out.stride(1), num_rows * group,
            *question[0].stride()[:3], *generated[0].stride()[:3],
            HEADS=heads, GROUP=group, PADDED_GROUP=max(SMALLEST_PRODUCT, next_power_of_2(group)),
            SIZE=size, PADDED_SIZE=max(SMALLEST_PRODUCT, next_power_of_2(size)), KEYS=KEYS_AT_ONCE,
            HAS_PREFIX=prefix is not None, PRECISION="ieee",
        )  # fmt: skip
    return out


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


def rms_norm(hidden: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Normalise (…, N) by its root mean square and multiply it by the weight (N,)."""
    hidden = hidden.contiguous()
    out, size = torch.empty_like(hidden), hidden.shape[-1]
    with _current_device(hidden):
        _rms_norm[(hidden.numel() // size,)](
            hidden, weight, out, epsilon, SIZE=size, PADDED_SIZE=next_power_of_2(size), num_warps=8
        )
    return out


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


def gated_silu(joined: Tensor) -> Tensor:
    """silu(gate) * up (…, N) of both next to each other, (…, 2N) and contiguous."""
    size = joined.shape[-1] // 2
    out = joined.new_empty(*joined.shape[:-1], size)
    with _current_device(joined):
        _gated_silu[out.numel() // size, triton.cdiv(size, VALUES_AT_ONCE)](
            joined, out, SIZE=size, VALUES=VALUES_AT_ONCE
        )
    return out


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
    """Rotate heads (B, L, H, D), see :func:`zerogap.engine.kernels.cpu_rows.rotate`."""
    *_, num_heads, size = heads.shape
    with _current_device(heads):
        _rotate[cos.numel() // size, num_rotated](
            heads, cos.contiguous(), sin.contiguous(),
            HEADS=num_heads, SIZE=size, PADDED_HALF=next_power_of_2(size // 2),
        )  # fmt: skip


@cache
def works(device: torch.device) -> bool:
    """Whether Triton can compile for the device; says so once if it cannot."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < OLDEST_CAPABILITY:
        return False
    values = torch.ones(1, 16, dtype=torch.bfloat16, device=device)
    try:
        return bool(torch.isfinite(rms_norm(values, values[0], 1e-6)).all())
    except Exception as error:  # compilers and drivers fail in many ways
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(
            f"warning: Triton cannot compile kernels here ({reason}); decoding without them, "
            "which is slower",
            file=sys.stderr,
        )
        return False


def _current_device(tensor: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Make a tensor's device the current one, where Triton launches kernels."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()
