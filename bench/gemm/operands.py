"""A, B and C of a case in device memory: several sets, poisoned and checked whole.

As in `bench.permute.operands`, the sets together are larger than the L2 cache, with gaps between.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from bench.case import Array
from bench.gemm.references import GemmReference, GroupedGemmReference
from bench.measure.device_memory import DeviceArray, Verdict, sets_for, stride_of
from bench.measure.driver import call, driver
from lego_mlir.runtime import dtypes

TORCH_TYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "i8": "int8",
    "i32": "int32",
}
"""PyTorch's name of each element type."""

_CHUNK = 1 << 27
"""Elements of a matrix that are compared at a time; each is converted to f64."""

_RATE = 6e8
"""Approximate operations per microsecond of a GEMM of 16-bit floats on one H200."""


@dataclass(frozen=True, slots=True)
class GemmVerdict(Verdict):
    """The result of checking the outputs of all sets against a tolerance.

    Attributes:
        deviation: ‖C - AB‖ / ‖AB‖ over all sets.
        allowed: the largest deviation that is accepted.
        worst: the largest error of an element, relative to its tolerance; 0 if all are exact.
    """

    deviation: float
    allowed: float
    worst: float

    @property
    def is_correct(self) -> bool:
        """Return whether the elements, the gaps and the deviation are within their limits."""
        return self.differing == self.outside == 0 and self.deviation <= self.allowed


@dataclass(frozen=True, slots=True)
class Matrix:
    """The memory of one matrix in every set.

    Attributes:
        pointer: address of the matrix in the first set.
        count: number of elements.
        dtype: MLIR's name of their type.
    """

    pointer: int
    count: int
    dtype: str

    @property
    def size(self) -> int:
        """Return the bytes of the matrix."""
        return self.count * dtypes.numpy_dtype(self.dtype).itemsize

    @property
    def stride(self) -> int:
        """Return the bytes from a set to the next."""
        return stride_of(self.size)

    def array(self, k: int, shape: tuple[int, ...] | None = None, first: int = 0) -> DeviceArray:
        """Return the matrix of set k from its element `first` on, flat if `shape` is `None`."""
        kind = dtypes.numpy_dtype(self.dtype)
        pointer = self.pointer + k * self.stride + first * kind.itemsize
        return DeviceArray(pointer, shape or (self.count - first,), kind)


@dataclass(frozen=True, slots=True)
class GemmOperands:
    """A, B and C of a case, `sets` times.

    Attributes:
        reference: what C must be.
        sets: number of sets.
        a: operand A.
        b: operand B.
        c: the outputs.
        ends: address of the groups' end rows, i32, shared by all sets; 0 without groups.
        torch: the module, to fill and to check on the device; if `None`, NumPy does it, slowly.
    """

    reference: GemmReference | GroupedGemmReference
    sets: int
    a: Matrix
    b: Matrix
    c: Matrix
    ends: int
    torch: ModuleType | None

    @staticmethod
    def allocate(
        reference: GemmReference | GroupedGemmReference,
        cache_bytes: int,
        max_sets: int,
        torch: ModuleType | None,
    ) -> GemmOperands:
        """Allocate as many sets as touch `cache_bytes`, at most `max_sets`; `free` frees them."""
        types = (reference.dtype, reference.dtype, reference.out)
        sizes = [Matrix(0, *x) for x in zip(reference.counts, types, strict=True)]
        sets = sets_for(sum(x.size for x in sizes), cache_bytes, max_sets)
        a, b, c = (
            Matrix(int(call(driver().cuMemAlloc, sets * x.stride)), x.count, x.dtype) for x in sizes
        )
        return GemmOperands(reference, sets, a, b, c, _ends(reference), torch)

    def free(self) -> None:
        """Free the memory."""
        for matrix in (self.a, self.b, self.c):
            call(driver().cuMemFree, matrix.pointer)
        if self.ends:
            call(driver().cuMemFree, self.ends)

    @property
    def traffic(self) -> int:
        """Return the bytes of one set, the least that one launch reads and writes."""
        return self.a.size + self.b.size + self.c.size

    @property
    def min_launches(self) -> int:
        """Return the minimum number of launches in a graph: 8, down to 2 if each is long."""
        return max(2, min(8, math.ceil(8000 * _RATE / self.reference.flops)))

    def arrays(self, k: int, shapes: Sequence[tuple[int, ...] | None]) -> list[DeviceArray]:
        """Return the matrices of set k, in the shapes of a kernel's arguments."""
        matrices, starts = (self.a, self.b, self.c), self.reference.argument_starts(len(shapes))
        return [
            matrices[which].array(k, shape, first)
            if which < len(matrices)
            else DeviceArray(self.ends, shape or (), np.dtype(np.int32))
            for (which, first), shape in zip(starts, shapes, strict=True)
        ]

    def fill_inputs(self, seed: int) -> None:
        """Fill the inputs: standard normal floats, integers of the whole range."""
        for number, matrix in enumerate((self.a, self.b)):
            if self.torch is not None:
                self._fill_on_device(matrix, 2 * seed + number)
            else:
                self._fill_from_host(matrix, 2 * seed + number)

    def poison(self, byte: int) -> None:
        """Fill outputs and gaps with one byte."""
        call(driver().cuMemsetD8, self.c.pointer, byte, self.sets * self.c.stride)

    def check(self, byte: int, *, copied: bool = False) -> GemmVerdict:
        """Compare every output with the reference, and the gaps with the poison.

        Args:
            byte: the poison.
            copied: always false; no peer of a GEMM only copies.
        """
        assert not copied
        relative, absolute = self.reference.tolerance
        rows = [self._bytes(x) for x in (self.a, self.b, self.c)]
        differing, worst = 0, 0.0
        error_square = square = 0.0
        step = max(1, _CHUNK // max(self.a.count, self.b.count, self.c.count))
        for first in range(0, self.sets, step):
            chunk = [x[first : first + step] for x in rows]
            a, b, c = (
                self._values(x, matrix)
                for x, matrix in zip(chunk, (self.a, self.b, self.c), strict=True)
            )
            for x, y, output in self.reference.gemms(a, b, c):
                expected = x @ y
                error = abs(output - expected)
                allowed = abs(expected) * relative + absolute
                differing += int((~(error <= allowed)).sum())  # so that a NaN differs
                if absolute and output.shape[-2]:
                    worst = max(worst, float((error / allowed).max()))
                error_square += float((error * error).sum())
                square += float((expected * expected).sum())
        outside = int((rows[2][:, self.c.size :] != byte).sum())
        deviation = math.sqrt(error_square / square) if square else error_square
        elements = self.sets * self.c.count
        return GemmVerdict(
            elements,
            differing,
            outside,
            _finite(deviation),
            self.reference.deviation,
            _finite(worst),
        )

    # ------------------------------------------------------------------------------- memory
    def _fill_on_device(self, matrix: Matrix, seed: int) -> None:
        torch = self.torch
        assert torch is not None
        numbers = torch.Generator(device="cuda").manual_seed(seed)
        values = self._elements(self._bytes(matrix), matrix)
        if dtypes.is_float(matrix.dtype):
            values.copy_(torch.randn(values.shape, device="cuda", generator=numbers))
        else:
            values.random_(-128, 128, generator=numbers)

    def _fill_from_host(self, matrix: Matrix, seed: int) -> None:
        numbers = np.random.default_rng(seed)
        for k in range(self.sets):
            if dtypes.is_float(matrix.dtype):
                values = dtypes.random((matrix.count,), matrix.dtype, numbers)
            else:
                values = numbers.integers(-128, 128, matrix.count, np.int8)
            call(
                driver().cuMemcpyHtoD,
                matrix.pointer + k * matrix.stride,
                values.ctypes.data,
                values.nbytes,
            )

    def _bytes(self, matrix: Matrix) -> Array:
        """Return the memory of a matrix, a row of bytes for each set."""
        shape = (self.sets, matrix.stride)
        if self.torch is not None:
            memory = DeviceArray(matrix.pointer, shape, np.dtype(np.uint8))
            return self.torch.as_tensor(memory, device="cuda")
        host = np.empty(shape, np.uint8)
        call(driver().cuMemcpyDtoH, host.ctypes.data, matrix.pointer, host.nbytes)
        return host

    def _elements(self, rows: Array, matrix: Matrix) -> Array:
        """Return rows of bytes as elements, without the gaps and without a copy."""
        if self.torch is not None:
            kind = getattr(self.torch, TORCH_TYPES[matrix.dtype])
        else:
            kind = dtypes.numpy_dtype(matrix.dtype)
        return rows[:, : matrix.size].view(kind)

    def _values(self, rows: Array, matrix: Matrix) -> Array:
        """Return rows of bytes as elements in f64."""
        elements = self._elements(rows, matrix)
        return elements.double() if self.torch else dtypes.decode(elements, matrix.dtype)


def _ends(reference: GemmReference | GroupedGemmReference) -> int:
    """Return the address of the groups' end rows in device memory; 0 without groups."""
    if not isinstance(reference, GroupedGemmReference):
        return 0
    ends = np.array(reference.ends, np.int32)
    pointer = int(call(driver().cuMemAlloc, ends.nbytes))
    call(driver().cuMemcpyHtoD, pointer, ends.ctypes.data, ends.nbytes)
    return pointer


def _finite(value: float) -> float:
    """Return a number that JSON can hold: the largest finite one for infinity and NaN."""
    return value if math.isfinite(value) else sys.float_info.max
