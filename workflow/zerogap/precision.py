"""Low precision on a CPU: used where it is fast, replaced by float32 where it is not.

On a CPU with AVX2 alone, PyTorch multiplies a hundred times more slowly in bfloat16 than in
float32. Which formats a CPU is fast in depends on its instructions and on PyTorch, so one small
product is timed instead of looking for names of instructions. docs/engine.md has the figures, and
says what float32 changes.
"""

import timeit
from functools import cache

import torch

_SHAPE = (64, 512)
_REPEATS = 21  # the fastest counts, whatever else is running; the first one prepares the kernel


def usable_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """The dtype itself, or float32 on a CPU that is slow in it."""
    is_low = dtype.itemsize < torch.float32.itemsize
    if is_low and device.type == "cpu" and slowdown(dtype) > 1:
        return torch.float32
    return dtype


def used_precision(dtype: str) -> str:
    """The name of :func:`usable_dtype` on the device that models are loaded on."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return str(usable_dtype(getattr(torch, dtype), device)).removeprefix("torch.")


@cache
def slowdown(dtype: torch.dtype) -> float:
    """Time of a matrix product on this CPU, relative to the same in float32."""
    return _seconds(dtype) / _seconds(torch.float32)


def _seconds(dtype: torch.dtype) -> float:
    rows, size = _SHAPE
    factors = torch.ones(rows, size, dtype=dtype), torch.ones(size, size, dtype=dtype)
    return min(timeit.repeat(lambda: torch.mm(*factors), number=1, repeat=_REPEATS))
