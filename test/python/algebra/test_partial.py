"""Partial tiles, against enumeration written from their definition."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from tiled_layouts import Tiled, tiled

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate, substitute
from lego_mlir.index.nodes import Less
from lego_mlir.index.structure import children


def index_symbols(layout: lg.Layout) -> list[Sym]:
    return [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]


@given(tiled())
def test_every_index_of_the_padded_space(t: Tiled) -> None:
    layout, offsets = t.layout(), t.offsets()
    index, coordinates = t.coordinates()
    limits = np.array(t.shape).reshape(-1, *(1,) * (index.ndim - 1))
    exists = (coordinates < limits).all(axis=0)
    assert layout.size == prod(t.shape)
    assert layout.tensor_shape == t.shape
    assert layout.is_partial == (not exists.all())
    assert (layout.mask(*index) == exists).all()
    assert (layout.offsets() == offsets).all()

    inside = [i[exists] for i in index]
    expected = offsets[tuple(c[exists] for c in coordinates)]
    assert (layout.apply(*inside) == expected).all()
    back = layout.inv(expected)
    assert all((b == i).all() for b, i in zip(back, inside, strict=True))
    if layout.is_partial:
        with pytest.raises(LegoError, match="outside of the tensor"):
            layout.apply(*index)

    symbols = index_symbols(layout)
    values = {s.name: i for s, i in zip(symbols, index, strict=True)}
    mask = np.broadcast_to(evaluate(layout.mask(*symbols), values), exists.shape)
    assert (mask == exists).all()
    derived = np.broadcast_to(evaluate(layout.apply(*symbols), values), exists.shape)
    assert (derived[exists] == expected).all()
    flat = Sym("flat", 0, prod(t.shape) - 1)
    for expression, i in zip(layout.inv(flat), inside, strict=True):
        assert (np.broadcast_to(evaluate(expression, {"flat": expected}), i.shape) == i).all()
    assert lg.parse_layout(layout.text) == layout


@given(tiled(), st.data())
def test_a_number_has_an_offset_or_an_error(t: Tiled, data: Any) -> None:
    """Integers one by one: the offset, or an error that says where they left the tensor."""
    layout, offsets = t.layout(), t.offsets()
    index = tuple(data.draw(st.integers(0, n - 1)) for n in layout.dims)
    rank = len(t.shape)
    at = [0] * rank
    for level, sizes in enumerate(t.tiles):
        at = [at[k] * sizes[k] + index[level * rank + k] for k in range(rank)]
    if all(c < n for c, n in zip(at, t.shape, strict=True)):
        assert layout.mask(*index) == 1
        assert layout.apply(*index) == offsets[tuple(at)]
        assert layout.inv(layout.apply(*index)) == index
    else:
        assert layout.mask(*index) == 0
        k = next(k for k in range(rank) if at[k] >= t.shape[k])
        with pytest.raises(LegoError, match=f"coordinate {at[k]} in dimension {k}"):
            layout.apply(*index)


def comparisons(x: Any) -> int:
    if isinstance(x, int):
        return 0
    return isinstance(x, Less) + sum(comparisons(c) for c in children(x))


@pytest.mark.parametrize(
    ("shape", "tile", "expected"),
    [((128, 64), (64, 64), 0), ((128, 70), (64, 64), 1), ((100, 64), (64, 64), 1),
     ((100, 70), (64, 64), 2), ((1, 70), (1, 35), 0)],
)  # fmt: skip
def test_only_padded_dimensions_are_compared(shape: Any, tile: Any, expected: int) -> None:
    cover = [lg.ceildiv(n, t) for n, t in zip(shape, tile, strict=True)]
    layout = lg.OrderBy(lg.Row(*shape)).TileBy(cover, tile)
    assert comparisons(layout.mask(*index_symbols(layout))) == expected
    assert layout.is_partial == (expected > 0)
    if not expected:
        assert layout.mask(*index_symbols(layout)) == 1


def test_a_tile_that_is_proven_inside_needs_no_comparison() -> None:
    layout = lg.OrderBy(lg.Row(100, 64)).TileBy([2, 1], [64, 64])
    i, j = Sym("i", 0, 63), Sym("j", 0, 63)
    assert layout.mask(0, 0, i, j) == 1
    assert layout.mask(1, 0, i, 5) is not 1  # noqa: F632
    assert layout.mask(1, 0, 40 + i, j) == 0


# Symbolic sizes.
TEXT = "OrderBy(Col(M, K)).TileBy([ceildiv(M, 24), ceildiv(K, T)], [24, T])"


def test_text_of_symbolic_sizes() -> None:
    layout = lg.parse_layout(TEXT)
    assert layout.text == TEXT
    assert layout.is_partial
    m, k, t = lg.size_symbol("M"), lg.size_symbol("K"), lg.size_symbol("T")
    made = lg.OrderBy(lg.Col(m, k)).TileBy([lg.ceildiv(m, 24), lg.ceildiv(k, t)], [24, t])
    assert made == layout
    assert lg.parse_layout("OrderBy(Row((M - 1)//8 + 1))").text == "OrderBy(Row(ceildiv(M, 8)))"


@pytest.mark.parametrize(("m", "k", "t"), [(50, 7, 3), (48, 9, 3), (1, 1, 5), (49, 10, 1)])
def test_symbolic_sizes_are_the_numbers_in_general(m: int, k: int, t: int) -> None:
    layout = lg.parse_layout(TEXT)
    bound = layout.bind(M=m, K=k, T=t)
    assert bound.is_partial == (m % 24 != 0 or k % t != 0)
    symbols = [Sym(f"i{p}", 0, n - 1) for p, n in enumerate(layout.dims)]
    mask, offset = layout.mask(*symbols), layout.apply(*symbols)
    index = np.indices([int(n) for n in bound.dims])
    values = {s.name: i for s, i in zip(symbols, index, strict=True)} | {"M": m, "K": k, "T": t}
    exists = np.broadcast_to(evaluate(mask, values), index.shape[1:]) == 1
    assert (exists == bound.mask(*index)).all()
    expected = bound.apply(*(i[exists] for i in index))
    assert (np.broadcast_to(evaluate(offset, values), exists.shape)[exists] == expected).all()


def test_known_multiples_are_not_padded() -> None:
    layout = lg.parse_layout("OrderBy(Row(M, K)).TileBy([ceildiv(M, 64), K/32], [64, 32])")
    m = layout.symbols[0]
    assert (
        comparisons(layout.mask(*[Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)])) == 1
    )
    multiple = lg.size_symbol("M", multiple_of=[64])
    assert not layout.substitute({m: multiple}).is_partial


def test_an_index_outside_of_a_symbolic_tensor() -> None:
    layout = lg.parse_layout("OrderBy(Row(M)).TileBy([ceildiv(M, 4)], [4])")
    m = layout.symbols[0]
    assert evaluate(layout.mask(1, 2), {"M": 7}) == 1
    assert evaluate(layout.mask(1, 2), {"M": 6}) == 0
    assert layout.apply(1, 2) == 6
    assert substitute(layout.mask(1, 2), {m: 6}) == 0


def test_sympy() -> None:
    i, j = sympy.symbols("i j")
    layout = lg.OrderBy(lg.Row(10)).TileBy([3], [4])
    assert layout.apply(i, j) == 4 * i + j
    assert layout.mask(i, j).subs({i: 2, j: 1}) == 1
    assert layout.mask(i, j).subs({i: 2, j: 2}) == 0
    m = sympy.Symbol("M", integer=True, positive=True)
    assert lg.OrderBy(lg.Row(m)).TileBy([lg.ceildiv(m, 4)], [4]).is_partial


@given(st.integers(0, 1000), st.integers(1, 50))
def test_ceildiv(a: int, b: int) -> None:
    assert lg.ceildiv(a, b) == len(range(0, a, b))
    n, d = lg.size_symbol("n"), lg.size_symbol("d")
    assert evaluate(lg.ceildiv(n, d), {"n": a + 1, "d": b}) == len(range(0, a + 1, b))
    assert lg.ceildiv(np.array([a]), b)[0] == len(range(0, a, b))


# Mistakes.
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("OrderBy(Row(100, 70)).TileBy([3, 2], [64, 64])", "7000 elements, TileBy.* 24576"),
        ("OrderBy(Row(100, 70)).TileBy([1, 2], [64, 64])", "7000 elements, TileBy.* 8192"),
        ("OrderBy(Row(100, 70)).TileBy([2, 2], [64, 64], [1, 2])", "has 7000 elements"),
        ("OrderBy(Row(100)).TileBy([2, 1], [64, 1])", "100 elements"),
        ("OrderBy(Row(100)).GroupBy([2, 64])", "100 elements"),
        ("OrderBy(Row(100), Row(2)).OrderBy(Row(10, 30)).TileBy([4, 10], [3, 3])", "300"),
        ("OrderBy(Row(M)).TileBy([M//64], [64])", "not known to be equal"),
        ("OrderBy(Row(M)).TileBy([ceildiv(M, 32)], [64])", "not known to be equal"),
        ("OrderBy(Row(M)).TileBy([ceildiv(M, 0)], [64])", "at least 1 element, not 0"),
        ("OrderBy(Row(ceildiv(M)))", "between the operands of ceildiv"),
    ],
)
def test_wrong_partial_tiles_are_errors(text: str, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        lg.parse_layout(text)


def test_the_hint_is_a_layout_that_covers_the_tensor() -> None:
    with pytest.raises(LegoError) as caught:
        lg.OrderBy(lg.Row(100, 70)).TileBy([3, 2], [64, 64])
    assert "[2, 2]" in str(caught.value.hint)
    with pytest.raises(LegoError) as caught:
        lg.OrderBy(lg.Row(100, 70)).TileBy([2, 2], [64, 64]).apply(1, 0, 36, 0)
    assert "mask" in str(caught.value.hint)
