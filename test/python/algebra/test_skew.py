"""Skewed tiles, against enumeration written from their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir.algebra import Skew
from lego_mlir.analysis.instructions.tma_boxes import tensor_map_boxes
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, construct, evaluate


@st.composite
def skewed(draw: Any) -> tuple[lg.Layout, tuple[int, ...], list[int], Skew]:
    """A row-major tensor in skewed tiles: the layout, its shape, the tile, and the skew."""
    rank = draw(st.integers(2, 3))
    shape = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    tile = [draw(st.integers(1, 5)) for _ in range(rank)]
    dim, span = draw(st.integers(0, rank - 1)), draw(st.integers(1, 8))
    factors = tuple(0 if k == dim else draw(st.integers(0, 12)) for k in range(rank))
    skew = Skew(dim, factors, span)
    room = [span - 1 if k == dim else 0 for k in range(rank)]
    tiles = [-(-(n + r) // t) for n, r, t in zip(shape, room, tile, strict=True)]
    layout = lg.OrderBy(lg.Row(*shape)).TileBy(tiles, tile, skew=skew)
    return layout, shape, tile, skew


@given(skewed())
def test_every_index(case: tuple[lg.Layout, tuple[int, ...], list[int], Skew]) -> None:
    layout, shape, tile, skew = case
    rank = len(shape)
    index = np.indices([int(n) for n in layout.dims])
    at = [index[k] * tile[k] + index[rank + k] for k in range(rank)]
    shift = sum((f * at[k] for k, f in enumerate(skew.factors)), np.zeros_like(at[0])) % skew.span
    at[skew.dim] = at[skew.dim] - shift
    exists = np.all([(x >= 0) & (x < n) for x, n in zip(at, shape, strict=True)], axis=0)
    assert layout.is_partial
    assert layout.tensor_shape == shape
    assert (np.broadcast_to(layout.mask(*index), exists.shape) == exists).all()

    inside = [i[exists] for i in index]
    offsets = np.ravel_multi_index([x[exists] for x in at], shape)
    assert sorted(offsets) == list(range(np.prod(shape))), "each element in one tile"
    assert (layout.apply(*inside) == offsets).all()
    assert all((a == b).all() for a, b in zip(layout.inv(offsets), inside, strict=True))
    assert lg.parse_layout(layout.text) == layout

    symbols = [Sym(f"i{k}", 0, int(n) - 1) for k, n in enumerate(layout.dims)]
    values = {s.name: i for s, i in zip(symbols, index, strict=True)}
    mask = np.broadcast_to(evaluate(layout.mask(*symbols), values), exists.shape)
    derived = np.broadcast_to(evaluate(layout.apply(*symbols), values), exists.shape)
    assert (mask == exists).all()
    assert (derived[exists] == offsets).all()


def test_tiles_are_known_to_begin_at_multiples_of_the_span() -> None:
    rows = lg.OrderBy(lg.Row(30, 99))
    layout = rows.TileBy([4, 4], [8, 32], skew=Skew(1, (99 % 4, 0), 4))
    i, j, r = (Sym(name, 0, n - 1) for name, n in (("i", 4), ("j", 4), ("r", 8)))
    piece = layout[i, j, r, :]
    assert piece.contiguous == 32
    assert piece.run == 1, "at the ends of a row some exist and some do not"
    assert construct.mod(piece.base, 4) == 0


def test_a_factor_beyond_int64_shifts_arrays_as_integers() -> None:
    view = lg.OrderBy(lg.Row(21, 19)).TileBy([3, 3], [8, 8], skew=Skew(1, (2**63 + 3, 0), 4))
    index = np.indices([int(n) for n in view.dims]).reshape(4, -1)
    mask = view.mask(*index)
    assert mask.sum() == 21 * 19
    assert mask.tolist() == [view.mask(*(int(i) for i in point)) for point in index.T]
    assert sorted(view.apply(*index[:, mask])) == list(range(21 * 19))


def test_a_span_beyond_int64_is_too_long_for_arrays() -> None:
    n = lg.size_symbol("N")
    tiles = [5, lg.ceildiv(n + (2**64 - 1), 4)], [1, 4]
    layout = lg.OrderBy(lg.Row(5, n)).TileBy(*tiles, skew=Skew(1, (2**63, 0), 2**64))
    assert layout.mask(0, 0, 0, 3) is not None
    with pytest.raises(LegoError, match="too many for int64 arrays"):
        layout.mask(np.arange(5), 0, 0, 3)


@pytest.mark.parametrize("index", [(0, 0, 1, 0), (0, 2, 0, 5)])
def test_elements_before_or_behind_the_row_are_masked(index: tuple[int, ...]) -> None:
    layout = lg.OrderBy(lg.Row(21, 19)).TileBy([3, 3], [8, 8], skew=Skew(1, (3, 0), 4))
    assert layout.mask(*index) == 0
    with pytest.raises(LegoError, match=r"coordinate (-3|21) in dimension 1 is outside"):
        layout.apply(*index)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("TileBy([3, 3], [8, 8], skew(2, [3, 0], 4))", "does not fit 2 dimensions"),
        ("TileBy([3, 3], [8, 8], skew(1, [3, 1], 4))", "does not fit 2 dimensions"),
        ("TileBy([3, 3], [8, 8], skew(1, [3], 4))", "does not fit 2 dimensions"),
        ("TileBy([3, 3], [8, 8], skew(1, [3, 0], 0))", "does not fit 2 dimensions"),
        ("TileBy([3, 3], skew(1, [3, 0], 4), [8, 8])", "the skew comes last"),
        ("TileBy([3, 3], [8, 8], skew(1, 3, 4))", "expected '\\['"),
        ("TileBy([3, 4], [8, 8], skew(1, [3, 0], 4))", "has 399 elements"),
        ("GroupBy([21, 19], skew(1, [3, 0], 4))", "only TileBy can be skewed"),
    ],
)
def test_a_skew_that_does_not_fit_is_refused(view: str, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        lg.parse_layout(f"OrderBy(Row(21, 19)).{view}")


def test_a_skew_stays_with_its_tiles_when_sizes_get_their_values() -> None:
    m, n = lg.size_symbol("M"), lg.size_symbol("N")
    skew = Skew(1, (3, 0), 4)
    symbolic = lg.OrderBy(lg.Row(m, n)).TileBy(
        [lg.ceildiv(m, 8), lg.ceildiv(n + 3, 8)], [8, 8], skew=skew
    )
    layout = symbolic.bind(M=21, N=19)
    assert layout.text == "OrderBy(Row(21, 19)).TileBy([3, 3], [8, 8], skew(1, [3, 0], 4))"


def test_tma_refuses_skewed_tiles() -> None:
    layout = lg.parse_layout("OrderBy(Row(32, 60)).TileBy([4, 8], [8, 8], skew(1, [0, 0], 4))")
    with pytest.raises(LegoError, match="are skewed"):
        tensor_map_boxes(layout, lg.OrderBy(lg.Row(8, 8))[:, :], 4)
