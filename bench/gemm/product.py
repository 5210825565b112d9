"""What a matrix product must give: the sum in f64, and how far from it a right output may be.

The inputs are standard normal, or integers of the whole range. A product in f64 is exact for all
integer types here, and for floating-point types its error is far below what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.movement import Array, Order

_BITS = {"f32": 24, "f16": 11, "bf16": 8}
"""Significant bits of an output, the leading one counted."""

_SUMS = {
    "f16": (16, 2.0**-23),
    "bf16": (16, 2.0**-23),
    "f8E4M3FN": (32, 2.0**-13),
    "f8E5M2": (32, 2.0**-13),
}
"""Of an input type: the products that one step of a tensor core adds, and the unit of its sum.

The sums are f32, but Hopper's tensor cores keep 14 bits where the products are of fp8
(arXiv:2412.19437, section 3.3.2).
"""

_SPREAD = 4.0
"""How many standard deviations a sum may be from zero while each step errs by a unit of it."""


@dataclass(frozen=True, slots=True)
class Product:
    """C = A B, an m×k by a k×n matrix.

    Attributes:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        dtype: element type of A and B, MLIR's name.
        out: element type of C.
        a: where A's elements lie: `row`, row-major, or `col`.
        b: where B's elements lie.
        c: where C's elements lie.
        kind: tells it from other references in a manifest.
    """

    m: int
    n: int
    k: int
    dtype: str
    out: str
    a: Order = "row"
    b: Order = "row"
    c: Order = "row"
    kind: str = "product"

    @staticmethod
    def from_json(data: dict[str, Any]) -> Product:
        """What a manifest says of it."""
        return Product(**data)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Elements of A, of B and of C."""
        return self.m * self.k, self.k * self.n, self.m * self.n

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k

    @property
    def transposes(self) -> str:
        """In the words of BLAS: `NT` is A row-major and B column-major."""
        return "".join("N" if order == "row" else "T" for order in (self.a, self.b))

    @property
    def tolerance(self) -> tuple[float, float]:
        """What an element may be off: relative to its value, and beside that absolutely.

        The output is rounded once. Before, each step of a tensor core rounds or truncates a sum
        of standard deviation √k at most. Integers are exact.
        """
        if self.dtype not in _SUMS:
            return 0.0, 0.0
        step, unit = _SUMS[self.dtype]
        steps = -(-self.k // step)
        return 2.0 ** -_BITS[self.out], _SPREAD * steps * unit * math.sqrt(self.k)

    @property
    def deviation(self) -> float:
        """What the whole output may be off, ‖C - AB‖ / ‖AB‖: the root of the mean square.

        Rounding is spread evenly over half a unit. The errors of the steps add up as a random walk;
        measured on an H200, fp8 in sums of 14 bits is off by √steps units, and twice that is
        allowed. One product that is left out of every sum, 1/√k, is more than that.
        """
        rounding = self.tolerance[0] / math.sqrt(3) * 1.25
        step, unit = _SUMS.get(self.dtype, (self.k, 0.0))
        return rounding + 2 * math.sqrt(-(-self.k // step)) * unit

    def starts(self, arguments: int) -> list[tuple[int, int]]:
        """The matrix, 0 to 2 of A, B and C, and its element at which each argument begins."""
        assert arguments == 3
        return [(0, 0), (1, 0), (2, 0)]

    def products(self, a: Array, b: Array, c: Array) -> Iterator[tuple[Array, Array, Array]]:
        """The factors and the output, views of dense memory."""
        yield *self.operands(a, b), self.result(c)

    def operands(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Dense memory as matrices, views m×k and k×n; any dimensions before the last remain."""
        return _seen(a, self.m, self.k, self.a), _seen(b, self.k, self.n, self.b)

    def result(self, c: Array) -> Array:
        """Dense memory as the output, a view m×n."""
        return _seen(c, self.m, self.n, self.c)


def _seen(memory: Array, rows: int, columns: int, order: Order) -> Array:
    """The last dimension of dense memory as a matrix, without a copy."""
    lead = tuple(memory.shape[:-1])
    if order == "row":
        return memory.reshape((*lead, rows, columns))
    return memory.reshape((*lead, columns, rows)).swapaxes(-1, -2)
