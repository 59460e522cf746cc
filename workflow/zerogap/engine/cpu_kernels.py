"""Compiled kernels for a CPU: attention and drawing, in float32 and bfloat16.

What the functions do has an equivalent in plain PyTorch (in `shared_prompt_attention` and
`drawing`), which is used for every other dtype and device, and instead of these if the environment
variable `ZEROGAP_CPU_KERNELS` is 0. The kernels themselves are in
:mod:`zerogap.engine.cpu_kernels_numba`; docs/benchmarks says how much they gain. A row's result
does not depend on how rows are distributed over threads.
"""

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MIN_ROWS_PER_CALL = 8  # fewer rows are not worth a call of a kernel

_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def apply_to(tensor: Tensor) -> bool:
    """Whether the kernels take a tensor: bfloat16 or float32 on a CPU, unless switched off."""
    return (
        tensor.device.type == "cpu"
        and tensor.dtype in (torch.bfloat16, torch.float32)
        and os.environ.get("ZEROGAP_CPU_KERNELS") != "0"
    )


def attend(
    query: Tensor,
    own: tuple[Tensor, Tensor],
    num_own: Tensor,
    prefix: tuple[Tensor, Tensor],
    question: tuple[Tensor, Tensor],
    cell_of_row: Tensor,
) -> Tensor:
    """Attention of rows to their own tokens, in one softmax with prefix and question.

    The two other parts are as :mod:`zerogap.engine.part_attention` returns them, where the G query
    heads that read the same keys are queries of these keys.

    Args:
        query: (R, H, D), scaled.
        own: keys and values (≥R, T, Hkv, D) of each row's own tokens.
        num_own: (R,) own tokens of each row; the others are padding.
        prefix: the output (Hkv, R·G, D) of attention to the prefix, and the logarithm (Hkv, R·G) of
            its summed weights in float32 or higher.
        question: the same for the questions, (Q, Hkv, W·G, D) and (Q, Hkv, W·G), for W grid cells
            per question.
        cell_of_row: (R,) each row's grid cell, of the Q·W.

    Returns:
        (R, H, D) in the dtype of the summed weights, in which all sums are taken.
    """
    from zerogap.engine import cpu_kernels_numba  # loading numba takes time

    out = prefix[1].new_empty(query.shape)
    tensors = [query, *own, num_own, *prefix, *question, cell_of_row, out]
    run_by_rows(cpu_kernels_numba.attend, len(query), *map(as_numpy, tensors))
    return out


def softmax(scores: Tensor, remainder: Tensor, num_keys: Tensor) -> Tensor:
    """Replace scores by the softmax of scores + remainders, in place.

    Args:
        scores: (B, A, K) in bfloat16, contiguous; the weights of keys that are not visible are 0.
        remainder: (B, A, K) in bfloat16, what rounding has taken from the scores.
        num_keys: (B,) only the first so many keys are visible, at least one.

    Returns:
        The logarithm of each query's summed weights (B, A) in float32, before they were divided
        by their sum.
    """
    from zerogap.engine import cpu_kernels_numba  # loading numba takes time

    batch, num_queries, num_columns = scores.shape
    largest, total = scores.new_empty(2, batch, num_queries, dtype=torch.float32)
    tensors = [scores.view(-1, num_columns), remainder.view(-1, num_columns), num_keys]
    tensors += [largest.view(-1), total.view(-1)]
    run_by_rows(
        cpu_kernels_numba.softmax, batch * num_queries, num_queries, *map(as_numpy, tensors)
    )
    log_sum: Tensor = largest + total.log()
    return log_sum


def draw(logits: Tensor, uniform: Tensor, temperature: float, row: Tensor) -> Tensor:
    """Draw tokens (N,) by inverse CDF from softmax(logits (R, V) / temperature).

    Weights and the sums of a block of tokens are float32, sums of blocks float64.

    Args:
        logits: (R, V).
        uniform: (N,) uniforms in [0, 1).
        temperature: divides the logits.
        row: (N,) the row of logits that each uniform draws from.

    Returns:
        The tokens; -1 where a row's logits are NaN.
    """
    from zerogap.engine import cpu_kernels_numba  # loading numba takes time

    tokens = torch.empty_like(row)
    ends = torch.bincount(row, minlength=len(logits)).cumsum(0)
    tensors = [logits, uniform, row.argsort(), ends, tokens]
    scale = np.float32(1 / temperature)
    run_by_rows(cpu_kernels_numba.draw, len(logits), scale, *map(as_numpy, tensors))
    return tokens


def as_numpy(tensor: Tensor) -> NDArray[Any]:
    """The tensor as an array; bfloat16, which numpy lacks, as its 16 bits.

    It is made contiguous, because numba compiles a kernel for every memory layout that it meets.
    """
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    array: NDArray[Any] = tensor.numpy()
    return array


def run_by_rows(kernel: Callable[..., None], num_rows: int, *arguments: Any) -> None:
    """Run a kernel on rows 0 … num_rows-1, in pieces distributed over PyTorch's threads.

    PyTorch's OpenMP threads keep spinning for a while after each of its calls. A second pool of
    threads would share the cores with them and run at half speed, so the kernel borrows PyTorch's
    own. Where that is not possible the caller does all pieces itself.

    Args:
        kernel: takes the arguments and the first and last row of a piece.
        num_rows: rows in all.
        arguments: of the kernel.
    """
    kernel(*arguments, 0, 0)  # compiles here: a worker thread's stack is too small for that
    num_threads = torch.get_num_threads()
    # Four pieces per thread, since rows take different times.
    piece = max(MIN_ROWS_PER_CALL, -(-num_rows // (4 * num_threads)))
    starts = iter(range(0, num_rows, piece))  # shared by all threads
    errors: list[BaseException] = []
    thread_ids: set[int] = set()

    def work(_: object = None) -> None:
        try:
            thread_ids.add(threading.get_ident())
            for first in starts:
                kernel(*arguments, first, min(first + piece, num_rows))
        except BaseException as error:  # ctypes would drop it
            errors.append(error)

    parallel = _openmp_parallel() if num_threads > 1 and num_rows > piece else None
    if parallel is None:
        work()
    else:
        parallel(_Callback(work), None, num_threads, 0)
        # An interrupt that arrives between ctypes and our first line is dropped by ctypes; the
        # caller's own part has not run then.
        if threading.get_ident() not in thread_ids:
            raise KeyboardInterrupt
    if errors:
        raise errors[0]


@cache
def _openmp_parallel() -> Callable[..., Any] | None:
    """GNU OpenMP's "call this function in n threads", from the library that PyTorch uses.

    None where PyTorch has its threads from another library.
    """
    try:
        library = Path(torch.__file__).parent / "lib/libtorch_cpu.so"
        return ctypes.CDLL(str(library)).GOMP_parallel
    except (OSError, AttributeError):
        return None
