"""Composition, inverse and equality of layouts.

The truth is a table of offsets: composition is one table indexed by another, the inverse is its
argsort, and two layouts are equal if their tables are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_permutations import FUNCTIONS, rotate, rotate_inv
from random_layouts import (
    L,
    blocks,
    built,
    layouts,
    spread,
    symbolic_layouts,
    table_of,
)

from lego_mlir.algebra import (
    Col,
    GenP,
    GroupBy,
    Layout,
    OrderBy,
    Permutation,
    RegP,
    Row,
    TileBy,
    antidiagonal,
    block_cyclic,
    bricks,
    hilbert,
    inverse,
    morton,
    parse_layout,
    reverse,
    size_symbol,
    swizzle,
    tma_swizzle,
)
from lego_mlir.algebra.verification.equality import MOST_ELEMENTS
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate, where

M, N = size_symbol("M"), size_symbol("N")
EXAMPLES = 150


# ------------------------------------------------------------------------------ random layouts
@st.composite
def of_pool(draw: st.DrawFn, pool: list[Any]) -> L:
    """A layout that uses up the pool, so that two of them have equally many elements."""
    tiled = draw(st.booleans())
    kinds = draw(st.lists(st.sampled_from(["OrderBy", "TileOrderBy"]), max_size=2))
    orders = tuple((k, draw(blocks(pool, tiled or k == "TileOrderBy"))) for k in kinds)
    levels = draw(st.integers(1, 2))
    rank = draw(st.integers(1, 3))
    dims = [tuple(f) for f in draw(spread(pool, levels * rank))]
    tiles = tuple(tuple(dims[k * rank : (k + 1) * rank]) for k in range(levels))
    return L(orders, ("TileBy" if tiled else "GroupBy", tiles))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[L, L]:
    pool = draw(st.lists(st.sampled_from([2, 2, 3, 4, 8]), min_size=1, max_size=5))
    return draw(of_pool(pool)), draw(of_pool(pool))


def offsets(layout: Layout) -> np.ndarray:
    """The offsets in row-major order of the index, each by a call on integers."""
    return np.array([layout.apply(*index) for index in np.ndindex(*layout.dims)])


def reparsed(layout: Layout) -> Layout:
    return parse_layout(layout.text, functions=FUNCTIONS)


# ---------------------------------------------------------------------------------- composition
@settings(max_examples=EXAMPLES)
@given(pairs())
def test_composition_is_one_table_indexed_by_the_other(pair: tuple[L, L]) -> None:
    a, b = map(built, pair)
    both = a.compose(b)
    assert both.dims == b.dims
    assert (offsets(both) == table_of(pair[0])[table_of(pair[1])]).all()
    assert reparsed(both) == both


@settings(max_examples=EXAMPLES)
@given(pairs())
def test_composition_is_the_outer_layout_at_the_inner_position(pair: tuple[L, L]) -> None:
    """The definition, index by index, on the logical spaces of both."""
    a, b = map(built, pair)
    both = a.compose(b)
    for index in list(np.ndindex(*b.dims))[:: max(1, b.size // 16)]:
        middle = np.unravel_index(b.apply(*index), a.dims)
        assert both.apply(*index) == a.apply(*(int(i) for i in middle))


@pytest.mark.parametrize(
    ("outer", "inner", "text"),
    [
        # What does nothing is not written.
        ("OrderBy(Row(4, 8))", "OrderBy(Col(4, 8))", "OrderBy(Col(4, 8))"),
        ("GroupBy([32])", "TileBy([2, 4], [2, 2])", "TileBy([2, 4], [2, 2])"),
        ("OrderBy(Col(4, 8))", "OrderBy(Row(4, 8))", "OrderBy(Col(4, 8))"),
        ("OrderBy(Col(4, 1, 8))", "GroupBy([32])", "OrderBy(Col(4, 1, 8)).GroupBy([32])"),
        ("OrderBy(Col(1, 32, 1))", "OrderBy(Col(4, 8))", "OrderBy(Col(4, 8))"),
        # What undoes its neighbour is not either.
        ("OrderBy(Col(8, 4))", "OrderBy(Col(4, 8))", "GroupBy([4, 8])"),
        ("OrderBy(GenP([4, 8], reverse))", "OrderBy(GenP([4, 8], reverse))", "GroupBy([4, 8])"),
        # Regular permutations, one of the other's dimensions, are one.
        (
            "OrderBy(RegP([4, 2, 3], [2, 0, 1]))",
            "OrderBy(RegP([2, 3, 4], [2, 0, 1]))",
            "OrderBy(RegP([2, 3, 4], [1, 2, 0]))",
        ),
        ("OrderBy(Row(2, 3), Col(4, 5))", "GroupBy([120])", "OrderBy(RegP([2, 3, 4, 5], "
         "[0, 1, 3, 2])).GroupBy([120])"),
        # A tiled view stays a tiled view, of the same tensor.
        (
            "OrderBy(GenP([64, 64], swizzle))",
            "OrderBy(Row(64, 64)).TileBy([4, 4], [16, 16])",
            "OrderBy(GenP([64, 64], swizzle)).TileBy([4, 4], [16, 16])",
        ),
        (
            "OrderBy(GenP([64, 64], reverse))",
            "OrderBy(Col(64, 64)).TileBy([4, 4], [16, 16])",
            "OrderBy(GenP([64, 64], reverse)).OrderBy(Col(64, 64)).TileBy([4, 4], [16, 16])",
        ),
        # Unless blocks are nested: TileBy would read them as levels.
        (
            "OrderBy(GenP([4], reverse), Row(4))",
            "OrderBy(Row(4, 4)).TileBy([2, 2], [2, 2])",
            "OrderBy(GenP([4], reverse), Row(4))"
            ".OrderBy(RegP([2, 2, 2, 2], [0, 2, 1, 3]))",
        ),
    ],
)  # fmt: skip
def test_the_text_of_a_composition_is_short(outer: str, inner: str, text: str) -> None:
    both = parse_layout(outer).compose(parse_layout(inner))
    assert both.text == text
    assert parse_layout(both.text) == both


def test_composition_of_symbolic_sizes() -> None:
    tiled = parse_layout("OrderBy(Row(M, N)).TileBy([M/4, N/8], [4, 8])")
    both = OrderBy(GenP(tiled.orders[0].dims, reverse)).compose(tiled)
    assert both.text == "OrderBy(GenP([M, N], reverse)).TileBy([M/4, N/8], [4, 8])"
    assert parse_layout(both.text) == both
    assert (offsets(both.bind(M=8, N=16)) == 127 - offsets(tiled.bind(M=8, N=16))).all()


@settings(max_examples=EXAMPLES)
@given(symbolic_layouts())
def test_the_inverse_undoes_a_layout_of_symbolic_sizes(d: L) -> None:
    """By construction: whatever the sizes are, nothing is left of the chain."""
    layout = built(d)
    assert layout.inverse().compose(layout).simplified().stages == ()
    assert layout.compose(layout.inverse()).equals(GroupBy([layout.size])).holds


# -------------------------------------------------------------------------------------- inverse
@settings(max_examples=EXAMPLES)
@given(layouts())
def test_the_inverse_is_the_argsort(d: L) -> None:
    layout, truth = built(d), np.argsort(table_of(d))
    back = layout.inverse()
    assert back.dims == (layout.size,)
    assert (np.broadcast_to(back.apply(np.arange(len(truth))), truth.shape) == truth).all()
    assert (back.inv(truth)[0] == np.arange(len(truth))).all()
    flat = Sym("flat", 0, len(truth) - 1)
    values = evaluate(back.apply(flat), {"flat": np.arange(len(truth))})
    assert (np.broadcast_to(values, truth.shape) == truth).all()
    assert reparsed(back) == back


@settings(max_examples=EXAMPLES)
@given(layouts())
def test_twice_inverted_is_the_same_function(d: L) -> None:
    layout = built(d)
    twice = layout.inverse().inverse()
    assert twice.compose(GroupBy(layout.dims)).equals(layout).method == "construction"
    assert layout.simplified().equals(layout)
    assert len(layout.simplified().stages) <= len(layout.stages)


@pytest.mark.parametrize(
    ("permutation", "text"),
    [
        (inverse(antidiagonal), "inverse(antidiagonal)"),
        (inverse(inverse(antidiagonal)), "antidiagonal"),
        (inverse(rotate, rotate_inv), "inverse(@rotate, @rotate_inv)"),
        (inverse(inverse(rotate, rotate_inv)), "@rotate, @rotate_inv"),
        (inverse(reverse), "reverse"),
        (inverse(swizzle), "swizzle"),
        (inverse(swizzle(2, 1, 4)), "swizzle(2, 1, 4)"),
    ],
)
def test_the_text_of_an_inverse_permutation(permutation: Permutation, text: str) -> None:
    layout = OrderBy(GenP([8, 8], permutation))
    assert layout.text == f"OrderBy(GenP([8, 8], {text}))"
    read = reparsed(layout)
    assert read == layout
    assert (offsets(read) == offsets(layout)).all()
    nested = parse_layout("OrderBy(GenP([8, 8], inverse(inverse(inverse(antidiagonal)))))")
    assert nested.text == "OrderBy(GenP([8, 8], inverse(antidiagonal)))"


@pytest.mark.parametrize(
    "layout",
    [
        OrderBy(GenP([8, 16], p))
        for p in (reverse, swizzle, swizzle(2, 2, 4), tma_swizzle(32, 4), bricks(2, 4))
    ]
    + [OrderBy(GenP([8, 8], p)) for p in (antidiagonal, morton, hilbert)]
    + [OrderBy(GenP([8, 128], tma_swizzle(128, 2))), OrderBy(GenP([32], block_cyclic(2, 4)))],
)
def test_inverses_of_the_named_permutations(layout: Layout) -> None:
    """Also of those that count as their own inverse: no text may say so wrongly."""
    back = layout.inverse()
    assert (offsets(back) == np.argsort(offsets(layout))).all()
    assert parse_layout(back.text) == back
    assert back.compose(layout).text == f"GroupBy({list(layout.dims)})"


def test_regular_blocks_are_inverted_to_regular_blocks() -> None:
    layout = OrderBy(RegP([2, 3, 5], [2, 0, 1]))
    assert layout.inverse().text == "OrderBy(RegP([5, 2, 3], [1, 2, 0])).GroupBy([30])"
    assert OrderBy(Col(M, N)).inverse().text == "OrderBy(Col(N, M)).GroupBy([M*N])"
    assert OrderBy(Row(M, N)).inverse().text == "GroupBy([M*N])"


# ------------------------------------------------------------------------------------- equality
@settings(max_examples=EXAMPLES)
@given(pairs())
def test_equality_is_that_of_the_tables(pair: tuple[L, L]) -> None:
    a, b = map(built, pair)
    if a.view and b.view and a.view.kind == b.view.kind == "GroupBy":
        b = Layout(b.orders, a.view)
    verdict = a.equals(b)
    if a.dims != b.dims:
        assert verdict.holds is False
        return
    left, right = offsets(a), offsets(b)
    assert verdict.holds == bool((left == right).all())
    if not verdict.holds:
        assert verdict.counterexample is not None
        (element,), at = verdict.counterexample.elements, verdict.counterexample.positions
        k = int(np.ravel_multi_index(element, a.dims))
        assert at == (left[k], right[k])
        assert at[0] != at[1]


@settings(max_examples=EXAMPLES)
@given(layouts())
def test_a_layout_equals_the_user_permutation_that_computes_it(d: L) -> None:
    """Written as a pair of functions it has other blocks, and other expressions."""
    layout = built(d)

    def f(*index: Any) -> Any:
        return layout.apply(*index)

    def f_inv(flat: Any) -> Any:
        return layout.inv(flat)

    theirs = OrderBy(GenP(layout.dims, f, f_inv))
    assert layout.equals(theirs).method == "enumeration"
    assert theirs.equals(layout).holds is True


def planted(at: int, size: int) -> Layout:
    """Row-major but for one element, which goes where its successor is."""

    def f(i: Any) -> Any:
        return where(i < at, i, where(i > at, i, at + 1))

    return OrderBy(GenP([size], f, f))


@pytest.mark.parametrize("size", [7, 1 << 18, MOST_ELEMENTS])
def test_one_element_makes_a_difference(size: int) -> None:
    verdict = OrderBy(Row(size)).equals(planted(size - 1, size))
    assert verdict.holds is False
    assert verdict.method == "enumeration"
    assert verdict.counterexample is not None
    assert verdict.counterexample.elements == ((size - 1,),)
    assert verdict.counterexample.positions == (size - 1, size)


def test_one_element_of_very_many_is_found_by_proof() -> None:
    size, at = 1 << 40, 123_456_789_123
    verdict = OrderBy(Row(size)).equals(planted(at, size))
    assert verdict.holds is False
    assert verdict.method == "proof"
    assert verdict.counterexample is not None
    assert verdict.counterexample.elements == ((at,),)
    assert str(verdict).endswith(f"puts element [{at}] at {at}, '{planted(at, size)}' at {at + 1}")


def test_very_many_elements_are_equal_by_their_expressions() -> None:
    tiled = OrderBy(Row(1 << 20, 1 << 20)).TileBy([1 << 10] * 2, [1 << 10] * 2)
    again = OrderBy(RegP([1 << 10] * 4, [0, 2, 1, 3]), Row(1)).GroupBy(tiled.dims)
    assert tiled.equals(again).holds is True

    def f(i: Any) -> Any:
        return i + 1 - 1

    assert OrderBy(Row(1 << 40)).equals(OrderBy(GenP([1 << 40], f, f))).method == "proof"


def test_symbolic_sizes_by_construction_and_by_proof() -> None:
    a = parse_layout("OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])")
    b = parse_layout("OrderBy(RegP([M/128, 128, K/64, 64], [0, 1, 2, 3]))"
                     ".OrderBy(RegP([M/128, K/64, 128, 64], [0, 2, 1, 3]))")  # fmt: skip
    assert a.equals(b).method == "construction"
    twice = parse_layout("OrderBy(Col(M, N)).OrderBy(Row(M*N)).OrderBy(Col(N, M))"
                         ".GroupBy([N, M])")  # fmt: skip
    assert twice.equals(GroupBy([N, M])).holds is True

    def f(i: Any, j: Any) -> Any:
        return i * N + where(j < i, j, j)

    def f_inv(flat: Any) -> Any:
        return flat // N, flat % N

    assert OrderBy(GenP([M, N], f, f_inv)).equals(OrderBy(Row(M, N))).method == "proof"


def test_symbolic_sizes_that_differ() -> None:
    a, b = OrderBy(Row(M, N)), OrderBy(Col(M, N))
    verdict = a.equals(b)
    assert verdict.holds is False
    found = verdict.counterexample
    assert found is not None
    bound = [x.bind(**found.sizes) for x in (a, b)]
    assert found.positions == tuple(x.apply(*found.elements[0]) for x in bound)
    assert found.positions[0] != found.positions[1]
    assert f"M = {found.sizes['M']}" in verdict.detail


def test_layouts_that_differ_at_large_sizes_only() -> None:
    """Beyond the samples, Z3 finds where; the layouts have the last word."""

    def f(i: Any) -> Any:
        return where(i < 10**9, i, i + 1)

    verdict = OrderBy(GenP([M], f, f)).equals(OrderBy(Row(M)))
    assert verdict.holds is False
    assert verdict.method == "proof"
    assert verdict.counterexample is not None
    assert verdict.counterexample.elements[0][0] >= 10**9
    assert verdict.counterexample.sizes["M"] > 10**9


def test_index_spaces_that_differ() -> None:
    assert str(OrderBy(Row(4, 8)).equals(OrderBy(Row(32)))) == (
        "does not hold (by construction): 'OrderBy(Row(4, 8))' is indexed by [4, 8], "
        "'OrderBy(Row(32))' by [32]"
    )
    assert str(OrderBy(Row(4, 8)).equals(OrderBy(Row(4, 9)))).endswith("dimension 1 differs")
    verdict = OrderBy(Row(M, 2)).equals(OrderBy(Row(N, 2)))
    assert verdict.holds is False
    assert verdict.counterexample is not None
    assert verdict.counterexample.sizes["M"] != verdict.counterexample.sizes["N"]
    assert "dimension 0 differs where" in verdict.detail


def test_a_symbol_is_one_size_whatever_divisors_either_text_states() -> None:
    """M/4 in one of them is a fact about the M of both."""
    a = parse_layout("OrderBy(Row(M/4, 4)).GroupBy([M])")
    assert a.equals(parse_layout("OrderBy(Row(M))")).holds is True
    assert a.equals(parse_layout("OrderBy(GenP([M], reverse))")).holds is False


def test_functions_for_integers_are_called_on_integers() -> None:
    table = [2, 0, 1, 3]

    def f(i: Any) -> Any:
        return table[i] if i < 4 else i

    a = OrderBy(GenP([6], f, f))
    assert a.equals(OrderBy(Row(6))).counterexample.elements == ((0,),)  # type: ignore[union-attr]
    assert OrderBy(Row(6)).GroupBy([6]).equals(OrderBy(GenP([6], f, f))).holds is False

    def same(i: Any) -> Any:
        return int(str(i))

    assert OrderBy(GenP([6], same, same)).equals(OrderBy(Row(6))).method == "enumeration"
    verdict = OrderBy(GenP([1 << 30], same, same)).equals(OrderBy(Row(1 << 30)))
    assert verdict.holds is None
    assert "takes no symbols" in verdict.detail
    assert not verdict


def test_functions_that_differ_between_symbols_and_integers_are_refused() -> None:
    """`==` between symbols is not their equality: the expression alone would be a wrong proof."""

    def f(i: Any) -> Any:
        return i if i % 2 == 0 or i % 2 == 1 else 0

    assert OrderBy(GenP([4], f, f)).equals(OrderBy(Row(4))).method == "enumeration"
    verdict = OrderBy(GenP([1 << 40], f, f)).equals(OrderBy(Row(1 << 40)))
    assert verdict.holds is None
    assert "not the same for symbols as for integers" in verdict.detail


def test_partial_tiles_are_compared_where_they_have_elements() -> None:
    a = parse_layout("OrderBy(Row(10, 7)).TileBy([3, 2], [4, 4])")
    b = parse_layout("OrderBy(Col(10, 7)).TileBy([3, 2], [4, 4])")
    assert a.equals(parse_layout(a.text)).method == "construction"
    verdict = a.equals(b)
    assert verdict.counterexample is not None
    assert verdict.counterexample.elements == ((0, 0, 0, 1),)
    assert verdict.counterexample.positions == (1, 10)
    same = parse_layout("OrderBy(Row(10, 7)).OrderBy(Row(10, 7)).TileBy([3, 2], [4, 4])")
    assert a.equals(same).holds is True
    whole = parse_layout("OrderBy(Row(12, 8)).TileBy([3, 2], [4, 4])")
    assert a.equals(whole).holds is False


# --------------------------------------------------------------------------------------- errors
PARTIAL = parse_layout("OrderBy(Row(10, 7)).TileBy([3, 2], [4, 4])")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: OrderBy(Row(4, 8)).compose(OrderBy(Row(4, 4))),
            "'OrderBy(Row(4, 8))' has 32 elements, 'OrderBy(Row(4, 4))' has 16",
        ),
        (
            lambda: OrderBy(Row(M, N)).compose(OrderBy(Row(M, M))),
            "'OrderBy(Row(M, N))' has M*N elements, 'OrderBy(Row(M, M))' has M*M: not known to",
        ),
        (lambda: OrderBy(Row(4)).compose(Row(4)), "compose takes a layout, not Row(4)"),
        (lambda: OrderBy(Row(4)).equals("OrderBy(Row(4))"), "equals takes a layout, not 'OrderBy"),
        (PARTIAL.inverse, f"inverse: the tiles of '{PARTIAL}' stick out of the tensor"),
        (PARTIAL.simplified, f"simplified: the tiles of '{PARTIAL}' stick out of the tensor"),
        (lambda: PARTIAL.compose(TileBy([2, 35])), f"compose: the tiles of '{PARTIAL}' stick out"),
        (lambda: TileBy([2, 35]).compose(PARTIAL), f"compose: the tiles of '{PARTIAL}' stick out"),
        (lambda: inverse(rotate), "inverse: a function needs its inverse"),
        (lambda: inverse(3), "inverse: 3 is neither a permutation nor a function"),
        (
            lambda: inverse(antidiagonal, rotate),
            "inverse: 'antidiagonal' brings its own inverse; f_inv is one too many",
        ),
        (
            lambda: GenP([2, 3], inverse(antidiagonal)),
            "antidiagonal permutes a square tile, not [2, 3]",
        ),
        (
            lambda: parse_layout("OrderBy(GenP([3, 3], inverse antidiagonal))"),
            "expected '(' after inverse, found 'antidiagonal'",
        ),
        (
            lambda: parse_layout("OrderBy(GenP([3, 3], inverse(antidiagonal, 3)))"),
            "expected ')' at the end of inverse, found ','",
        ),
        (
            lambda: parse_layout("OrderBy(GenP([3, 3], inverse(nothing)))"),
            "there is no permutation 'nothing'",
        ),
    ],
)
def test_wrong_compositions_are_errors(make: Any, message: str) -> None:
    with pytest.raises(LegoError) as e:
        make()
    assert e.value.message.startswith(message)
