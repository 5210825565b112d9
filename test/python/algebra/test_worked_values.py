"""The values that the paper works out, and the antidiagonal at every size that matters."""

from __future__ import annotations

from math import isqrt

import numpy as np
import pytest

from lego_mlir.algebra import (
    Col,
    GenP,
    GroupBy,
    OrderBy,
    RegP,
    Row,
    TileBy,
    TileOrderBy,
    antidiagonal,
    reverse,
    swizzle,
)

FIGURE_9 = (
    OrderBy(RegP([2, 2], [1, 0]), GenP([3, 3], antidiagonal))
    .OrderBy(RegP([2, 3, 2, 3], [0, 2, 1, 3]))
    .GroupBy([6, 6])
)
EQUATION_7 = OrderBy(RegP([2] * 5, [4, 1, 3, 2, 0])).GroupBy([2] * 5)


def test_figure_9() -> None:
    """Logical (4, 2) is 26, which the second OrderBy takes to 23 and the first to 15."""
    assert FIGURE_9.apply(4, 2) == 15
    assert FIGURE_9.inv(15) == (4, 2)
    second, first = FIGURE_9.orders[1].blocks, FIGURE_9.orders[0].blocks
    assert OrderBy(*second).GroupBy([36]).apply(26) == 23
    assert OrderBy(*first).GroupBy([36]).apply(23) == 15


def test_equation_7() -> None:
    for x in np.ndindex(*[2] * 5):
        assert EQUATION_7.apply(*x) == x[0] + 8 * x[1] + 2 * x[2] + 4 * x[3] + 16 * x[4]


def test_row_col_and_regp() -> None:
    assert Row(3, 4).apply((1, 2)) == 6
    assert Col(3, 4).apply((1, 2)) == 1 + 2 * 3
    assert RegP([2, 3, 4], [2, 0, 1]).apply((1, 2, 3)) == (3 * 2 + 1) * 3 + 2
    assert RegP([2, 3, 4], [2, 0, 1]).inv(23) == (1, 2, 3)
    assert Row(5).inv(3) == (3,)


def test_tileby_is_its_definition() -> None:
    """The sugar and its desugared chain (section 3.2): σ(2, 3) is [0, 2, 4, 1, 3, 5]."""
    tiled = TileBy([2, 3], [3, 2], [2, 2])
    levels = [2, 3, 3, 2, 2, 2]
    plain = OrderBy(RegP(levels, [0, 2, 4, 1, 3, 5])).GroupBy(levels)
    index = np.indices(tiled.dims)
    assert (tiled.apply(*index) == plain.apply(*index)).all()
    assert tiled.tensor_shape == (12, 12)


def test_tileorderby_is_its_definition() -> None:
    blocks = Row(4, 3), Col(2, 5)
    sugar = TileOrderBy(*blocks)
    plain = OrderBy(*blocks).OrderBy(RegP([4, 2, 3, 5], [0, 2, 1, 3])).GroupBy([4, 2, 3, 5])
    flat = np.arange(120)
    index = plain.inv(flat)
    assert (sugar.GroupBy([4, 2, 3, 5]).apply(*index) == flat).all()


def test_tiles_of_a_tiled_order_meet() -> None:
    """Bricks: under TileBy every OrderBy keeps its levels, so a brick is contiguous."""
    bricks = OrderBy(Row(2, 3), Row(4, 5)).TileBy([2, 3], [4, 5])
    for index in np.ndindex(2, 3, 4, 5):
        a, b, i, j = index
        assert bricks.apply(*index) == (a * 3 + b) * 20 + i * 5 + j


def walk(n: int) -> list[tuple[int, int]]:
    """Figure 8, directly: along each antidiagonal from the top row downwards."""
    return [(i, s - i) for s in range(2 * n - 1) for i in range(n) if 0 <= s - i < n]


@pytest.mark.parametrize("n", [*range(1, 20), 27, 32, 40])
def test_antidiagonal_is_the_walk(n: int) -> None:
    layout = OrderBy(GenP([n, n], antidiagonal))
    order = walk(n)
    assert [layout.inv(k) for k in range(n * n)] == order
    assert [layout.apply(i, j) for i, j in order] == list(range(n * n))
    flat = np.arange(n * n)
    i, j = layout.inv(flat)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == order
    assert (layout.apply(i, j) == flat).all()


def position(n: int, i: int, j: int) -> int:
    """The antidiagonal's formula with exact integers: elements on shorter diagonals, then i."""
    s = i + j
    if s < n:
        return s * (s + 1) // 2 + i
    return n * n - 1 - position(n, n - 1 - i, n - 1 - j)


@pytest.mark.parametrize("n", [1000, 4095, 4096, 4097, 32768, 46341, 65535, 65536])
def test_antidiagonal_at_the_corners_of_large_tiles(n: int) -> None:
    """Where the square root in the inverse meets the limits of double precision and of int32."""
    layout = OrderBy(GenP([n, n], antidiagonal))
    near = sorted({*range(4), *range(n // 2 - 2, n // 2 + 2), *range(n - 4, n)})
    points = [(i, j) for i in near for j in near]
    flats = [position(n, i, j) for i, j in points]
    assert [layout.apply(i, j) for i, j in points] == flats
    assert [layout.inv(f) for f in flats] == points
    i, j = layout.inv(np.array(flats))
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == points
    assert layout.apply(i, j).tolist() == flats


@pytest.mark.parametrize("n", [46341, 65535, 65536])
def test_antidiagonal_inverse_where_diagonals_begin(n: int) -> None:
    """Each diagonal's first and last element: the root is off by one there if it is inexact."""
    layout = OrderBy(GenP([n, n], antidiagonal))
    starts = [a * (a + 1) // 2 for a in (1, 2, 1023, n // 2, n - 2, n - 1)]
    half = n * (n + 1) // 2
    flats = [s + off for s in [*starts, half] for off in (-1, 0, 1) if 0 <= s + off < n * n]
    flats += [n * n - 1 - f for f in flats]
    for f in flats:
        i, j = layout.inv(f)
        assert 0 <= i < n
        assert 0 <= j < n
        assert position(n, i, j) == f
        x = f if f < half else n * n - 1 - f
        assert i + j in (
            (isqrt(8 * x + 1) - 1) // 2,
            2 * (n - 1) - (isqrt(8 * x + 1) - 1) // 2,
        )


def test_reverse_is_backwards() -> None:
    layout = OrderBy(GenP([3, 4], reverse))
    assert layout.offsets().reshape(-1).tolist() == list(range(12))[::-1]
    assert layout.inv(0) == (2, 3)


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [((32, 32), ()), ((8, 64), (8, 1, 8)), ((64, 32), (8, 2, 4)), ((4, 8), (1, 1, 2))],
)
def test_swizzle_moves_chunks_within_their_row(shape, parameters) -> None:
    """mma swizzling (linear_layouts, Definition 4.11), cell by cell; its own inverse."""
    rows, columns = shape
    vec, per_phase, max_phase = parameters or (1, 1, min(rows, columns))
    layout = OrderBy(GenP(shape, swizzle(*parameters)))
    for i, j in np.ndindex(rows, columns):
        chunk = (j // vec) ^ (i // per_phase % max_phase)
        assert layout.apply(i, j) == i * columns + chunk * vec + j % vec
        assert layout.inv(layout.apply(i, j)) == (i, j)


def test_swizzle_of_a_square_tile_leaves_no_bank_conflict() -> None:
    """Every column of 32 x 32 words touches 32 banks."""
    offsets = OrderBy(GenP([32, 32], swizzle)).offsets()
    assert all(len(set(offsets[:, j] % 32)) == 32 for j in range(32))


def cyclic(i, j):
    return i * 5 + (j + 2 * i) % 5


def cyclic_inv(flat):
    return flat // 5, (flat - 2 * (flat // 5)) % 5


def test_a_users_own_permutation() -> None:
    layout = OrderBy(GenP([7, 5], cyclic, cyclic_inv)).GroupBy([35])
    assert layout.text == "OrderBy(GenP([7, 5], @cyclic, @cyclic_inv)).GroupBy([35])"
    for i, j in np.ndindex(7, 5):
        assert layout.apply(i * 5 + j) == cyclic(i, j)
        assert layout.inv(cyclic(i, j)) == (i * 5 + j,)


def test_groupby_alone_is_row_major() -> None:
    assert GroupBy([2, 3], [4]).apply(1, 2, 3) == 23
    assert GroupBy([2, 3], [4]).tensor_shape == (2, 3, 4)
