"""Generates vector instructions in compiled kernels, where numba's own would be slower.

A numba intrinsic writes LLVM's code for a function that a kernel calls. The helpers here are what
several of them need.
"""

import math
from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from zerogap.engine.kernels.row_kernels import FAST_SUMS

CACHE_LINE = 64  # bytes
LANES = 16  # float32 values in a register of AVX-512
INT64, INT32, INT16, FLOAT = ir.IntType(64), ir.IntType(32), ir.IntType(16), ir.FloatType()
FLAGS = tuple(sorted(FAST_SUMS))


class BFloat(ir.Type):  # type: ignore[misc]  # llvmlite has no such type
    """LLVM's type of a bfloat16 value."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash(BFloat)


class Vectors:
    """Generates operations on vectors of `size` float32 values."""

    def __init__(self, builder: Any, size: int) -> None:
        self._builder, self.size = builder, size
        self.type = ir.VectorType(FLOAT, size)

    def call(
        self, name: str, *operands: Any, kind: Any = None, fastmath: Iterable[str] = ()
    ) -> Any:
        """The result of one of LLVM's functions, by default a vector."""
        kinds = ir.FunctionType(kind or self.type, [operand.type for operand in operands])
        function = cgutils.get_or_insert_function(self._builder.module, kinds, f"llvm.{name}")
        return self._builder.call(function, operands, fastmath=fastmath)

    def constant(self, value: float) -> Any:
        """A vector of one value."""
        return ir.Constant(self.type, [value] * self.size)

    def splat(self, number: Any) -> Any:
        """A vector of a number that is computed."""
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self._builder.insert_element(undefined, number, INT32(0))
        lanes = ir.Constant(ir.VectorType(INT32, self.size), [0] * self.size)
        return self._builder.shuffle_vector(first, undefined, lanes)

    def variable(self, vector: Any) -> Any:
        """Address of a variable that a loop may change; LLVM keeps it in registers."""
        return cgutils.alloca_once_value(self._builder, vector)

    def load(self, address: Any) -> Any:
        """What an address holds: float32, or the bits of bfloat16."""
        builder, stored = self._builder, address.type.pointee
        vectors = builder.bitcast(address, ir.VectorType(stored, self.size).as_pointer())
        vector = builder.load(vectors, align=itemsize(address))
        if stored == FLOAT:
            return vector
        bits = ir.VectorType(INT32, self.size)
        high = builder.shl(builder.zext(vector, bits), ir.Constant(bits, [16] * self.size))
        return builder.bitcast(high, self.type)

    def store(self, vector: Any, address: Any) -> None:
        """Store as float32."""
        address = self._builder.bitcast(address, self.type.as_pointer())
        self._builder.store(vector, address, align=4)

    def sum(self, vector: Any) -> Any:
        """The sum of a vector's values."""
        name, zero = f"vector.reduce.fadd.v{self.size}f32", ir.Constant(FLOAT, 0.0)
        return self.call(name, zero, vector, kind=FLOAT, fastmath=FLAGS)


class WideVectors(Vectors):
    """Operations of a processor with AVX-512 and its dot products, on its registers."""

    def __init__(self, builder: Any) -> None:
        super().__init__(builder, LANES)

    def store_rounded(self, vector: Any, address: Any) -> None:
        """Store as bfloat16, rounded to even where it is in the middle."""
        kind = ir.VectorType(BFloat(), self.size)
        rounded = self.call("x86.avx512bf16.cvtneps2bf16.512", vector, kind=kind)
        self._builder.store(rounded, self._builder.bitcast(address, kind.as_pointer()), align=2)

    def larger(self, one: Any, other: Any) -> Any:
        """The larger values of two vectors; those of the second one where any is NaN."""
        return self.call("x86.avx512.max.ps.512", one, other, INT32(4))

    def exponential(self, x: Any) -> Any:
        """exp(x) with a relative error of 1e-5 for |x| < 87; 0 far below and infinity above.

        It is 2^n · 2^f with n + f = x / ln 2, where |f| ≤ 1/2, and the series of 2^f.
        """
        power = self._builder.fmul(x, self.constant(1 / math.log(2)))
        power = self.larger(self.constant(-200.0), power)  # -inf - -inf would be NaN
        whole = self.call(f"roundeven.v{LANES}f32", power)
        rest = self._builder.fsub(power, whole)
        series = self.constant(math.log(2) ** 5 / math.factorial(5))
        for k in range(4, -1, -1):
            term = self.constant(math.log(2) ** k / math.factorial(k))
            series = self.call(f"fma.v{LANES}f32", series, rest, term)
        everywhere = INT16(-1), INT32(4)
        name = "x86.avx512.mask.scalef.ps.512"
        return self.call(name, series, whole, self.constant(0.0), *everywhere)


def itemsize(address: Any) -> int:
    """Bytes of what an address holds: a float32, or the bits of a bfloat16."""
    return 4 if address.type.pointee == FLOAT else 2


def pointer(
    context: Any, builder: Any, signature: Any, arguments: Any, position: int, *indices: Any
) -> Any:
    """Address of an element of the array that is an intrinsic's argument at a position."""
    kind = signature.args[position]
    array = context.make_array(kind)(context, builder, arguments[position])
    return cgutils.get_item_pointer(context, builder, kind, array, indices)


def start_reading(builder: Any, address: Any) -> None:
    """Generate the instruction that starts to read the cache line of an address."""
    address = builder.bitcast(address, ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [address.type, INT32, INT32, INT32])
    name = "llvm.prefetch.p0" if str(address.type) == "ptr" else "llvm.prefetch.p0i8"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(function, [address, INT32(0), INT32(3), INT32(1)])
