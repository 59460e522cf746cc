"""The kernels behind :mod:`zerogap.engine.cpu_kernels`, compiled by numba when first used.

bfloat16 values arrive as their 16 bits, since numpy has no such type, and are widened exactly.
Scalars come in arrays of one element.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from zerogap.engine.row_kernels import FAST_SUMS, RowKernel, arrays, rows

CACHE_LINE = 64  # bytes
LANES = 16  # running maxima of a row's scores
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


def start_reading(builder: Any, address: Any) -> None:
    """Generate the instruction that starts to read the cache line of an address."""
    address = builder.bitcast(address, ir.IntType(8).as_pointer())
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
    name = "llvm.prefetch.p0" if str(address.type) == "ptr" else "llvm.prefetch.p0i8"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(function, [address, number(0), number(3), number(1)])


@intrinsic
def _prefetch(_, array, index):  # type: ignore[no-untyped-def]
    """In compiled code, start to read a cache line: that of a contiguous array's element."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        start_reading(builder, builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, index), generate


@RowKernel
def attend(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.attend`.

    Per row: scores of its own tokens, then per head the softmax over these and the two shared
    parts, then the weighted sum. Tokens are the outer loop and heads the inner one, so that keys
    and values are read in the order in which they are stored. The largest score is found in several
    lanes, because a single running maximum is not vectorised: it would have to treat NaN.
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
        _, heads, size = query.shape
        group = heads // key.shape[2]
        key_head, member = np.arange(heads) // group, np.arange(heads) % group
        cells = question_out.shape[2] // group  # of a question
        width, token_size = key.shape[1], key.shape[2] * size
        line = CACHE_LINE // key.itemsize
        dtype = out.dtype
        row_query, row_out = np.empty((heads, size), dtype), np.empty((heads, size), dtype)
        scores = np.empty((heads, key.shape[1] + LANES), dtype)
        lanes = np.empty(LANES, dtype)
        for row in rows(job):
            question, in_question = cell_of_row[row] // cells, cell_of_row[row] % cells * group
            for head in range(heads):
                for d in range(size):
                    row_query[head, d] = _float(query[row, head, d])
            for token in range(num_own[row]):
                for item in range(0, token_size, line):
                    _prefetch(value, (row * width + token) * token_size + item)
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
                for item in range(0, token_size, line):
                    _prefetch(key, ((row + 1) * width + token) * token_size + item)
                for head in range(heads):
                    read, weight = key_head[head], scores[head, token]
                    for d in range(size):
                        row_out[head, d] += weight * _float(value[row, token, read, d])
            out[row] = row_out

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


def _as_bfloat16_python(value: Any) -> Any:
    """The 16 bits of a float32 rounded to bfloat16, to even where it is in the middle."""
    bits = np.float32(value).view(np.uint32)
    half = np.uint32(0x7FFF) + np.uint32(np.uint32(bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(half)) >> np.uint32(16))


as_bfloat16 = njit(_as_bfloat16_python)


@RowKernel
def draw(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.draw`.

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

    return kernel


@RowKernel
def rms_norm(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.rms_norm` for rows of (R, N)."""

    def kernel(job: Any) -> None:
        vectorise_widely()
        values, weight, epsilon, out = arrays(job, described)
        size = values.shape[1]
        for row in rows(job):
            squares = np.float32(0)
            for i in range(size):
                value = _float(values[row, i])
                squares += value * value
            scale = np.float32(1) / np.sqrt(squares / np.float32(size) + epsilon[0])
            for i in range(size):
                normed = as_bfloat16(_float(values[row, i]) * scale)
                out[row, i] = as_bfloat16(_float(normed) * _float(weight[i]))

    return kernel


def _silu_python(value: Any) -> Any:
    falling = exp(-abs(value))  # of arguments up to 1
    rising = np.float32(1) if value > np.float32(0) else falling
    return value * (rising / (np.float32(1) + falling))


silu = njit(fastmath=FAST_SUMS, error_model="numpy")(_silu_python)


@RowKernel
def gated_silu(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.gated_silu` for rows of (R, 2N)."""

    def kernel(job: Any) -> None:
        vectorise_widely()
        joined, out = arrays(job, described)
        size = out.shape[1]
        for row in rows(job):
            gates, ups = joined[row, :size], joined[row, size:]
            for i in range(size):
                out[row, i] = as_bfloat16(silu(_float(gates[i])) * _float(ups[i]))

    return kernel


@RowKernel
def rotate(described: str) -> Kernel:
    """:func:`zerogap.engine.cpu_kernels.rotate` for rows of (R, H, D)."""

    def kernel(job: Any) -> None:
        vectorise_widely()
        heads, cos, sin, num_rotated = arrays(job, described)
        half = heads.shape[2] // 2
        for row in rows(job):
            low_cos, high_cos = cos[row, :half], cos[row, half:]
            low_sin, high_sin = sin[row, :half], sin[row, half:]
            for head in range(num_rotated[0]):
                lows, highs = heads[row, head, :half], heads[row, head, half:]
                for i in range(half):
                    low, high = _float(lows[i]), _float(highs[i])
                    lows[i] = as_bfloat16(low * _float(low_cos[i]) - high * _float(low_sin[i]))
                    highs[i] = as_bfloat16(high * _float(high_cos[i]) + low * _float(high_sin[i]))

    return kernel
