"""Windows, against enumeration written from their definition."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_windows import Drawn, windows

import lego_mlir as lg
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate
from lego_mlir.limits import Limits


@given(windows())
def test_every_index(w: Drawn) -> None:
    layout, (offsets, exists) = w.layout(), w.elements()
    index = np.indices(w.dims)
    assert layout.size == prod(w.shape)
    assert layout.dims == layout.tensor_shape == w.dims
    assert layout.is_partial or exists.all()
    assert (layout.mask(*index) == exists).all()
    if exists.any():
        inside = [i[exists] for i in index]
        assert (layout.apply(*inside) == offsets[exists]).all()
    for at in np.argwhere(~exists)[:3].tolist():
        with pytest.raises(LegoError, match="outside of the tensor"):
            layout.apply(*at)


@given(windows())
def test_the_expressions_of_an_index(w: Drawn) -> None:
    layout, (offsets, exists) = w.layout(), w.elements()
    symbols = [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(w.dims)]
    mask = layout.mask(*symbols)
    offset = layout.apply(*symbols) if exists.any() else 0
    for index in np.ndindex(*w.dims):
        values = {f"i{k}": i for k, i in enumerate(index)}
        assert bool(evaluate(mask, values)) == exists[index]
        if exists[index]:
            assert evaluate(offset, values) == offsets[index]


@given(windows())
def test_the_text_parses_to_an_equal_layout(w: Drawn) -> None:
    layout = w.layout()
    assert lg.parse_layout(layout.text) == layout


@given(windows(), st.data())
def test_tiles_of_a_window(w: Drawn, data: Any) -> None:
    offsets, exists = w.elements()
    tile = tuple(data.draw(st.integers(1, n)) for n in w.dims)
    counts = tuple(lg.ceildiv(n, t) for n, t in zip(w.dims, tile, strict=True))
    layout = w.layout().TileBy(counts, tile)
    assert lg.parse_layout(layout.text) == layout
    index = np.indices((*counts, *tile))
    rank = len(tile)
    at = [index[k] * t + index[rank + k] for k, t in enumerate(tile)]
    there = np.logical_and.reduce([x < n for x, n in zip(at, w.dims, strict=True)])
    there[there] = exists[tuple(x[there] for x in at)]
    assert (layout.mask(*index) == there).all()
    if there.any():
        found = layout.apply(*(i[there] for i in index))
        assert (found == offsets[tuple(x[there] for x in at)]).all()


@given(windows(), windows())
def test_a_window_on_a_window(inner: Drawn, outer: Drawn) -> None:
    assume(len(inner.dims) == len(outer.shape))
    base, (offsets, exists) = inner.layout(), inner.elements()
    on_index = Drawn(inner.dims, None, outer.dims, outer.factors, outer.constants, outer.boundaries)
    layout = base.Window(outer.dims, on_index.coordinates, outer.boundaries)
    seen, there = on_index.elements()
    index = np.indices(outer.dims)
    there[there] = exists.reshape(-1)[seen[there]]
    assert (layout.mask(*index) == there).all()
    if there.any():
        found = layout.apply(*(i[there] for i in index))
        assert (found == offsets.reshape(-1)[seen[there]]).all()
    assert lg.parse_layout(layout.text) == layout


@given(windows())
def test_injectivity_and_bijectivity(w: Drawn) -> None:
    layout, (offsets, exists) = w.layout(), w.elements()
    found = offsets[exists]
    verdict = layout.verify_injective()
    assert verdict.holds == (len(np.unique(found)) == len(found))
    if verdict.holds is False:
        assert verdict.counterexample is not None
        first, second = verdict.counterexample.elements
        assert first != second
        assert offsets[first] == offsets[second]
    if layout.verify():
        assert sorted(offsets.reshape(-1)) == list(range(layout.size))


def test_symbolic_sizes() -> None:
    text = (
        "OrderBy(Row(B, H, W, 16)).Window([B, (H + 1)//2, (W + 1)//2, 3, 3, 16], "
        "(n, y, x, i, j, c) -> (n, 2*y + i - 1, 2*x + j - 1, c), [inside, zero, zero, inside])"
    )
    layout = lg.parse_layout(text)
    assert lg.parse_layout(layout.text) == layout
    assert [s.name for s in layout.symbols] == ["B", "H", "W"]
    bound = layout.bind(B=2, H=5, W=6)
    assert bound.dims == (2, 3, 3, 3, 3, 16)
    padded = np.pad(
        np.arange(2 * 5 * 6 * 16).reshape(2, 5, 6, 16), ((0, 0), (1, 1), (1, 1), (0, 0))
    )
    index = np.indices(bound.dims)
    mask = bound.mask(*index)
    inside = [i[mask] for i in index]
    n, y, x, i, j, c = inside
    assert (bound.apply(*inside) == padded[n, 2 * y + i, 2 * x + j, c]).all()


def test_a_factor_that_is_a_size() -> None:
    layout = lg.parse_layout("OrderBy(Row(N*S)).Window([N, S], (n, s) -> (S*n + s))")
    assert lg.parse_layout(layout.text) == layout
    assert layout.bind(N=3, S=4).apply(2, 1) == 9
    assert layout.verify()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("OrderBy(Row(32, 33)).Window([32, 32])", "1024 elements and 1056 offsets"),
        ("OrderBy(Row(8)).Window([8, 3], (x, i) -> (x + i - 1), zero)", r"\[0, 1\]|\[1, 0\]"),
    ],
)
def test_what_is_no_bijection_says_why(text: str, says: str) -> None:
    layout = lg.parse_layout(text)
    verdict = layout.verify()
    assert verdict.holds is False
    assert re.search(says, verdict.detail)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda t: t.Window([9]), "not proven to lie in the tensor's dimension 0 of size 8"),
        (lambda t: t.Window([8, 8], lambda i, j: i * j, "zero"), "not affine"),
        (lambda t: t.Window([8], lambda i: i // 2), "not affine"),
        (lambda t: t.Window([8], lambda i, j: i + j), "takes 2 indices"),
        (lambda t: t.Window([8], lambda i: (i, i)), "2 coordinates"),
        (lambda t: t.Window([8], lambda i: 1.5), "expression of indices"),
        (lambda t: t.Window([8], lambda i: i, "reflect"), "no boundary 'reflect'"),
        (lambda t: t.Window([8], lambda i: i, ["zero", "zero"]), "2 boundaries for 1"),
        (lambda t: t.Window([8]).OrderBy(lg.Row(8)), "OrderBy after Window"),
        (lambda t: t.TileBy([3], [3]).Window([3, 3]), "stick out"),
        (lambda t: t.Window([6], lambda i: i).GroupBy([7]), "6 elements"),
        (lambda t: t.Window([8]).inv(0), "no index belongs to an offset"),
        (lambda t: t.Window([8]).offsets(), "not every element"),
        (lambda t: t.Window([8]).stages, "not a chain of reorderings"),
        (lambda t: t.Window([8]).inverse(), "is a window"),
        (lambda t: t.compose(t.Window([8])), "is a window"),
    ],
)
def test_errors(make: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        make(lg.OrderBy(lg.Row(8)))


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("Window([3])", 1, "Window comes first"),
        ("OrderBy(Row(3)).Window([3], (x) - (x))", 33, "expected '->'"),
        ("OrderBy(Row(3)).Window([3], (3) -> (3))", 30, "the name of an index"),
        ("OrderBy(Row(3)).Window([3], zeros)", 29, "expected a boundary"),
        ("OrderBy(Row(3)).Window([3], (x, y) -> (x))", 17, "a name of its own"),
        ("OrderBy(Row(9)).Window([3, 3], (x, x) -> (x))", 17, "a name of its own"),
        ("OrderBy(Row(x)).Window([x], (x) -> (x))", 17, "of a dimension and of a size"),
        ("OrderBy(Row(3)).Window([3]).OrderBy(Row(3))", 29, "OrderBy after Window"),
        ("OrderBy(Row(3)).Window([3], (x) -> (x), zero, zero)", 45, "expected '\\)'"),
    ],
)
def test_errors_in_a_text_have_their_column(text: str, column: int, says: str) -> None:
    with pytest.raises(LegoError, match=says) as e:
        lg.parse_layout(text)
    assert e.value.location is not None
    assert e.value.location.column == column


def test_the_limits_of_texts_hold_for_windows() -> None:
    deep = "OrderBy(Row(3)).Window([3], (x) -> (" + "(" * 400 + "x" + ")" * 400 + "))"
    with pytest.raises(LegoError, match="brackets are open"):
        lg.parse_layout(deep)
    with pytest.raises(LegoError, match="words and signs"):
        lg.parse_layout("OrderBy(Row(3))" + ".Window([3])" * 100, limits=Limits(layout_tokens=50))


def test_equality_of_windows() -> None:
    tensor = lg.OrderBy(lg.Row(8))
    a = tensor.Window([8], lambda i: 7 - i)
    assert a.equals(lg.OrderBy(lg.GenP([8], lg.reverse)))
    assert not tensor.Window([8], lambda i: i - 1, "zero").equals(tensor)
    assert not tensor.Window([8], lambda i: i - 1, "zero").equals(
        tensor.Window([8], lambda i: i - 1, "clamp")
    )


def test_copies_of_padded_rows() -> None:
    rows = lg.OrderBy(lg.Row(4, 5)).Window([4, 4])
    copies = multibuffered(rows, 3)
    assert copies.dims == (3, 4, 4)
    assert copies.size == 3 * rows.size
    assert lg.parse_layout(copies.text) == copies
    for index in np.ndindex(3, 4, 4):
        assert copies.apply(*index) == 20 * index[0] + rows.apply(*index[1:])
    assert copies.verify_injective()
