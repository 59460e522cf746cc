"""The kernels behind :mod:`zerogap.engine.cpu_kernels`, compiled by numba when first used.

The compiled code is cached next to this file or in the user's cache folder. bfloat16 values arrive
as their 16 bits, since numpy has no such type, and are widened exactly.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

LANES = 16  # running maxima of a row's scores
TOKEN_BLOCK = 64  # tokens whose weights are summed before the running sum is taken
LN2_HIGH = 355 / 512  # ln 2 in few digits; its product with a small integer is exact
# Sums may be taken in any order, which lets loops be vectorised; NaN and infinity keep their rules.
FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}

Array = NDArray[Any]


def compiled(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a kernel, cached on disk if there is a folder that can be written to."""
    kernel: Callable[..., None]
    try:
        kernel = njit(nogil=True, cache=True, fastmath=FAST_SUMS)(function)
    except RuntimeError:  # in a read-only container, say
        kernel = njit(nogil=True, fastmath=FAST_SUMS)(function)
    return kernel


@intrinsic
def _vectorise_widely(_):  # type: ignore[no-untyped-def]
    """In compiled code: let LLVM use vectors of 512 bits in the calling function.

    LLVM prefers 256 bits on some processors that have 512, where the sums of a draw from 49,152
    logits then took four times as long.
    """

    def generate(context, builder, *_):  # type: ignore[no-untyped-def]
        # llvmlite's own `add` knows a fixed list of attributes.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


def _float(stored: Any) -> Any:
    """In compiled code, the float that is stored: itself, or the bits of a bfloat16."""


# numba compares this signature with that of the lambdas, which cannot be annotated.
def _implement_float(stored):  # type: ignore[no-untyped-def]
    if isinstance(stored, types.Integer):
        return lambda stored: np.uint32(np.uint32(stored) << np.uint32(16)).view(np.float32)
    return lambda stored: stored


overload(_float, inline="always")(_implement_float)


def _exp_python(x: Any) -> Any:
    """exp(x) for x ≤ 1 in float32, with a relative error of 3e-7; 0 below exp(-87).

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


# Sums keep their order here: the two products with parts of ln 2 must be subtracted one by one.
exp = njit(fastmath={"contract"})(_exp_python)


def _exp(x: Any) -> Any:
    """In compiled code, :func:`exp` in float32 and `math.exp` in float64."""


def _implement_exp(x):  # type: ignore[no-untyped-def]
    return (lambda x: exp(x)) if x == types.float32 else (lambda x: math.exp(x))


overload(_exp)(_implement_exp)


def _as_ordered_python(bits: Any) -> Any:
    """Map the bits of a bfloat16 to an integer in the same order, and back."""
    signed = np.int16(bits)
    return np.int16(signed ^ np.int16((signed >> np.int16(15)) & np.int16(0x7FFF)))


_as_ordered = njit(_as_ordered_python)


def _largest(stored: Array) -> Any:
    """In compiled code, the largest of stored floats, or -inf; NaN may be passed over."""


# A loop with one running maximum of floats is not vectorised: it would have to treat NaN.
def _implement_largest(stored):  # type: ignore[no-untyped-def]
    def of_bits(stored):  # type: ignore[no-untyped-def]
        largest = _as_ordered(np.uint16(0xFF80))  # -inf
        for i in range(len(stored)):
            largest = max(largest, _as_ordered(stored[i]))
        return _float(np.uint16(_as_ordered(largest)))

    def of_floats(stored):  # type: ignore[no-untyped-def]
        lanes = np.full(LANES, -np.inf, stored.dtype)
        in_lanes = len(stored) // LANES * LANES
        for first in range(0, in_lanes, LANES):
            for lane in range(LANES):
                lanes[lane] = max(lanes[lane], stored[first + lane])
        largest = lanes.max()
        for i in range(in_lanes, len(stored)):
            largest = max(largest, stored[i])
        return largest

    return of_bits if isinstance(stored.dtype, types.Integer) else of_floats


overload(_largest)(_implement_largest)


@compiled
def attend(
    query: Array,
    key: Array,
    value: Array,
    num_own: Array,
    prefix_out: Array,
    prefix_weight: Array,
    question_out: Array,
    question_weight: Array,
    cell_of_row: Array,
    out: Array,
    first: int,
    last: int,
) -> None:
    """:func:`zerogap.engine.cpu_kernels.attend` for rows first … last-1.

    Per row: scores of its own tokens, then per head the softmax over these and the two shared
    parts, then the weighted sum. Tokens are the outer loop and heads the inner one, so that keys
    and values are read in the order in which they are stored. The largest score is found in several
    lanes, because a single running maximum is not vectorised: it would have to treat NaN.
    """
    _vectorise_widely()
    _, heads, size = query.shape
    group = heads // key.shape[2]
    key_head, member = np.arange(heads) // group, np.arange(heads) % group
    cells = question_out.shape[2] // group  # of a question
    dtype = out.dtype
    row_query, row_out = np.empty((heads, size), dtype), np.empty((heads, size), dtype)
    scores = np.empty((heads, key.shape[1] + LANES), dtype)
    lanes = np.empty(LANES, dtype)
    for row in range(first, last):
        question, in_question = cell_of_row[row] // cells, cell_of_row[row] % cells * group
        for head in range(heads):
            for d in range(size):
                row_query[head, d] = _float(query[row, head, d])
        for token in range(num_own[row]):
            for head in range(heads):
                read, score = key_head[head], dtype.type(0)
                for d in range(size):
                    score += row_query[head, d] * _float(key[row, token, read, d])
                scores[head, token] = score
        num_tokens = num_own[row]
        padded = -(-num_tokens // LANES) * LANES
        for head in range(heads):
            read = key_head[head]
            of_prefix, of_question = row * group + member[head], in_question + member[head]
            to_prefix = prefix_weight[read, of_prefix]
            to_question = question_weight[question, read, of_question]
            scores[head, num_tokens:padded] = -np.inf
            lanes[:] = max(to_prefix, to_question)
            for token in range(0, padded, LANES):
                for lane in range(LANES):
                    lanes[lane] = max(lanes[lane], scores[head, token + lane])
            largest = lanes.max()
            to_prefix, to_question = _exp(to_prefix - largest), _exp(to_question - largest)
            total = to_prefix + to_question
            for token in range(padded):
                weight = _exp(scores[head, token] - largest)
                scores[head, token] = weight
                total += weight
            for token in range(num_tokens):
                scores[head, token] /= total
            to_prefix, to_question = to_prefix / total, to_question / total
            for d in range(size):
                row_out[head, d] = to_prefix * _float(prefix_out[read, of_prefix, d])
                row_out[head, d] += to_question * _float(
                    question_out[question, read, of_question, d]
                )
        for token in range(num_own[row]):
            for head in range(heads):
                read, weight = key_head[head], scores[head, token]
                for d in range(size):
                    row_out[head, d] += weight * _float(value[row, token, read, d])
        out[row] = row_out


def _as_bfloat16_python(value: Any) -> Any:
    """The 16 bits of a float32 rounded to bfloat16, to even where it is in the middle."""
    bits = np.float32(value).view(np.uint32)
    half = np.uint32(0x7FFF) + np.uint32(np.uint32(bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(half)) >> np.uint32(16))


_as_bfloat16 = njit(_as_bfloat16_python)


@compiled
def softmax(
    num_queries: int,
    scores: Array,
    remainder: Array,
    num_keys: Array,
    largest: Array,
    total: Array,
    first: int,
    last: int,
) -> None:
    """:func:`zerogap.engine.cpu_kernels.softmax` for rows first … last-1 of (B·A, K).

    A NaN reaches the sum through its weight.
    """
    _vectorise_widely()
    weights = np.empty(scores.shape[1], np.float32)
    for row in range(first, last):
        visible = num_keys[row // num_queries]
        row_largest = _largest(scores[row, :visible])
        row_total = np.float32(0)
        for key in range(visible):
            weight = exp(_float(scores[row, key]) - row_largest + _float(remainder[row, key]))
            weights[key] = weight
            row_total += weight
        largest[row], total[row] = row_largest, row_total
        scale = np.float32(1) / row_total
        for key in range(visible):
            scores[row, key] = _as_bfloat16(weights[key] * scale)
        for key in range(visible, scores.shape[1]):
            scores[row, key] = np.uint16(0)


@compiled
def draw(
    scale: float,
    logits: Array,
    uniform: Array,
    draws: Array,
    ends: Array,
    tokens: Array,
    first: int,
    last: int,
) -> None:
    """:func:`zerogap.engine.cpu_kernels.draw` for rows first … last-1.

    A first pass over a row's logits gives the largest of them, a second one running sums over
    blocks of tokens. Each draw then finds its block by bisection and its token by summing within
    the block. `draws` are the indices of the uniforms, sorted by row; those of a row end at
    `ends[row]`.
    """
    _vectorise_widely()
    vocabulary = logits.shape[1]
    running_sums = np.empty(-(-vocabulary // TOKEN_BLOCK))
    for row in range(first, last):
        largest = _largest(logits[row])
        total: Any = 0.0
        for block in range(len(running_sums)):
            block_logits = logits[row, block * TOKEN_BLOCK : (block + 1) * TOKEN_BLOCK]
            block_sum = np.float32(0)
            for i in range(len(block_logits)):
                block_sum += exp((_float(block_logits[i]) - largest) * scale)
            total += block_sum
            running_sums[block] = total
        for draw_index in draws[ends[row - 1] if row else 0 : ends[row]]:
            tokens[draw_index] = -1
            threshold = uniform[draw_index] * total
            block = np.searchsorted(running_sums, threshold, side="right")
            passed = running_sums[block - 1] if block else 0.0
            for token in range(block * TOKEN_BLOCK, min((block + 1) * TOKEN_BLOCK, vocabulary)):
                weight = exp((_float(logits[row, token]) - largest) * scale)
                # The block's sum may be larger than the sum of its tokens: the last token with
                # any weight is drawn then.
                if passed <= threshold and weight > 0:
                    tokens[draw_index] = token
                passed += weight
