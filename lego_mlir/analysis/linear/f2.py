"""Matrices over F2, the field of two elements, where addition is XOR and multiplication is AND.

A vector is an int whose bit r is its entry r; a matrix is the tuple of its columns. The number of
rows is known to whoever holds the matrix, and a parameter where it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Matrix: TypeAlias = tuple[int, ...]


def identity(n: int) -> Matrix:
    """Return the n×n identity."""
    return tuple(1 << k for k in range(n))


def image(m: Matrix, x: int) -> int:
    """Return `m x`: the XOR of the columns that `x` selects."""
    y = 0
    for k, column in enumerate(m):
        if x >> k & 1:
            y ^= column
    return y


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """Return `a b`: the map of `b`, then that of `a`."""
    return tuple(image(a, column) for column in b)


def scatter(x: int, positions: Sequence[int]) -> int:
    """Return the vector with bit k of `x` at `positions[k]` and zeros elsewhere."""
    return sum(1 << position for k, position in enumerate(positions) if x >> k & 1)


def gather(x: int, positions: Sequence[int]) -> int:
    """Return the vector whose bit k is bit `positions[k]` of `x`."""
    return sum(1 << k for k, position in enumerate(positions) if x >> position & 1)


@dataclass(frozen=True, slots=True)
class Elimination:
    """A matrix after Gaussian elimination, columns from the left.

    Attributes:
        pivots: from the position of a leading bit, 1-based, to a vector of the column space that
            leads there and the combination of columns that makes it. Only columns independent of
            those to their left take part in combinations.
        kernel: a basis of the combinations that give zero.
    """

    pivots: dict[int, tuple[int, int]]
    kernel: Matrix

    @property
    def rank(self) -> int:
        """The dimension of the column space."""
        return len(self.pivots)

    def solve(self, y: int) -> int | None:
        """Return the combination of independent columns that gives `y`, `None` if there is none.

        Every other column is a slack variable, set to zero.
        """
        remainder, combination = _reduce(self.pivots, y)
        return None if remainder else combination


def eliminate(m: Matrix) -> Elimination:
    """Eliminate over the columns of `m`, from the left (Gauss)."""
    pivots: dict[int, tuple[int, int]] = {}
    kernel: list[int] = []
    for k, column in enumerate(m):
        remainder, combination = _reduce(pivots, column)
        combination ^= 1 << k
        if remainder:
            pivots[remainder.bit_length()] = remainder, combination
        else:
            kernel.append(combination)
    return Elimination(pivots, tuple(kernel))


def _reduce(pivots: dict[int, tuple[int, int]], y: int) -> tuple[int, int]:
    """Return what is left of `y` after its leading bits are cancelled, and what cancelled them."""
    combination = 0
    while y.bit_length() in pivots:
        vector, columns = pivots[y.bit_length()]
        y ^= vector
        combination ^= columns
    return y, combination


def right_inverse(m: Matrix, rows: int) -> Matrix | None:
    """Return `x` with `m x = I`, slack variables zero; `None` if `m` is not surjective."""
    elimination = eliminate(m)
    columns = [elimination.solve(1 << row) for row in range(rows)]
    return None if None in columns else tuple(c for c in columns if c is not None)
