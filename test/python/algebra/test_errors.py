"""What a user can get wrong with layouts: each error names the block and both values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

from lego_mlir.algebra import (
    Col,
    GenP,
    GroupBy,
    Layout,
    OrderBy,
    RegP,
    Row,
    TileBy,
    TileOrderBy,
    antidiagonal,
    inverse,
    parse_layout,
    reverse,
    size_symbol,
    swizzle,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym

M, N = size_symbol("M"), size_symbol("N")
L = OrderBy(Row(4, 6))
TILED = parse_layout("OrderBy(Row(M, K)).TileBy([M/BM, K/8], [BM, 8])")


def f(i, j):
    return i * 4 + j


def one_index(flat):
    return flat


def three_indices(flat):
    return flat, 0, 0


def no_index():
    return 0


def any_indices(*index):
    return f(*index) if len(index) == 2 else index[0]


PADDED = OrderBy(Row(4)).TileBy([1], [2**62], [4])
"""With coordinates beyond int64, all but four of which are padding."""


ERRORS: list[tuple[Callable[[], Any], str]] = [
    # Sizes.
    (lambda: Row(0, 3), "Row: a size must be at least 1, not 0"),
    (lambda: Col(4, -3), "Col: a size must be at least 1, not -3"),
    (lambda: RegP([2, 0], [0, 1]), "RegP: a size must be at least 1, not 0"),
    (lambda: GenP([-2], reverse), "GenP: a size must be at least 1, not -2"),
    (lambda: GroupBy([2, 0]), "GroupBy: a size must be at least 1, not 0"),
    (lambda: TileBy([2], [0]), "TileBy: a size must be at least 1, not 0"),
    (lambda: Row(2.0, 3), "Row: a size is a positive integer or a symbol, not 2.0"),
    (lambda: Row(np.float32(2)), "Row: a size is a positive integer or a symbol"),
    (lambda: Row("3"), "Row: a size is a positive integer or a symbol, not '3'"),
    (lambda: Row(True, 3), "Row: a size is a positive integer or a symbol, not True"),
    (lambda: Row(np.True_), "Row: a size is a positive integer or a symbol"),
    (lambda: Row(None), "Row: a size is a positive integer or a symbol, not None"),
    (lambda: Row(np.zeros(2, int)), "Row: a size is a positive integer"),
    (lambda: Row(sympy.Rational(1, 2)), "'1/2' is not known to be an integer"),
    (lambda: Row(sympy.Integer(0)), "Row: a size must be at least 1, not 0"),
    (lambda: Row(), "Row: at least one dimension"),
    (lambda: RegP([], []), "RegP: at least one dimension"),
    (lambda: RegP(3, [0]), "RegP: expected a list of sizes, not 3"),
    (lambda: GroupBy(6), "GroupBy: expected a list of sizes, not 6"),
    (lambda: GroupBy("6"), "GroupBy: expected a list of sizes, not '6'"),
    (lambda: Row(Sym("z", -5, 0)), "Row: a size must be at least 1, not z"),
    # Permutations.
    (lambda: RegP([2, 3], [0, 0]), r"\[0, 0\] is not a permutation of \[0, 1\]"),
    (lambda: RegP([2, 3], [1, 2]), r"\[1, 2\] is not a permutation of \[0, 1\]"),
    (lambda: RegP([2, 3], [-1, 0]), r"\[-1, 0\] is not a permutation"),
    (lambda: RegP([2, 3], [0.0, 1]), "is not a permutation"),
    (lambda: RegP([2, 3], [False, True]), "is not a permutation"),
    (lambda: RegP([2, 3], [0, 1, 2]), "2 sizes but a permutation of 3"),
    (lambda: RegP([2, 3], "01"), "expected a permutation as a list"),
    (lambda: RegP([2, 3], 1), "expected a permutation as a list, not 1"),
    (lambda: GenP([2, 3], antidiagonal), r"square tile, not \[2, 3\]"),
    (lambda: GenP([3, 3, 3], antidiagonal), r"square tile, not \[3, 3, 3\]"),
    (lambda: GenP([M, N], antidiagonal), r"square tile, not \[M, N\]"),
    (lambda: GenP([4, 4], swizzle(3)), "powers of two, not 3"),
    (lambda: GenP([4, 4], swizzle(1, 0)), "powers of two, not 0"),
    (lambda: GenP([4, 4], swizzle(8)), "1 phases of 8 elements do not fit a row of 4"),
    (lambda: GenP([4, M], swizzle), r"powers of two, not \[4, M\]"),
    (lambda: GenP([4, 4], f), "needs its inverse"),
    (lambda: GenP([4, 4], f, 7), "needs its inverse"),
    (lambda: GenP([4, 4], 7), "7 is neither a permutation nor a function"),
    (lambda: GenP([4, 4], lambda i, j: i, f), "needs a name to be printed by"),
    (lambda: GenP([4, 4], antidiagonal, f), "f_inv is one too many"),
    (lambda: OrderBy(GenP([4, 4], f, one_index)).inv(3), "returns 1 indices, the tile has 2"),
    (lambda: OrderBy(GenP([4, 4], f, three_indices)).inv(3), "returns 3 indices, the tile has 2"),
    (lambda: GenP([4, 4], one_index, f),
     r"GenP\(\[4, 4\], @one_index, @f\): @one_index takes 1 index, the tile has 2"),
    (lambda: GenP([16], f, one_index), "@f takes 2 indices, the tile has 1"),
    (lambda: GenP([2, 2, 2], inverse(f, one_index)), "@f takes 2 indices, the tile has 3"),
    (lambda: GenP([4, 4], f, f), "the inverse function @f takes 2 values, not one flat position"),
    (lambda: GenP([4, 4], f, no_index), "the inverse function @no_index takes 0 values, not one"),
    (lambda: OrderBy(GenP([4], three_indices, one_index)).apply(3),
     "@three_indices returns 3 values, not one flat position"),
    (lambda: OrderBy(GenP([4], three_indices, one_index)).apply(np.arange(4)),
     "@three_indices returns 3 values, not one flat position"),
    # Chains.
    (OrderBy, "OrderBy needs at least one block"),
    (TileBy, "TileBy needs at least one list of sizes"),
    (lambda: OrderBy([2, 3]), r"expected blocks, not \[2, 3\]"),
    (lambda: OrderBy(L), "expected blocks"),
    (Layout, "no elements"),
    (lambda: TileOrderBy(Row(2), Row(2, 3)), "need the same rank, here 1, 2"),
    (lambda: OrderBy(Row(2), Row(2, 3)).TileBy([12]), "need the same rank, here 1, 2"),
    (lambda: TileBy([2, 2], [4]), "same number of dimensions, here 2, 1"),
    (lambda: L.GroupBy([5, 5]), r"\(Row\(4, 6\)\) has 24 elements, GroupBy\(\[5, 5\]\) has 25"),
    (lambda: L.OrderBy(Row(23)), r"has 24 elements, OrderBy\(Row\(23\)\) has 23"),
    (lambda: OrderBy(Row(M)).GroupBy([N]), r"has M elements, GroupBy\(\[N\]\) has N"),
    (lambda: L.GroupBy([24]).GroupBy([24]), "GroupBy after GroupBy: a layout has one view"),
    (lambda: L.TileBy([24]).GroupBy([24]), "GroupBy after TileBy: a layout has one view"),
    (lambda: L.GroupBy([24]).OrderBy(Row(24)), "OrderBy after GroupBy: the view comes last"),
    (lambda: TileBy([24]).TileOrderBy(Row(24)), "TileOrderBy after TileBy: the view comes last"),
    # Indices.
    (lambda: L.apply(1), r"takes 2 indices \(\[4, 6\]\), got 1"),
    (lambda: L.apply(1, 2, 3), r"takes 2 indices \(\[4, 6\]\), got 3"),
    (lambda: L.apply(), r"takes 2 indices \(\[4, 6\]\), got 0"),
    (lambda: L.apply(4, 0), r"index 0 of 'OrderBy\(Row\(4, 6\)\)' is out of range: 4 is not in"),
    (lambda: L.apply(0, -1), r"index 1 .* -1 is not in \[0, 6\)"),
    (lambda: L.apply(np.array([0, 9]), 0), r"index 0 .* 9 is not in \[0, 4\)"),
    (lambda: L.apply(0, np.array([3, -2])), r"index 1 .* -2 is not in \[0, 6\)"),
    (lambda: L.apply(np.int8(4), 0), r"4 is not in \[0, 4\)"),
    (lambda: L.apply(np.array([2**63], np.uint64), 0), "is out of range"),
    (lambda: L.apply(1.0, 0), "index 0 .* must be an integer, an array or a symbol, not 1.0"),
    (lambda: L.apply(True, 0), "must be an integer, an array or a symbol, not True"),
    (lambda: L.apply("1", 0), "must be an integer, an array or a symbol, not '1'"),
    (lambda: L.apply(None, 0), "must be an integer, an array or a symbol, not None"),
    (lambda: L.apply(np.array([0.5]), 0), "index 0 .* must be integers, not float64"),
    (lambda: L.apply(np.array([True]), 0), "must be integers, not bool"),
    (lambda: L.inv(24), r"offset of .* 24 is not in \[0, 24\)"),
    (lambda: L.inv(-1), r"offset of .* -1 is not in \[0, 24\)"),
    (lambda: L.inv(np.arange(25)), r"24 is not in \[0, 24\)"),
    (lambda: L.inv(2.5), "must be an integer, an array or a symbol, not 2.5"),
    (lambda: OrderBy(Row(M, 4)).apply(-1, 0), r"-1 is not in \[0, M\)"),
    (lambda: OrderBy(Row(M, 4)).apply(np.arange(3), 0), "the size M is symbolic"),
    (lambda: OrderBy(Row(M, 4)).offsets(), r"has symbolic sizes \(M\)"),
    (lambda: OrderBy(Row(2**40, 2**40)).apply(np.arange(3), 0), "too many for int64 arrays"),
    (lambda: OrderBy(Row(2**40, 2**40)).inv(np.arange(3)), "too many for int64 arrays"),
    (lambda: PADDED.mask(0, np.array([2**62 - 1]), 3), "too many for int64 arrays"),
    (lambda: PADDED.apply(0, np.array([0]), 3), "too many for int64 arrays"),
    (lambda: PADDED.inv(np.arange(4)), "too many for int64 arrays"),
    # Binding.
    (lambda: TILED.bind(Q=4), r"has no symbol 'Q' \(it has: M, K, BM\)"),
    (lambda: L.bind(M=4), r"has no symbol 'M' \(it has: none\)"),
    (lambda: TILED.bind(M=0), r"bind\(M\): a size must be at least 1, not 0"),
    (lambda: TILED.bind(M=2.5), r"bind\(M\): a size is a positive integer"),
    (lambda: TILED.bind(M="x"), r"bind\(M\): a size is a positive integer"),
    (lambda: TILED.bind(K=12), "K = 12 is no multiple of 8"),
    (lambda: TILED.bind(M=20, BM=8), "M = 20 is no multiple of BM = 8"),
    (lambda: OrderBy(Row(M - 4)).bind(M=3), "a size must be at least 1, not -1"),
    (lambda: GroupBy([M - 4, M - 4]).bind(M=3), "a size must be at least 1, not -1"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "message"), ERRORS, ids=[m for _, m in ERRORS])
def test_mistakes_are_errors_with_hints(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        mistake()


def test_python_integers_have_no_limit() -> None:
    layout = OrderBy(Row(2**40, 2**40))
    assert layout.apply(2**40 - 1, 2**40 - 1) == 2**80 - 1
    assert layout.inv(2**80 - 1) == (2**40 - 1, 2**40 - 1)


def test_functions_of_any_number_of_indices_fit_every_tile() -> None:
    assert OrderBy(GenP([4, 4], any_indices, any_indices)).apply(1, 2) == 6
    assert OrderBy(GenP([4], max, any_indices)).dims == (4,), "what has no signature may fit"


def test_numpy_integers_are_sizes_and_permutations() -> None:
    assert Row(np.int32(2), np.uint8(3)) == Row(2, 3)
    assert RegP(np.array([2, 3]), np.array([1, 0])) == Col(2, 3)
    assert type(Row(np.int64(2)).dims[0]) is int


def test_sympy_sizes_are_sizes() -> None:
    m = sympy.Symbol("M", integer=True, positive=True)
    assert Row(m, 4) == Row(M, 4)
    assert Row(sympy.Integer(3)) == Row(3)
    assert Row(2 * m + 1).dims == (2 * M + 1,)


def test_binding_fits_all_symbols_of_a_name() -> None:
    """Two symbols of one name, with and without a fact, are one to who reads the text."""
    layout = OrderBy(Row(M, size_symbol("M", [2])))
    assert layout.bind(M=4) == OrderBy(Row(4, 4))


def test_binding_some_sizes_leaves_the_others() -> None:
    partly = TILED.bind(M=64, BM=16)
    assert partly.text == "OrderBy(Row(64, K)).TileBy([4, K/8], [16, 8])"
    assert [s.name for s in partly.symbols] == ["K"]
    assert partly.bind(K=24).size == 64 * 24
