"""Slices: their offsets by enumeration, and what they claim to be contiguous."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiled_layouts import Tiled, tiled

import lego_mlir as lg
from lego_mlir.algebra import partial
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate

SWIZZLED = lg.OrderBy(lg.GenP([8, 64], lg.swizzle(8, 1, 8)))
TILES = lg.OrderBy(lg.Row(64, 96)).TileBy([4, 6], [16, 16])
P, Q = Sym("p", 0), Sym("q", 0)


def placed(t: Tiled) -> Any:
    """The offset at every index of the padded space, -1 where there is no element."""
    _, coordinates = t.coordinates()
    inside = [np.minimum(c, n - 1) for c, n in zip(coordinates, t.shape, strict=True)]
    beyond = np.any([c >= n for c, n in zip(coordinates, t.shape, strict=True)], axis=0)
    return np.where(beyond, -1, t.offsets()[tuple(inside)])


@given(tiled(), st.data())
def test_slices_of_every_kind(t: Tiled, data: Any) -> None:
    layout, offsets = t.layout(), placed(t)
    symbolic = data.draw(st.booleans())
    item: list[Any] = []
    numbers: list[Any] = []
    values: dict[str, int] = {}
    for k, n in enumerate(layout.dims):
        if data.draw(st.booleans()):
            item.append(slice(None))
            numbers.append(slice(None))
            continue
        numbers.append(data.draw(st.integers(0, n - 1)))
        item.append(Sym(f"i{k}", 0, n - 1) if symbolic else numbers[-1])
        values[f"i{k}"] = numbers[-1]
    piece, expected = layout[tuple(item)], offsets[tuple(numbers)]
    assert piece.shape == np.shape(expected)
    exists = expected >= 0

    free = [Sym(f"f{k}", 0, n - 1) for k, n in enumerate(piece.shape)]
    values |= {f"f{k}": i for k, i in enumerate(np.indices(piece.shape))}
    mask = np.broadcast_to(evaluate(piece.mask(*free), values), piece.shape)
    assert (mask == exists).all()
    if not exists.any():
        return
    offset = np.broadcast_to(evaluate(piece.offset(*free), values), piece.shape)
    assert (offset[exists] == expected[exists]).all()
    if not symbolic and exists.all():
        assert (piece.offsets() == expected).all()
        assert piece.base == expected.flat[0]

    for length, at_once in ((piece.contiguous, False), (piece.run, True)):
        assert prod(piece.shape) % length == 0
        rows, there = expected.reshape(-1, length), exists.reshape(-1, length)
        whole = there.all(axis=1)
        assert (rows[whole] == rows[whole][:, :1] + np.arange(length)).all()
        if at_once:
            assert (there == there[:, :1]).all()


@pytest.mark.parametrize(
    ("piece", "contiguous", "run"),
    [
        (lg.OrderBy(lg.Row(8, 64))[P, :], 64, 64),
        (lg.OrderBy(lg.Row(8, 64))[:, :], 512, 512),
        (lg.OrderBy(lg.Col(8, 64))[P, :], 1, 1),
        (lg.OrderBy(lg.Col(8, 64))[:, Q], 8, 8),
        (lg.OrderBy(lg.Row(4, 8), lg.Row(8, 8)).TileBy([4, 8], [8, 8])[1, P, ...], 64, 64),
        (TILES[1, Q, :, :], 16, 16),
        (TILES[1, 2, P, :], 16, 16),
        (TILES[..., P], 1, 1),
        (SWIZZLED[P, :], 8, 8),
        (lg.OrderBy(lg.Row(100, 70)).TileBy([2, 3], [64, 32])[P, Q, 5, :], 32, 2),
        (lg.OrderBy(lg.Row(100, 72)).TileBy([2, 3], [64, 32])[P, Q, 5, :], 32, 8),
        (lg.OrderBy(lg.Row(100, 70)).TileBy([2, 3], [64, 32])[0, 0, 5, :], 32, 32),
        (lg.OrderBy(lg.Row(100, 64)).TileBy([2, 2], [64, 32])[P, Q, 5, :], 32, 32),
        (lg.OrderBy(lg.Row(16, 1, 4))[P, :, :], 4, 4),
        (lg.OrderBy(lg.Row(6))[P], 1, 1),
    ],
)
def test_proven_inequalities(piece: Any, contiguous: int, run: int) -> None:
    assert piece.contiguous == contiguous
    assert piece.run == run


def test_a_mask_covers_only_elements_that_exist_together() -> None:
    m, h = Sym("m", 0), Sym("h", 0, 3)
    assert partial.is_uniform(8, 4 * m, 4 * m + h)
    assert not partial.is_uniform(8, 4 * m + 2, 4 * m + 2 + h)  # 6, 7 exist, 8 and 9 do not
    assert not partial.is_uniform(10, 4 * m, 4 * m + h)
    assert not partial.is_uniform(8, 4 * m, 4 * m - h)
    assert partial.is_uniform(10, m, m)
    assert partial.is_uniform(10, h, 2 * h)
    n = lg.size_symbol("n", multiple_of=[4])
    assert partial.is_uniform(n, 4 * m, 4 * m + h)
    assert not partial.is_uniform(lg.size_symbol("n"), 4 * m, 4 * m + h)


def test_symbolic_sizes() -> None:
    n = lg.size_symbol("N")
    layout = lg.OrderBy(lg.Row(4, n))
    assert layout[P, :].contiguous is n
    assert layout[:, :].contiguous == 4 * n or layout[:, :].contiguous is 4 * n
    assert lg.OrderBy(lg.Col(4, n))[P, :].contiguous == 1
    with pytest.raises(LegoError, match="not all numbers"):
        layout[0, :].offsets()


def test_offsets_are_an_int64_array() -> None:
    found = TILES[1, 2, :, :].offsets()
    rows, columns = np.mgrid[16:32, 32:48]
    assert found.dtype == np.int64
    assert (found == rows * 96 + columns).all()
    assert TILES[1, 2, 3, 4].offsets() == 19 * 96 + 36
    with pytest.raises(LegoError, match="not all numbers"):
        TILES[P, 2, :, :].offsets()
    with pytest.raises(LegoError, match="outside of the tensor"):
        lg.OrderBy(lg.Row(10)).TileBy([3], [4])[2, :].offsets()


def test_the_text_of_a_slice_shows_its_index() -> None:
    assert str(lg.OrderBy(lg.Row(2, 3, 4))[P, ..., 1]) == "OrderBy(Row(2, 3, 4))[p, :, 1]"


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ((1, slice(0, 3)), "only ':' is known"),
        ((1, slice(None, None, 2)), "only ':' is known"),
        ((1,), r"takes 2 indices \(8, 64\), got 1"),
        ((1, 2, 3), "takes 2 indices"),
        ((..., 1, ...), "2 times"),
        ((1, None), "not None"),
    ],
)
def test_wrong_slices_are_errors(item: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        SWIZZLED[item]


def test_wrong_indices_of_a_slice_are_errors() -> None:
    with pytest.raises(LegoError, match="takes 1 indices"):
        SWIZZLED[1, :].offset(1, 2)
    with pytest.raises(LegoError, match="out of range"):
        SWIZZLED[1, :].offset(64)
    with pytest.raises(TypeError, match="not iterable"):
        iter(SWIZZLED)


def test_a_chunk_of_a_swizzle_is_contiguous_as_a_whole() -> None:
    """Also where the chunk is all of the slice."""
    chunks = SWIZZLED.TileBy([8, 8], [1, 8])
    assert chunks[P, Q, 0, :].contiguous == 8
    assert chunks[3, 5, 0, :].contiguous == 8
