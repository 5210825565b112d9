"""Plain traversals of a tile: along its anti-diagonals, and backwards."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra.permutations.permutation import Index, Permutation, flatten, unflatten
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, isqrt, where


def _antidiagonal(dims: tuple[Int, ...], index: Index) -> Any:
    n, (i, j) = dims[0], index
    s = i + j + 1
    t = 2 * n - s
    upper = i + s * (s - 1) // 2
    lower = n * n - n + i - t * (t - 1) // 2
    return where(s <= n, upper, lower)


def _antidiagonal_inverse(dims: tuple[Int, ...], flat: Any) -> Index:
    n = dims[0]
    in_upper = flat < n * (n + 1) // 2
    x = where(in_upper, flat, n * n - 1 - flat)
    # The diagonal that holds x: the a-th has a elements and starts at a*(a-1)/2.
    root = isqrt(2 * x)
    a = root + where(x >= root * (root + 1) // 2, 1, 0)
    i = x - a * (a - 1) // 2
    j = a - i - 1
    return where(in_upper, i, n - 1 - i), where(in_upper, j, n - 1 - j)


def _check_square(dims: tuple[Int, ...]) -> None:
    if len(dims) != 2 or dims[0] != dims[1]:
        raise LegoError(f"antidiagonal permutes a square tile, not {list(dims)}")


antidiagonal = Permutation(
    "antidiagonal", _antidiagonal, _antidiagonal_inverse, check=_check_square
)
"""Elements in the order of the anti-diagonals of an n×n tile (papers/lego, Figure 8)."""


def _reverse(dims: tuple[Int, ...], index: Index) -> Index:
    return tuple(n - 1 - i for n, i in zip(dims, index, strict=True))


reverse = Permutation(
    "reverse",
    lambda dims, index: flatten(dims, _reverse(dims, index)),
    lambda dims, flat: _reverse(dims, unflatten(dims, flat)),
    is_involution=True,
)
"""Every dimension backwards."""
