"""Layouts and blocks are values: immutable, compared by what is written, copied and hashed."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

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
    size_symbol,
    swizzle,
)

M = size_symbol("M", [8])


def f(i, j):
    return i * 4 + j


def f_inv(flat):
    return flat // 4, flat % 4


LAYOUTS = [
    OrderBy(Row(2, 3)),
    OrderBy(Col(2, 3)),
    OrderBy(Row(3, 2)),
    TileOrderBy(Row(2, 3), Row(1, 1)),
    OrderBy(Row(2, 3), Row(1, 1)),
    OrderBy(Row(2, 3)).GroupBy([6]),
    OrderBy(Row(2, 3)).TileBy([6]),
    GroupBy([2, 3]),
    TileBy([2, 3]),
    OrderBy(RegP([2, 3, 4], [1, 2, 0])),
    OrderBy(GenP([4, 4], antidiagonal)),
    OrderBy(GenP([4, 4], swizzle)),
    OrderBy(GenP([4, 4], swizzle(2, 1, 2))),
    OrderBy(GenP([4, 4], f, f_inv)),
    OrderBy(Row(M, 2)).TileBy([M // 8, 2], [8, 1]),
]


def test_equal_if_written_the_same() -> None:
    again = [eval(repr_of(x)) for x in LAYOUTS]  # noqa: S307 - our own texts
    for k, x in enumerate(LAYOUTS):
        for n, y in enumerate(again):
            assert (x == y) == (k == n), (x.text, y.text)
    assert len(set(LAYOUTS + again)) == len(LAYOUTS)


def repr_of(layout: Layout) -> str:
    """The layout in Python's dots, from its text."""
    return layout.text.replace("M/8", "M // 8").replace("@", "")


def test_blocks_compare_with_nothing_else() -> None:
    assert Row(2, 3) != "Row(2, 3)"
    assert Row(2, 3) != (2, 3)
    assert Row(2, 3) == RegP([2, 3], [0, 1])
    assert Col(5) == Row(5)
    assert hash(Col(5)) == hash(Row(5))
    assert GenP([4, 4], swizzle) == GenP([4, 4], swizzle())


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.text)
def test_layouts_are_immutable(layout: Layout) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        layout.orders = ()
    for order in layout.orders:
        with pytest.raises(dataclasses.FrozenInstanceError):
            order.kind = "OrderBy"
        for block in order.blocks:
            with pytest.raises(AttributeError, match="immutable"):
                block.dims = (1,)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.text)
def test_copies_are_equal(layout: Layout) -> None:
    """Blocks once could be neither copied nor pickled: their fields cannot be set."""
    assert copy.copy(layout) == layout
    assert copy.deepcopy(layout) == layout
    if "GenP" not in layout.text:  # a permutation is made of functions
        assert pickle.loads(pickle.dumps(layout)) == layout  # noqa: S301


def test_the_dots_do_not_change_their_layout() -> None:
    base = OrderBy(Row(4, 6))
    base.TileBy([2, 3], [2, 2])
    base.OrderBy(Col(4, 6))
    assert base == OrderBy(Row(4, 6))
    assert base.view is None


def test_the_callers_arrays_are_left_alone() -> None:
    layout = OrderBy(Row(4, 6)).GroupBy([6, 4])
    i, j = np.arange(4), np.arange(4, dtype=np.uint8)
    layout.apply(i, j)
    flat = np.arange(24)
    layout.inv(flat)
    assert i.tolist() == j.tolist() == [0, 1, 2, 3]
    assert flat.tolist() == list(range(24))


def test_text_and_properties_of_a_layout() -> None:
    layout = OrderBy(Row(M, 6)).TileBy([M // 8, 3], [8, 2])
    assert layout.dims == (M // 8, 3, 8, 2)
    assert layout.rank == 4
    assert layout.size is 6 * M
    assert layout.tensor_shape == (M, 6)
    assert layout.symbols == (M,)
    assert OrderBy(Row(2), Col(3, 4)).dims == (2, 3, 4)
    assert repr(Row(2, 3)) == "Row(2, 3)"


def test_small_integer_types_do_not_overflow() -> None:
    """Offsets of int8 or int32 indices are computed in 64 bits."""
    layout = OrderBy(Row(100, 100, 100, 100, 100))
    for dtype in (np.int8, np.uint8, np.int32):
        top = np.full(3, 99, dtype)
        assert layout.apply(top, top, top, top, top).tolist() == [10**10 - 1] * 3
    assert layout.apply(*np.full(5, 99, np.int8)) == 10**10 - 1


def test_arrays_broadcast() -> None:
    layout = OrderBy(Row(4, 6))
    table = layout.apply(np.arange(4)[:, None], np.arange(6))
    assert (table == np.arange(24).reshape(4, 6)).all()
    assert layout.apply(np.arange(0), 3).shape == (0,)
    assert layout.apply(2, np.arange(6)).tolist() == list(range(12, 18))
