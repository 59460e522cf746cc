"""Drawing tokens, and what lies between the products of a layer, on a CPU (numba).

bfloat16 values arrive as their 16 bits, since numpy has no such type, and are widened exactly.
Numbers that change from call to call come in arrays of one element.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray
from torch import Tensor

from zerogap.engine.kernels.row_kernels import RowKernel, arrays, rows

TOKEN_BLOCK = 64  # tokens whose weights are summed before the running sum is taken
LN2_HIGH = 355 / 512  # ln 2 in few digits; its product with a small integer is exact

Array = NDArray[Any]
Kernel = Callable[[Any], None]


@intrinsic
def vectorise_widely(_):  # type: ignore[no-untyped-def]
    """In compiled code: let LLVM use vectors of 512 bits in the calling function.

    LLVM prefers 256 bits on some processors that have 512, where the sums of a draw from 49,152
    logits then took four times as long.
    """

    def generate(context, builder, *_):  # type: ignore[no-untyped-def]
        # llvmlite's own `add` knows a fixed list of attributes.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


def as_float(stored: Any) -> Any:
    """In compiled code, the float that is stored: itself, or the bits of a bfloat16."""


# numba compares this signature with that of the lambdas, which cannot be annotated.
def _implement_float(stored):  # type: ignore[no-untyped-def]
    if isinstance(stored, types.Integer):
        return lambda stored: np.uint32(np.uint32(stored) << np.uint32(16)).view(np.float32)
    return lambda stored: stored


overload(as_float, inline="always")(_implement_float)


# Sums keep their order here: the two products with parts of ln 2 must be subtracted one by one.
@njit(fastmath={"contract"})  # type: ignore[untyped-decorator]
def exp(x: Any) -> Any:
    """The exponential of x ≤ 1 in float32, with a relative error of 3e-7; 0 below -87.

    `math.exp` would be a function call per element, which keeps the loop around it from being
    vectorised. This is the usual reduction: x = k ln 2 + r with |r| ≤ ln 2 / 2, a polynomial for
    exp(r), and k put into the exponent bits. ln 2 is split in two so that r keeps its digits.
    """
    power = np.floor(x * np.float32(1 / math.log(2)) + np.float32(0.5))
    rest = x - power * np.float32(LN2_HIGH) - power * np.float32(math.log(2) - LN2_HIGH)
    series = rest * np.float32(1 / 720) + np.float32(1 / 120)
    series = series * rest + np.float32(1 / 24)
    series = series * rest + np.float32(1 / 6)
    series = series * rest + np.float32(1 / 2)
    series = series * rest * rest + rest + np.float32(1)
    scale = np.uint32(np.uint32(np.int32(power) + 127) << np.uint32(23)).view(np.float32)
    return np.float32(0) if power < -126 else series * scale


@njit  # type: ignore[untyped-decorator]
def as_ordered(bits: Any) -> Any:
    """Map the bits of a float32 to an integer in the same order, and back.

    A loop that takes the largest of these integers is vectorised. One with a running maximum of
    floats is not: it would have to treat NaN. In this order NaN is larger than any number, or
    smaller than any if its sign is set.
    """
    signed = np.int32(bits)
    return np.int32(signed ^ np.int32((signed >> np.int32(31)) & np.int32(0x7FFFFFFF)))


SMALLEST = -1  # the bits of the float that is smaller than any other in this order


@njit  # type: ignore[untyped-decorator]
def largest(stored: Array) -> Any:
    """In compiled code, the largest of stored floats, in the order of their bits."""
    highest = as_ordered(np.int32(SMALLEST))
    for i in range(len(stored)):
        highest = max(highest, as_ordered(np.float32(as_float(stored[i])).view(np.int32)))
    return np.int32(as_ordered(highest)).view(np.float32)


@njit  # type: ignore[untyped-decorator]
def as_bfloat16(value: Any) -> Any:
    """The 16 bits of a float32 rounded to bfloat16, to even where it is in the middle."""
    bits = np.float32(value).view(np.uint32)
    half = np.uint32(0x7FFF) + np.uint32(np.uint32(bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(half)) >> np.uint32(16))


def as_stored(value: Any, array: Array) -> Any:
    """In compiled code, a float32 as an array stores it: itself, or the bits of a bfloat16."""


def _implement_stored(value, array):  # type: ignore[no-untyped-def]
    if isinstance(array.dtype, types.Integer):
        return lambda value, array: as_bfloat16(value)
    return lambda value, array: value


overload(as_stored, inline="always")(_implement_stored)


def draw(logits: Tensor, uniform: Tensor, temperature: float, row: Tensor) -> Tensor:
    """:func:`zerogap.engine.drawing.draw` from the whole distribution.

    Weights and the sums of a block of tokens are float32, sums of blocks float64.
    """
    tokens = torch.empty_like(row)
    ends = torch.bincount(row, minlength=len(logits)).cumsum(0)
    scale = torch.tensor([1 / temperature], dtype=torch.float32)
    _draw_kernel(len(logits), scale, logits, uniform, row.argsort(), ends, tokens)
    return tokens


@RowKernel
def _draw_kernel(described: str) -> Kernel:
    """:func:`draw`.

    A first pass over a row's logits gives the largest of them, a second one running sums over
    blocks of tokens. Each draw then finds its block by bisection and its token by summing within
    the block. `draws` are the indices of the uniforms, sorted by row; those of a row end at
    `ends[row]`.
    """

    def kernel(job: Any) -> None:
        vectorise_widely()
        inverse_temperature, logits, uniform, draws, ends, tokens = arrays(job, described)
        vocabulary, scale = logits.shape[1], inverse_temperature[0]
        running_sums = np.empty(-(-vocabulary // TOKEN_BLOCK))
        for row in rows(job):
            highest = largest(logits[row])
            total: Any = 0.0
            for block in range(len(running_sums)):
                block_logits = logits[row, block * TOKEN_BLOCK : (block + 1) * TOKEN_BLOCK]
                block_sum = np.float32(0)
                for i in range(len(block_logits)):
                    block_sum += exp((as_float(block_logits[i]) - highest) * scale)
                total += block_sum
                running_sums[block] = total
            for draw_index in draws[ends[row - 1] if row else 0 : ends[row]]:
                tokens[draw_index] = -1
                threshold = uniform[draw_index] * total
                block = np.searchsorted(running_sums, threshold, side="right")
                passed = running_sums[block - 1] if block else 0.0
                for token in range(block * TOKEN_BLOCK, min((block + 1) * TOKEN_BLOCK, vocabulary)):
                    weight = exp((as_float(logits[row, token]) - highest) * scale)
                    # The block's sum may be larger than the sum of its tokens: the last token with
                    # any weight is drawn then.
                    if passed <= threshold and weight > 0:
                        tokens[draw_index] = token
                    passed += weight

    return kernel


def rms_norm(hidden: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Normalise bfloat16 (…, N) by its root mean square and multiply it by the weight (N,)."""
    flat = hidden.reshape(-1, hidden.shape[-1])
    out = flat.new_empty(flat.shape)
    _rms_norm_kernel(len(flat), flat, weight, out, constants=(epsilon,))
    return out.view(hidden.shape)


@RowKernel
def _rms_norm_kernel(described: str, epsilon: float) -> Kernel:
    """:func:`rms_norm` for rows of (R, N)."""
    constant = np.float32(epsilon)

    def kernel(job: Any) -> None:
        vectorise_widely()
        values, weight, out = arrays(job, described)
        size = values.shape[1]
        for row in rows(job):
            squares = np.float32(0)
            for i in range(size):
                value = as_float(values[row, i])
                squares += value * value
            scale = np.float32(1) / np.sqrt(squares / np.float32(size) + constant)
            for i in range(size):
                normed = as_bfloat16(as_float(values[row, i]) * scale)
                out[row, i] = as_bfloat16(as_float(normed) * as_float(weight[i]))

    return kernel


def gated_silu(joined: Tensor) -> Tensor:
    """silu(gate) * up (…, N) of both next to each other in bfloat16, (…, 2N) and contiguous."""
    num_rows, size = joined.shape[:-1].numel(), joined.shape[-1] // 2
    out = joined.new_empty(*joined.shape[:-1], size)
    _gated_silu_kernel(num_rows, joined.view(num_rows, -1), out.view(num_rows, size))
    return out


@RowKernel
def _gated_silu_kernel(described: str) -> Kernel:
    """:func:`gated_silu` for rows of (R, 2N)."""

    def kernel(job: Any) -> None:
        vectorise_widely()
        joined, out = arrays(job, described)
        size = out.shape[1]
        for row in rows(job):
            gates, ups = joined[row, :size], joined[row, size:]
            for i in range(size):
                gate = as_float(gates[i])
                falling = exp(-abs(gate))  # of arguments up to 1
                rising = np.float32(1) if gate > np.float32(0) else falling
                silu = gate * (rising / (np.float32(1) + falling))
                out[row, i] = as_bfloat16(silu * as_float(ups[i]))

    return kernel


def rotate(heads: Tensor, cos: Tensor, sin: Tensor, num_rotated: int) -> None:
    """Apply rotary position embeddings to the first of heads (B, L, H, D), in place.

    Heads are bfloat16 and contiguous; the halves of `cos` and `sin` (B, L, D) belong to a head's.
    """
    batch, length, num_heads, size = heads.shape
    tensors = heads.view(-1, num_heads, size), cos.view(-1, size), sin.view(-1, size)
    _rotate_kernel(batch * length, *tensors, constants=(num_rotated,))


@RowKernel
def _rotate_kernel(described: str, num_rotated: int) -> Kernel:
    """:func:`rotate` for rows of (R, H, D)."""

    def kernel(job: Any) -> None:
        vectorise_widely()
        heads, cos, sin = arrays(job, described)
        half = heads.shape[2] // 2
        for row in rows(job):
            low_cos, high_cos = cos[row, :half], cos[row, half:]
            low_sin, high_sin = sin[row, :half], sin[row, half:]
            for head in range(num_rotated):
                lows, highs = heads[row, head, :half], heads[row, head, half:]
                for i in range(half):
                    low, high = as_float(lows[i]), as_float(highs[i])
                    lows[i] = as_bfloat16(low * as_float(low_cos[i]) - high * as_float(low_sin[i]))
                    highs[i] = as_bfloat16(
                        high * as_float(high_cos[i]) + low * as_float(high_sin[i])
                    )

    return kernel
