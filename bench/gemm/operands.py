"""The matrices of one case in device memory: several sets, poisoned and checked whole.

As with `bench.memory.Data`, the sets together outgrow the L2 cache, and gaps lie between them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from bench.driver import call, driver
from bench.gemm.groups import Groups
from bench.gemm.product import Product
from bench.memory import GAP, DeviceArray
from bench.movement import Array
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
"""PyTorch's name of an element type."""

_CHUNK = 1 << 27
"""Elements of a matrix that are compared at a time, for they are converted to f64."""

_RATE = 6e8
"""Operations a microsecond that a product of 16-bit floats may take, about, on one H200."""


@dataclass(frozen=True, slots=True)
class Closeness:
    """What a check of all sets found.

    Attributes:
        elements: how many were compared.
        differing: how many are further from the reference than they may be.
        outside: how many bytes between the outputs were written.
        deviation: ‖C - AB‖ / ‖AB‖ over all sets.
        allowed: how much that may be.
        worst: the largest error of an element, 1 being what it may be; 0 where all is exact.
    """

    elements: int
    differing: int
    outside: int
    deviation: float
    allowed: float
    worst: float

    @property
    def right(self) -> bool:
        """Whether all is as it must be."""
        return self.differing == self.outside == 0 and self.deviation <= self.allowed


@dataclass(frozen=True, slots=True)
class Matrix:
    """The memory of one matrix of every set.

    Attributes:
        pointer: address of the first.
        count: its elements.
        dtype: MLIR's name of their type.
    """

    pointer: int
    count: int
    dtype: str

    @property
    def size(self) -> int:
        """Bytes."""
        return self.count * dtypes.numpy_dtype(self.dtype).itemsize

    @property
    def stride(self) -> int:
        """Bytes from a set to the next: at least one gap between them."""
        return (self.size // GAP + 2) * GAP

    def array(self, k: int, shape: tuple[int, ...] | None = None, first: int = 0) -> DeviceArray:
        """The memory of set k, from its element `first` on."""
        kind = dtypes.numpy_dtype(self.dtype)
        pointer = self.pointer + k * self.stride + first * kind.itemsize
        return DeviceArray(pointer, shape or (self.count - first,), kind)


@dataclass(frozen=True, slots=True)
class Operands:
    """A, B and C of a case, `sets` times.

    Attributes:
        reference: what C must be.
        sets: how many.
        a: the left inputs.
        b: the right inputs.
        c: the outputs.
        ends: of groups where their rows end, i32; the same for all sets.
        torch: the module, to draw and to check on the device; without it NumPy does, slowly.
    """

    reference: Product | Groups
    sets: int
    a: Matrix
    b: Matrix
    c: Matrix
    ends: int
    torch: ModuleType | None

    @staticmethod
    def allocate(
        reference: Product | Groups, past: int, most: int, torch: ModuleType | None
    ) -> Operands:
        """As many sets as touch `past` bytes, at most `most`; see `free`."""
        types = (reference.dtype, reference.dtype, reference.out)
        sizes = [Matrix(0, *wanted) for wanted in zip(reference.counts, types, strict=True)]
        sets = max(1, min(most, -(-past // sum(x.size for x in sizes))))
        a, b, c = (
            Matrix(int(call(driver().cuMemAlloc, sets * x.stride)), x.count, x.dtype) for x in sizes
        )
        return Operands(reference, sets, a, b, c, _ends(reference), torch)

    def free(self) -> None:
        """Give the memory back."""
        for matrix in (self.a, self.b, self.c):
            call(driver().cuMemFree, matrix.pointer)
        if self.ends:
            call(driver().cuMemFree, self.ends)

    @property
    def traffic(self) -> int:
        """Bytes of one set: what one launch reads and writes at least."""
        return self.a.size + self.b.size + self.c.size

    @property
    def launches(self) -> int:
        """Launches a graph at least: fewer of those that take milliseconds, two at least."""
        return max(2, min(8, math.ceil(8000 * _RATE / self.reference.flops)))

    def arrays(self, k: int, shapes: Sequence[tuple[int, ...] | None]) -> list[DeviceArray]:
        """The matrices of set k, in the shapes of a kernel's arguments."""
        matrices, starts = (self.a, self.b, self.c), self.reference.starts(len(shapes))
        return [
            matrices[which].array(k, shape, first)
            if which < len(matrices)
            else DeviceArray(self.ends, shape or (), np.dtype(np.int32))
            for (which, first), shape in zip(starts, shapes, strict=True)
        ]

    def draw(self, seed: int) -> None:
        """Fill the inputs: standard normal floats, integers of the whole range."""
        for number, matrix in enumerate((self.a, self.b)):
            if self.torch is not None:
                self._draw_there(matrix, 2 * seed + number)
            else:
                self._draw_here(matrix, 2 * seed + number)

    def poison(self, byte: int) -> None:
        """Fill outputs and gaps with one byte."""
        call(driver().cuMemsetD8, self.c.pointer, byte, self.sets * self.c.stride)

    def check(self, byte: int, *, copied: bool = False) -> Closeness:
        """Compare every output with the reference, and the gaps with the poison.

        Args:
            byte: the poison.
            copied: never; nobody copies a product.
        """
        assert not copied
        relative, absolute = self.reference.tolerance
        given = [self._bytes(x) for x in (self.a, self.b, self.c)]
        differing, worst = 0, 0.0
        error_square = square = 0.0
        step = max(1, _CHUNK // max(self.a.count, self.b.count, self.c.count))
        for first in range(0, self.sets, step):
            chunk = [x[first : first + step] for x in given]
            a, b, c = (
                self._values(x, matrix)
                for x, matrix in zip(chunk, (self.a, self.b, self.c), strict=True)
            )
            for x, y, found in self.reference.products(a, b, c):
                wanted = x @ y
                error = abs(found - wanted)
                allowed = abs(wanted) * relative + absolute
                differing += int((~(error <= allowed)).sum())  # so that a NaN differs
                if absolute and found.shape[-2]:
                    worst = max(worst, float((error / allowed).max()))
                error_square += float((error * error).sum())
                square += float((wanted * wanted).sum())
        outside = int((given[2][:, self.c.size :] != byte).sum())
        deviation = math.sqrt(error_square / square) if square else error_square
        elements = self.sets * self.c.count
        return Closeness(
            elements, differing, outside, _told(deviation), self.reference.deviation, _told(worst)
        )

    # ------------------------------------------------------------------------------- memory
    def _draw_there(self, matrix: Matrix, seed: int) -> None:
        torch = self.torch
        assert torch is not None
        numbers = torch.Generator(device="cuda").manual_seed(seed)
        values = self._elements(self._bytes(matrix), matrix)
        if dtypes.is_float(matrix.dtype):
            values.copy_(torch.randn(values.shape, device="cuda", generator=numbers))
        else:
            values.random_(-128, 128, generator=numbers)

    def _draw_here(self, matrix: Matrix, seed: int) -> None:
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
        """The memory of a matrix, a row of bytes for each set."""
        shape = (self.sets, matrix.stride)
        if self.torch is not None:
            memory = DeviceArray(matrix.pointer, shape, np.dtype(np.uint8))
            return self.torch.as_tensor(memory, device="cuda")
        host = np.empty(shape, np.uint8)
        call(driver().cuMemcpyDtoH, host.ctypes.data, matrix.pointer, host.nbytes)
        return host

    def _elements(self, rows: Array, matrix: Matrix) -> Array:
        """Rows of bytes as elements, without the gaps and without a copy."""
        if self.torch is not None:
            kind = getattr(self.torch, TORCH_TYPES[matrix.dtype])
        else:
            kind = dtypes.numpy_dtype(matrix.dtype)
        return rows[:, : matrix.size].view(kind)

    def _values(self, rows: Array, matrix: Matrix) -> Array:
        """Rows of bytes as elements in f64."""
        elements = self._elements(rows, matrix)
        return elements.double() if self.torch else dtypes.decode(elements, matrix.dtype)


def _ends(reference: Product | Groups) -> int:
    """Device memory with the ends of groups; 0 without groups."""
    if not isinstance(reference, Groups):
        return 0
    ends = np.array(reference.ends, np.int32)
    pointer = int(call(driver().cuMemAlloc, ends.nbytes))
    call(driver().cuMemcpyHtoD, pointer, ends.ctypes.data, ends.nbytes)
    return pointer


def _told(value: float) -> float:
    """A number that JSON has: the largest one for what is none."""
    return value if math.isfinite(value) else sys.float_info.max
