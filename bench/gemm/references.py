"""The references of GEMMs: C in f64, and how far from it a correct output may be.

The inputs are standard normal, or integers of the whole range. In f64 a GEMM is exact for all
integer types here, and for floating-point types its error is far below what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bench.case import Array, Order

_BITS = {"f32": 24, "f16": 11, "bf16": 8}
"""Significant bits of an output type, the leading one included."""

_ACCUMULATION = {
    "f16": (16, 2.0**-23),
    "bf16": (16, 2.0**-23),
    "f8E4M3FN": (32, 2.0**-13),
    "f8E5M2": (32, 2.0**-13),
}
"""By input type, the depth of one tensor-core instruction and the unit of its accumulator.

Accumulators are f32, but Hopper's tensor cores keep 14 bits of them if the inputs are fp8
(arXiv:2412.19437, section 3.3.2).
"""

_DEVIATIONS = 4.0
"""How many standard deviations an accumulator may be from zero while each step errs by its unit."""


@dataclass(frozen=True, slots=True)
class GemmReference:
    """C = A·B, with A m×k and B k×n.

    Attributes:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        dtype: MLIR's name of the element type of A and B.
        out: element type of C.
        a: memory order of A: `row`, row-major, or `col`.
        b: memory order of B.
        c: memory order of C.
        kind: distinguishes references in a manifest.
    """

    m: int
    n: int
    k: int
    dtype: str
    out: str
    a: Order = "row"
    b: Order = "row"
    c: Order = "row"
    kind: str = "gemm"

    @staticmethod
    def from_json(data: dict[str, Any]) -> GemmReference:
        """Return the reference that a manifest describes."""
        return GemmReference(**data)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return the number of elements of A, of B and of C."""
        return self.m * self.k, self.k * self.n, self.m * self.n

    @property
    def flops(self) -> int:
        """Return the number of multiplications and additions."""
        return 2 * self.m * self.n * self.k

    @property
    def transposes(self) -> str:
        """Return the orders of A and B in BLAS notation: `NT` is A row-major, B column-major."""
        return "".join("N" if order == "row" else "T" for order in (self.a, self.b))

    @property
    def tolerance(self) -> tuple[float, float]:
        """Return the allowed error of an element: relative to its value, plus absolute.

        The output is rounded once. Before that, each tensor-core instruction rounds or truncates an
        accumulator whose standard deviation is √k at most. Integers are exact.
        """
        if self.dtype not in _ACCUMULATION:
            return 0.0, 0.0
        depth, unit = _ACCUMULATION[self.dtype]
        steps = -(-self.k // depth)
        return 2.0 ** -_BITS[self.out], _DEVIATIONS * steps * unit * math.sqrt(self.k)

    @property
    def deviation(self) -> float:
        """Return the allowed error of the whole output, ‖C - AB‖ / ‖AB‖ (root mean square).

        Rounding errors are uniform over half a unit. The errors of the steps add up as a random
        walk; measured on an H200, fp8 accumulated in 14 bits is off by √steps units, and twice that
        is allowed. Leaving one multiplication out of every element costs 1/√k, which is more.
        """
        rounding = self.tolerance[0] / math.sqrt(3) * 1.25
        depth, unit = _ACCUMULATION.get(self.dtype, (self.k, 0.0))
        return rounding + 2 * math.sqrt(-(-self.k // depth)) * unit

    def argument_starts(self, arguments: int) -> list[tuple[int, int]]:
        """Return for each kernel argument its matrix (0 A, 1 B, 2 C) and its first element."""
        assert arguments == 3
        return [(0, 0), (1, 0), (2, 0)]

    def gemms(self, a: Array, b: Array, c: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield operand A, operand B and the output, as views of dense memory."""
        yield *self.operands(a, b), self.output(c)

    def operands(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return dense memory as matrices m×k and k×n; leading dimensions are kept."""
        return _matrix(a, self.m, self.k, self.a), _matrix(b, self.k, self.n, self.b)

    def output(self, c: Array) -> Array:
        """Return dense memory as the output, a view m×n."""
        return _matrix(c, self.m, self.n, self.c)


@dataclass(frozen=True, slots=True)
class GroupedGemmReference:
    """C = A·B for each of several groups whose rows lie one below the other in A and C.

    Group g multiplies its `rows[g]`×k slice of A by its own k×n matrix B.

    Attributes:
        rows: of each group's A and C.
        n: columns of every B and C.
        k: columns of every A, rows of every B.
        dtype: MLIR's name of the element type of A and B.
        out: element type of C.
        b: memory order of each B: `row`, row-major, or `col`. A and C are row-major.
        kind: distinguishes references in a manifest.
    """

    rows: tuple[int, ...]
    n: int
    k: int
    dtype: str
    out: str
    b: Order = "row"
    kind: str = "grouped_gemm"

    @staticmethod
    def from_json(data: dict[str, Any]) -> GroupedGemmReference:
        """Return the reference that a manifest describes; JSON has lists for tuples."""
        return GroupedGemmReference(**{**data, "rows": tuple(data["rows"])})

    @property
    def groups(self) -> tuple[GemmReference, ...]:
        """Return the reference of each group."""
        return tuple(
            GemmReference(m, self.n, self.k, self.dtype, self.out, "row", self.b) for m in self.rows
        )

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return the number of elements of all A, of all B and of all C."""
        m, groups = sum(self.rows), len(self.rows)
        return m * self.k, groups * self.k * self.n, m * self.n

    @property
    def ends(self) -> tuple[int, ...]:
        """Return the row after the last one of each group."""
        return tuple(accumulate(self.rows))

    @property
    def flops(self) -> int:
        """Return the number of multiplications and additions."""
        return sum(group.flops for group in self.groups)

    @property
    def tolerance(self) -> tuple[float, float]:
        """Return the allowed error of an element: relative to its value, plus absolute."""
        return self.groups[0].tolerance

    @property
    def deviation(self) -> float:
        """Return the allowed error of the whole output, ‖C - AB‖ / ‖AB‖."""
        return self.groups[0].deviation

    def argument_starts(self, arguments: int) -> list[tuple[int, int]]:
        """Return for each kernel argument its matrix (0 A, 1 B, 2 C) and its first element.

        Args:
            arguments: of the kernel: three, the matrices of all groups; a fourth, `ends`, which is
                matrix 3; or three for each group.
        """
        if arguments in (3, 4):
            return [(which, 0) for which in range(arguments)]
        starts, row = [], 0
        for group, count in enumerate(self.rows):
            starts += [(0, row * self.k), (1, group * self.k * self.n), (2, row * self.n)]
            row += count
        return starts

    def gemms(self, a: Array, b: Array, c: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield operand A, operand B and the output of each group, as views of dense memory.

        Leading dimensions are kept.
        """
        starts = iter(self.argument_starts(3 * len(self.rows)))
        for group in self.groups:
            slices = [
                memory[..., start : start + count]
                for memory, count, (_, start) in zip((a, b, c), group.counts, starts, strict=False)
            ]
            yield from group.gemms(*slices)


def gemm_reference_of(data: dict[str, Any]) -> GemmReference | GroupedGemmReference | None:
    """Return the GEMM reference that a manifest or result describes; `None` for other cases."""
    match data.get("kind"):
        case "gemm":
            return GemmReference.from_json(data)
        case "grouped_gemm":
            return GroupedGemmReference.from_json(data)
        case _:
            return None


def _matrix(memory: Array, rows: int, columns: int, order: Order) -> Array:
    """Return the last dimension of dense memory as a matrix, without a copy."""
    lead = tuple(memory.shape[:-1])
    if order == "row":
        return memory.reshape((*lead, rows, columns))
    return memory.reshape((*lead, columns, rows)).swapaxes(-1, -2)
