"""What a decoding step does on a CPU in bfloat16 and PyTorch has no fast kernel for.

Compiled by numba when first used, and kept beside this file or in the user's cache. Rows are shared
out to as many threads as PyTorch has; a row's result does not depend on how. bfloat16 comes as the
16 bits it is, since numpy has no such type, and is widened exactly.
"""

import ctypes
import math
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numba import njit, types
from numba.extending import overload
from torch import Tensor

_LEAST = 8  # rows worth a call of a kernel
_BLOCK = 64  # tokens summed together when a token is drawn
_LN2_FIRST = 355 / 512
_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SUMS = {"reassoc", "contract", "nsz", "arcp"}  # in any order; numbers that are none stay so


def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    try:
        return njit(nogil=True, cache=True, fastmath=_SUMS)(function)
    except RuntimeError:  # nowhere to keep it: in a container nobody may write to, say
        return njit(nogil=True, fastmath=_SUMS)(function)


def attend(
    query: Tensor,
    own: tuple[Tensor, Tensor],
    known: Tensor,
    prefix: tuple[Tensor, Tensor],
    question: tuple[Tensor, Tensor],
    cell: Tensor,
) -> Tensor:
    """Attention of rows to their own tokens, in one softmax with what they have already seen.

    Args:
        query: (R, H, D), scaled.
        own: keys and values (≥R, T, Hkv, D) of each row's own tokens.
        known: (R,) how many own tokens a row has; the first ones.
        prefix: the output (R, H, D) of attention to the prefix, and the log of its summed weights
            (R, H) in float32 or more.
        question: the same of the questions, (C, H, D) and (C, H), in another order of rows.
        cell: (R,) where a row is in that order.

    Returns:
        (R, H, D) in the weights' type, as are all sums.
    """
    out = prefix[1].new_empty(query.shape)
    arrays = [query, *own, known, *prefix, *question, cell, out]
    _by_rows(_attend, len(query), *map(_numpy, arrays))
    return out


@_compiled
def _attend(
    query, key, value, known, of_prefix, prefix_weight, of_question, question_weight, cell, out,
    first, last,
):  # fmt: skip
    _, heads, size = query.shape
    source = np.arange(heads) // (heads // key.shape[2])  # the key head that a query head reads
    kind = out.dtype
    asked, summed = np.empty((heads, size), kind), np.empty((heads, size), kind)
    scores = np.empty((heads, key.shape[1]), kind)
    for row in range(first, last):
        for head in range(heads):
            for d in range(size):
                asked[head, d] = _number(query[row, head, d])
        # Tokens outside, heads inside: so a row's keys are read as they lie.
        for token in range(known[row]):
            for head in range(heads):
                group, score = source[head], kind.type(0)
                for d in range(size):
                    score += asked[head, d] * _number(key[row, token, group, d])
                scores[head, token] = score
        for head in range(heads):
            to_prefix = prefix_weight[row, head]
            to_question = question_weight[cell[row], head]
            top = max(to_prefix, to_question)
            for token in range(known[row]):
                top = max(top, scores[head, token])
            to_prefix, to_question = math.exp(to_prefix - top), math.exp(to_question - top)
            total = to_prefix + to_question
            for token in range(known[row]):
                weight = math.exp(scores[head, token] - top)
                scores[head, token] = weight
                total += weight
            for token in range(known[row]):
                scores[head, token] /= total
            to_prefix /= total
            to_question /= total
            for d in range(size):
                summed[head, d] = to_prefix * _number(of_prefix[row, head, d])
                summed[head, d] += to_question * _number(of_question[cell[row], head, d])
        for token in range(known[row]):
            for head in range(heads):
                group, weight = source[head], scores[head, token]
                for d in range(size):
                    summed[head, d] += weight * _number(value[row, token, group, d])
        out[row] = summed


def draw(logits: Tensor, uniform: Tensor, temperature: float, row: Tensor) -> Tensor:
    """Tokens (N,) by inverse-CDF from softmax(logits (R, V) / temperature) and uniforms (N,) < 1.

    Weights and the sums of a block of tokens are float32, sums of blocks float64.

    Args:
        row: (N,) the row of logits that each uniform draws from.

    Returns:
        The tokens; -1 where a row's logits are not numbers.
    """
    tokens = torch.empty_like(row)
    ends = torch.bincount(row, minlength=len(logits)).cumsum(0)
    arrays = [logits, logits.amax(-1), uniform, row.argsort(), ends, tokens]
    _by_rows(_draw, len(logits), np.float32(1 / temperature), *map(_numpy, arrays))
    return tokens


@_compiled
def _draw(scale, logits, largest, uniform, members, ends, tokens, first, last):
    size = logits.shape[1]
    sums = np.empty(-(-size // _BLOCK))  # running, over blocks of tokens
    for row in range(first, last):
        top, total = _number(largest[row]), 0.0
        for block in range(len(sums)):
            part, weight = logits[row, block * _BLOCK : (block + 1) * _BLOCK], np.float32(0)
            for place in range(len(part)):
                weight += _exp((_number(part[place]) - top) * scale)
            total += weight
            sums[block] = total
        for member in members[ends[row - 1] if row else 0 : ends[row]]:
            tokens[member] = -1
            threshold = uniform[member] * total
            block = np.searchsorted(sums, threshold, side="right")
            passed = sums[block - 1] if block else 0.0
            for token in range(block * _BLOCK, min((block + 1) * _BLOCK, size)):
                weight = _exp((_number(logits[row, token]) - top) * scale)
                # Nor does a block's sum pass where the sum of its tokens does: stay on a real one.
                if passed <= threshold and weight > 0:
                    tokens[member] = token
                passed += weight


@njit(fastmath={"contract"})  # no other order: the two products with ln 2 must come one by one
def _exp(x):
    """exp of x ≤ 0 in float32, to 3e-7 of it; 0 below exp(-87). Calls nothing, so that a loop of it
    is vectorised.
    """
    power = np.floor(x * np.float32(1 / math.log(2)) + np.float32(0.5))
    # ln 2 in two parts, of which the first has few digits: its product is exact.
    rest = x - power * np.float32(_LN2_FIRST) - power * np.float32(math.log(2) - _LN2_FIRST)
    series = rest * np.float32(1 / 720) + np.float32(1 / 120)
    series = series * rest + np.float32(1 / 24)
    series = series * rest + np.float32(1 / 6)
    series = series * rest + np.float32(1 / 2)
    series = series * rest * rest + rest + np.float32(1)
    scale = np.uint32(np.uint32(np.int32(power) + 127) << np.uint32(23)).view(np.float32)
    return np.float32(0) if power < -126 else series * scale


def _number(stored):
    """In compiled code, a float as it is stored: itself, or the bits of a bfloat16."""


@overload(_number, inline="always")
def _widened(stored):
    if isinstance(stored, types.Integer):
        return lambda stored: np.uint32(np.uint32(stored) << np.uint32(16)).view(np.float32)
    return lambda stored: stored


def _numpy(tensor: Tensor) -> np.ndarray:
    tensor = tensor.contiguous()  # for every other layout a kernel would be compiled anew
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _by_rows(kernel: Callable[..., None], rows: int, *arrays: np.ndarray) -> None:
    """Run a compiled kernel on rows 0 … rows-1, a few at a time in each thread.

    The threads are PyTorch's own, which it keeps spinning between its calls: beside them, others
    would have half a core each. Where it has them from another library the caller works alone.
    """
    kernel(*arrays, 0, 0)  # compiled here: a worker's stack is small
    threads = torch.get_num_threads()
    share = max(_LEAST, -(-rows // (4 * threads)))  # rows are of different lengths
    starts = iter(range(0, rows, share))  # one for all threads
    raised: list[BaseException] = []
    present = set()

    def work(_: object = None) -> None:
        try:
            present.add(threading.get_ident())
            for first in starts:
                kernel(*arrays, first, min(first + share, rows))
        except BaseException as error:  # ctypes would drop it
            raised.append(error)

    if threads > 1 and rows > share and (team := _team()):
        team(_WORK(work), None, threads, 0)
        # An interrupt between ctypes and our first line is dropped all the same: the caller's part.
        if threading.get_ident() not in present:
            raise KeyboardInterrupt
    else:
        work()
    if raised:
        raise raised[0]


@cache
def _team() -> Callable[..., None] | None:
    """GNU OpenMP's "call this in so many threads", from the library that PyTorch uses."""
    try:
        library = Path(torch.__file__).parent / "lib/libtorch_cpu.so"
        return ctypes.CDLL(str(library)).GOMP_parallel
    except (OSError, AttributeError):
        return None
