"""Compiles kernels that work on rows, and runs them on PyTorch's own threads.

PyTorch's OpenMP threads keep spinning for a while after each of its calls. A second pool of threads
would share the cores with them and run at half speed, so a kernel borrows PyTorch's own. A kernel
may take a few microseconds only, so no thread may wait for Python's global lock either. A kernel is
therefore a C function of one pointer, the *job*: where the arrays are, and which row is next.

The compiled code is cached next to the kernel's file or in the user's cache folder. numba compiles
a kernel again when its own file has changed; a digest in the description of the arrays does the
same for the files that it uses.
"""

import ctypes
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from torch import Tensor

PIECES_PER_THREAD = 4  # rows take different times
# Sums may be taken in any order, which lets loops be vectorised; NaN and infinity keep their rules.
FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}
# By Python's rules every division would be checked for zero, and loops with one not vectorised.
OPTIONS: dict[str, Any] = {"fastmath": FAST_SUMS, "error_model": "numpy"}

_NUMPY_TYPES = {
    torch.bfloat16: "uint16",  # its bits: numpy has no such type
    torch.float32: "float32",
    torch.float64: "float64",
    torch.int64: "int64",
}
# A job is int64 numbers: these three, then the address and the shape of each array.
_NEXT_ROW, _ROWS_PER_PIECE, _NUM_ROWS, _FIRST_ARRAY = range(4)


class RowKernel:
    """A kernel on rows, compiled for the types of arrays that it is called with.

    Args:
        make: makes the C function from a description of the arrays, in numba's Python::

                def make(described):
                    def kernel(job):
                        one, other = arrays(job, described)
                        for row in rows(job):
                            other[row] = 2 * one[row]
                    return kernel

            A row must not read what another row writes. Constants that a kernel is called with
            follow the description.
        min_rows_per_piece: fewer rows are not worth a piece of their own.
    """

    def __init__(
        self, make: Callable[..., Callable[..., None]], min_rows_per_piece: int = 8
    ) -> None:
        self._make = make
        self._min_rows_per_piece = min_rows_per_piece
        self._compiled: dict[tuple[object, ...], Any] = {}

    def __call__(self, num_rows: int, *tensors: Tensor, constants: tuple[float, ...] = ()) -> None:
        """Run the kernel on rows 0 … num_rows-1, in pieces distributed over PyTorch's threads.

        The arrays are on the CPU; those that are written must be contiguous. bfloat16 arrives as
        its 16 bits. Other constants compile another version.
        """
        contiguous = [tensor.contiguous() for tensor in tensors]
        function = self._function(contiguous, constants)
        num_threads = torch.get_num_threads()
        piece = max(self._min_rows_per_piece, -(-num_rows // (PIECES_PER_THREAD * num_threads)))
        numbers = [0, piece, num_rows]
        for tensor in contiguous:
            numbers += [tensor.data_ptr(), *tensor.shape]
        job = (ctypes.c_int64 * len(numbers))(*numbers)
        parallel = _openmp_parallel() if num_threads > 1 and num_rows > piece else None
        if parallel is None:
            function.ctypes(job)
        else:
            parallel(function.ctypes, job, num_threads, 0)

    def _function(self, tensors: list[Tensor], constants: tuple[float, ...]) -> Any:
        """The C function for arrays of these types."""
        kinds = ",".join(f"{_NUMPY_TYPES[x.dtype]}:{x.ndim}" for x in tensors)
        described = f"{_sources_digest()};{kinds}"
        version = (described, *constants)
        if version not in self._compiled:
            kernel, signature = self._make(*version), types.void(types.CPointer(types.int64))
            try:
                compiled = cfunc(signature, cache=True, **OPTIONS)(kernel)
            except RuntimeError:  # no folder can be written to: in a read-only container, say
                compiled = cfunc(signature, **OPTIONS)(kernel)
            self._compiled[version] = compiled
        return self._compiled[version]


@intrinsic(prefer_literal=True)
def arrays(_, job, described):  # type: ignore[no-untyped-def]
    """In compiled code, the arrays of a job as a tuple."""
    kinds = []
    for array in described.literal_value.partition(";")[2].split(","):
        name, num_dimensions = array.split(":")
        kinds.append(types.Array(getattr(types, name), int(num_dimensions), "C"))

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        made, at = [], _FIRST_ARRAY
        for kind in kinds:
            data, *shape = (
                builder.load(builder.gep(arguments[0], [ir.IntType(64)(at + offset)]))
                for offset in range(1 + kind.ndim)
            )
            at += 1 + kind.ndim
            strides = [ir.IntType(64)(kind.dtype.bitwidth // 8)]
            for length in shape[:0:-1]:
                strides.insert(0, builder.mul(strides[0], length))
            array = context.make_array(kind)(context, builder)
            populate_array(
                array,
                data=builder.inttoptr(data, array.data.type),
                shape=shape,
                strides=strides,
                itemsize=ir.IntType(64)(kind.dtype.bitwidth // 8),
                meminfo=None,
            )
            made.append(array._getvalue())
        return context.make_tuple(builder, signature.return_type, made)

    return types.Tuple(kinds)(job, described), generate


@njit  # type: ignore[untyped-decorator]
def rows(job: Any) -> Iterator[int]:
    """In compiled code, the rows that a thread computes: pieces are taken until none is left."""
    first = _take_piece(job)
    while first < job[_NUM_ROWS]:
        last = min(first + job[_ROWS_PER_PIECE], job[_NUM_ROWS])
        for row in range(first, last):  # noqa: UP028 (numba lacks "yield from")
            yield row
        first = _take_piece(job)


@intrinsic
def _take_piece(_, job):  # type: ignore[no-untyped-def]
    """In compiled code, the first row of the next piece."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        next_row, piece = (
            builder.gep(arguments[0], [ir.IntType(64)(at)]) for at in (_NEXT_ROW, _ROWS_PER_PIECE)
        )
        return builder.atomic_rmw("add", next_row, builder.load(piece), "monotonic")

    return types.int64(job), generate


@cache
def _sources_digest() -> str:
    """Changes with every file of this folder, from which kernels are compiled."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


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
