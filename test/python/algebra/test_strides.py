"""Shapes and strides, in CuTe's notation, against an oracle that walks the modes.

`walked` lists the offsets that a shape and strides stand for; `has_strides` tries every way to
split a dimension. Neither shares code with the product.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_layouts import B, L, built, layouts, symbolic_layouts, table_of

from lego_mlir.algebra import (
    Col,
    GenP,
    Layout,
    OrderBy,
    RegP,
    Row,
    Strides,
    antidiagonal,
    from_strides,
    parse_layout,
    reverse,
    size_symbol,
    swizzle,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import evaluate

M, N = size_symbol("M"), size_symbol("N")
EXAMPLES = 150


# --------------------------------------------------------------------------------------- oracle
def leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple) else [x]


def walked(shape: tuple[Any, ...], stride: tuple[Any, ...]) -> list[int]:
    """The offsets of all indices in row-major order; of a dimension the first mode is fastest."""
    along = []
    for n, d in zip(shape, stride, strict=True):
        digits = product(*(range(size) for size in reversed(leaves(n))))
        steps = leaves(d)[::-1]
        along.append([sum(i * s for i, s in zip(x, steps, strict=True)) for x in digits])
    return [sum(parts) for parts in product(*along)]


def has_modes(line: np.ndarray) -> bool:
    """Whether offsets along a dimension are those of some modes: every split is tried."""
    n = len(line)
    if n == 1:
        return bool(line[0] == 0)
    for size in (k for k in range(2, n + 1) if n % k == 0):
        first, rest = np.arange(size) * line[1], line[::size]
        if (line == (rest[:, None] + first).reshape(-1)).all() and has_modes(rest):
            return True
    return False


def has_strides(table: np.ndarray) -> bool:
    lines = [
        table[tuple(slice(None) if k == axis else 0 for k in range(table.ndim))]
        for axis in range(table.ndim)
    ]
    total = sum(np.ix_(*lines)) if len(lines) > 1 else lines[0]
    return bool((table == total).all()) and all(has_modes(line) for line in lines)


def coalesced(shape: Any, stride: Any) -> bool:
    """No two neighbouring modes of a dimension could be one, and none has size 1."""
    sizes, steps = leaves(shape), leaves(stride)
    joinable = any(n * d == e for n, d, e in zip(sizes, steps, steps[1:], strict=False))
    return not joinable and (1 not in sizes or sizes == [1])


# ------------------------------------------------------------------------------ random strides
@st.composite
def compact(draw: st.DrawFn) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A shape, nested one or two deep, and strides that make it a bijection."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    strides = [0] * len(sizes)
    span = 1
    for k in draw(st.permutations(range(len(sizes)))):
        strides[k] = span if sizes[k] > 1 else draw(st.integers(0, 7))
        span *= sizes[k]
    shape: list[Any] = []
    stride: list[Any] = []
    k = 0
    while k < len(sizes):
        width = draw(st.integers(1, 3))
        group, steps = tuple(sizes[k : k + width]), tuple(strides[k : k + width])
        if len(group) == 1 and draw(st.booleans()):
            shape, stride = [*shape, group[0]], [*stride, steps[0]]
        elif len(group) == 3 and draw(st.booleans()):
            shape = [*shape, (group[0], group[1:])]
            stride = [*stride, (steps[0], steps[1:])]
        else:
            shape, stride = [*shape, group], [*stride, steps]
        k += width
    return tuple(shape), tuple(stride)


@st.composite
def regular(draw: st.DrawFn, drawn: st.SearchStrategy[L]) -> L:
    """A layout of regular permutations alone, whose stages often meet."""
    d = draw(drawn)
    orders = tuple(
        (kind, tuple(b if b.kind in ("Row", "Col", "RegP") else B(b.dims, "Row") for b in bs))
        for kind, bs in d.orders
    )
    return L(orders, d.view)


# ---------------------------------------------------------------------------------------- tests
@settings(max_examples=EXAMPLES)
@given(compact())
def test_from_strides_is_the_walk_and_back(case: tuple[Any, Any]) -> None:
    shape, stride = case
    layout, truth = from_strides(shape, stride), walked(shape, stride)
    assert layout.dims == tuple(prod(leaves(n)) for n in shape)
    assert [layout.apply(*index) for index in np.ndindex(*layout.dims)] == truth
    found = layout.to_strides()
    assert walked(found.shape, found.stride) == truth
    assert all(map(coalesced, found.shape, found.stride))
    assert parse_layout(layout.text) == layout


@settings(max_examples=2 * EXAMPLES)
@given(st.one_of(regular(layouts()), layouts()))
def test_a_layout_has_strides_exactly_where_the_oracle_finds_some(d: L) -> None:
    layout, truth = built(d), table_of(d)
    if not has_strides(truth.reshape(layout.dims)):
        with pytest.raises(LegoError, match="has no strides"):
            layout.to_strides()
        return
    strides = layout.to_strides()
    assert walked(strides.shape, strides.stride) == truth.tolist()
    assert all(map(coalesced, strides.shape, strides.stride))
    again = from_strides(str(strides))
    assert again == from_strides(strides)
    assert again.equals(layout)
    assert again.to_strides() == strides


@settings(max_examples=EXAMPLES)
@given(regular(layouts()))
def test_strides_are_the_same_by_blocks_and_by_elements(d: L) -> None:
    """Behind a user's functions nothing is known of the blocks; the offsets tell the same."""
    layout = built(d)
    theirs = OrderBy(GenP(layout.dims, lambda_of(layout), layout_inverse(layout)))
    assert outcome(theirs) == outcome(layout)


def lambda_of(layout: Layout) -> Any:
    def f(*index: Any) -> Any:
        return layout.apply(*index)

    return f


def layout_inverse(layout: Layout) -> Any:
    def f_inv(flat: Any) -> Any:
        return layout.inv(flat)

    return f_inv


def outcome(layout: Layout) -> str:
    """The strides, or what is wrong, but for the reason that is in the blocks."""
    try:
        return str(layout.to_strides())
    except LegoError as e:
        return e.message.split("; ")[-1]


@settings(max_examples=EXAMPLES)
@given(regular(symbolic_layouts()), st.data())
def test_symbolic_strides_are_those_of_every_size(d: L, data: st.DataObject) -> None:
    layout = built(d)
    assume(layout.symbols and "strides" not in outcome(layout))
    strides = layout.to_strides()
    again = from_strides(str(strides))
    assert str(again.to_strides()) == str(strides)
    values = {s.name: 4 * data.draw(st.integers(1, 2)) for s in layout.symbols}

    def number(x: Any) -> Any:
        return tuple(map(number, x)) if isinstance(x, tuple) else evaluate(x, values)

    bound = layout.bind(**values)
    index = np.random.default_rng(0).integers(0, bound.dims, (20, bound.rank))
    for point in index:
        at = 0
        for i, n, step in zip(point, number(strides.shape), number(strides.stride), strict=True):
            for size, distance in zip(leaves(n), leaves(step), strict=True):
                at, i = at + int(i) % size * distance, int(i) // size
        assert bound.apply(*(int(i) for i in point)) == at


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("OrderBy(Row(128, 64))", "(128,64):(64,1)"),
        ("OrderBy(Col(128, 64))", "(128,64):(1,128)"),
        ("OrderBy(Row(7))", "7:1"),
        ("GroupBy([1])", "1:0"),
        ("OrderBy(Row(4, 8)).GroupBy([32])", "32:1"),
        ("OrderBy(Row(4, 1, 8))", "(4,1,8):(8,0,1)"),
        ("OrderBy(RegP([4, 8], [1, 0])).GroupBy([32])", "((8,4)):((4,1))"),
        ("OrderBy(Col(4, 8, 2)).GroupBy([32, 2])", "((8,4),2):((4,1),32)"),
        ("OrderBy(Row(64, 64)).TileBy([4, 4], [16, 16])", "(4,4,16,16):(1024,16,64,1)"),
        ("OrderBy(Row(4, 4), Row(16, 16)).TileBy([4, 4], [16, 16])", "(4,4,16,16):(1024,256,16,1)"),
        ("TileOrderBy(Row(4, 4), Row(16, 16))", "(4,4,(4,4),16):(1024,64,(256,16),1)"),
        ("OrderBy(Row(4, 4), Col(2, 2)).GroupBy([8, 8])", "(8,(2,2,2)):(8,(2,1,4))"),
        (
            "OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])",
            "(M/128,K/64,128,64):(128*K,64,K,1)",
        ),
        ("OrderBy(Col(M, N))", "(M,N):(1,M)"),
        ("OrderBy(Col(M, 8)).GroupBy([8*M])", "((8,M)):((M,1))"),
        # Not by blocks: a general permutation that is regular after all.
        ("OrderBy(GenP([4, 8], swizzle(1, 1, 1)))", "(4,8):(8,1)"),
        # Cut where one block alone would not allow it.
        ("OrderBy(Row(2, 3)).GroupBy([3, 2])", "(3,2):(2,1)"),
    ],
)
def test_worked_strides(layout: str, text: str) -> None:
    found = parse_layout(layout).to_strides()
    assert str(found) == text
    assert from_strides(str(found)).equals(parse_layout(layout))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("(128,64):(64,1)", "OrderBy(Row(128, 64))"),
        (" ( 128 , 64 ) : ( 1 , 128 ) ", "OrderBy(Col(128, 64))"),
        ("32:1", "OrderBy(Row(32))"),
        ("(32):(1)", "OrderBy(Row(32))"),
        ("1:5", "GroupBy([1])"),
        ("(4,1,8):(8,77,1)", "GroupBy([4, 1, 8])"),
        ("((8,4)):((4,1))", "OrderBy(Col(4, 8)).GroupBy([32])"),
        ("((4,8)):((1,4))", "GroupBy([32])"),
        ("((8,4),2):((4,1),32)", "OrderBy(Col(4, 8, 2)).GroupBy([32, 2])"),
        (
            "((2,(3,5)),7):((105,(1,3)),15)",
            "OrderBy(RegP([5, 3, 2, 7], [2, 3, 0, 1])).GroupBy([30, 7])",
        ),
        ("(M,N):(N,1)", "OrderBy(Row(M, N))"),
        ("(M/4,(4)):(4,(1))", "OrderBy(Row(M/4, 4))"),
        ("((M + 1)*2,3):(3,1)", "OrderBy(Row(2*M + 2, 3))"),
    ],
)  # fmt: skip
def test_the_layout_of_a_text(given: str, text: str) -> None:
    assert from_strides(given).text == text


def test_python_values_as_text() -> None:
    assert from_strides((128, 64), (64, 1)) == from_strides("(128,64):(64,1)")
    assert from_strides([128, [4, 16]], [64, [16, 1]]) == from_strides("(128,(4,16)):(64,(16,1))")
    assert from_strides(32, 1) == OrderBy(Row(32))
    assert from_strides(np.int64(32), np.int32(1)) == OrderBy(Row(32))
    assert from_strides((M, N), (1, M)) == OrderBy(Col(M, N))
    assert from_strides(Strides((2, 3), (3, 1))) == OrderBy(Row(2, 3))


def test_large_layouts_have_strides_by_their_blocks() -> None:
    layout = OrderBy(RegP([1 << 20, 1 << 21, 1 << 20], [2, 0, 1]))
    shape = f"({1 << 20},{1 << 21},{1 << 20})"
    assert str(layout.to_strides()) == f"{shape}:({1 << 21},1,{1 << 41})"


def skewed(i: Any, j: Any) -> Any:
    return i * 4 + (i + j) % 4


def skewed_inv(flat: Any) -> Any:
    return flat // 4, (flat - flat // 4) % 4


# Errors.
NOT_STRIDED = [
    (OrderBy(GenP([8, 8], swizzle)), "element [1, 1] is at 8, where strides give 10"),
    (OrderBy(GenP([4, 4], antidiagonal)), "GenP([4, 4], antidiagonal) is no permutation of dim"),
    (OrderBy(GenP([2, 3], reverse)), "element [0, 0] is at 5, where strides give 0"),
    (OrderBy(GenP([4, 4], skewed, skewed_inv)), "element [1, 3] is at 4, where strides give 8"),
    (OrderBy(Col(2, 3)).GroupBy([3, 2]), "the dimensions of its parts do not divide one another"),
    (OrderBy(GenP([1 << 12] * 2, swizzle)), "is not known to have strides: GenP([4096, 4096], sw"),
    (OrderBy(GenP([M], reverse)), "is not known to have strides: GenP([M], reverse) is no permuta"),
    (OrderBy(Col(M, N)).GroupBy([N, M]), "is not known to have strides: the dimensions of its par"),
    (parse_layout("OrderBy(Row(5)).TileBy([2], [4])"), "to_strides: the tiles of 'OrderBy(Row(5))"),
]


@pytest.mark.parametrize(("layout", "message"), NOT_STRIDED)
def test_layouts_without_strides_are_refused(layout: Layout, message: str) -> None:
    with pytest.raises(LegoError) as e:
        layout.to_strides()
    assert message in e.value.message


ERRORS = [
    ((4, 8), (1, 8), "the faster modes of 4:1, 8:8 span 4, so stride 8 leaves a gap"),
    ((4, 8), (1, 2), "the faster modes of 4:1, 8:2 span 4, so stride 2 overlaps them"),
    ((4, 8), (8, 2), "the faster modes of 4:8, 8:2 span 1, so stride 2 leaves a gap"),
    ((4, 4), (1, 1), "the faster modes of 4:1, 4:1 span 4, so stride 1 overlaps them"),
    ((4, 8), (0, 1), "stride 0 of size 4 in 4:0, 8:1: a stride is at least 1"),
    ((4, 8), (1, -4), "stride -4 of size 8 in 4:1, 8:-4: a stride is at least 1"),
    ((4, 8), (8, (1, 2)), "shape (4, 8) and stride (8, (1, 2)) are not nested alike"),
    ((4, 8), (8, 1, 1), "shape (4, 8) and stride (8, 1, 1) are not nested alike"),
    (4, (1,), "shape 4 and stride (1,) are not nested alike"),
    ((), (), "every tuple of shape () needs a size"),
    ((4, []), (1, ()), "every tuple of shape (4, []) needs a size"),
    ((4, 8), (1.0, 4), "a stride is an integer or a symbol, not 1.0"),
    ((4, 8), (True, 4), "a stride is an integer or a symbol, not True"),
    ((4.0, 8), (8, 1), "a size is a positive integer or a symbol, not 4.0"),
    ((4, 0), (1, 4), "a size must be at least 1, not 0"),
    ((4, "8"), (8, 1), "a size is a positive integer or a symbol, not '8'"),
    ((4, 8), None, "a shape needs its strides"),
    ("(4,8)", (8, 1), "shape (4,8) and stride (8, 1) are not nested alike"),
    ((M, N), (1, N), "none of the strides N is known to be M, which is what the faster modes of"),
]


@pytest.mark.parametrize(("shape", "stride", "message"), ERRORS)
def test_strides_that_are_no_layout_are_refused(shape: Any, stride: Any, message: str) -> None:
    with pytest.raises(LegoError) as e:
        from_strides(shape, stride)
    assert e.value.message.startswith(f"from_strides: {message}")


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("(4,8)", 6, "expected ':' between the shape and its strides, found the end"),
        ("(4,8):(8,1", 7, "'(' is never closed"),
        ("(4,8):(8,1):2", 12, "unexpected ':' after the strides"),
        ("(4,8):(8,1.5)", 11, "expected ')' or ',' after an item, found '.'"),
        ("(4,):(1,)", 4, "expected a size, found ')'"),
        ("", 1, "expected a size, found the end"),
        ("(4,8):(a b,1)", 10, "expected ')' or ',' after an item, found 'b'"),
        (
            "(" * 5000 + "4" + ")" * 5000 + ":1",
            65,
            "65 brackets are open here; the limit layout_nesting is 64",
        ),
    ],
)
def test_errors_in_a_text_have_their_column(text: str, column: int, message: str) -> None:
    with pytest.raises(LegoError) as e:
        from_strides(text)
    assert e.value.message == message
    assert e.value.location is not None
    assert (e.value.location.file, e.value.location.column) == ("<strides>", column)


def test_equal_layouts_have_equal_strides() -> None:
    """The form is canonical, however a layout is written."""
    tiled = parse_layout("OrderBy(Row(8, 8)).TileBy([2, 2], [4, 4])")
    regular = OrderBy(RegP([2, 2, 4, 4], [0, 2, 1, 3]))
    nested = OrderBy(Row(2, 4), GenP([2, 4], swizzle(4))).OrderBy(*regular.orders[0].blocks)
    assert tiled.to_strides() == regular.to_strides() == nested.to_strides()
