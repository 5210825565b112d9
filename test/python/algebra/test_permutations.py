"""Named permutations against their definitions: walks, sorted keys, recursion, byte addresses.

Each oracle lists a tile's elements in the order in which they lie in memory, by plain loops over
indices, and shares no code with the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.algebra import (
    GenP,
    OrderBy,
    Permutation,
    RegP,
    block_cyclic,
    bricks,
    hilbert,
    inverse,
    morton,
    parse_layout,
    row_groups,
    size_symbol,
    swizzle,
    tma_swizzle,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Sym, bounds, evaluate, symbols
from lego_mlir.index.extraction.cost import count
from lego_mlir.index.nodes import plain

Element = tuple[int, ...]
Walk = list[Element]


# -------------------------------------------------------------------------------- the oracles
def elements(dims: Iterable[int]) -> Walk:
    return list(product(*map(range, dims)))


def z_order(dims: Element) -> Walk:
    """Sorted by the top bits of all indices, then by the next ones, the first index leading."""
    widths = [len(bin(n)) - 3 for n in dims]

    def key(element: Element) -> str:
        digits = [format(i, f"0{w}b")[::-1] for i, w in zip(element, widths, strict=True)]
        levels = reversed(range(max(widths)))
        return "".join(d[b] for b in levels for d, w in zip(digits, widths, strict=True) if b < w)

    return sorted(elements(dims), key=key)


def hilbert_walk(n: int) -> Walk:
    """A quarter transposed, two upright, one transposed and turned round."""
    if n == 1:
        return [(0, 0)]
    h = n // 2
    quarter = hilbert_walk(h)
    return [
        *((j, i) for i, j in quarter),
        *((i, h + j) for i, j in quarter),
        *((h + i, h + j) for i, j in quarter),
        *((n - 1 - j, h - 1 - i) for i, j in quarter),
    ]


def by_swizzled_address(dims: Element, mode: int, element: int) -> Walk:
    """By byte address in shared memory, of which TMA XORs bits from 4 on with bits from 7 on."""
    bits = {32: 1, 64: 2, 128: 3}[mode]
    places = {}
    for flat, index in enumerate(elements(dims)):
        address = flat * element
        line = (address >> 7) & ((1 << bits) - 1)
        places[address ^ (line << 4)] = index
    return [places[address] for address in sorted(places)]


def by_chunk(dims: Element, vec: int, per_phase: int, max_phase: int) -> Walk:
    """Definition 4.11 of papers/linear_layouts."""
    rows, columns = dims
    places = {}
    for i, j in elements(dims):
        chunk = (i // per_phase % max_phase) ^ (j // vec)
        places[i * columns + chunk * vec + j % vec] = (i, j)
    return [places[k] for k in range(rows * columns)]


def by_brick(dims: Element, brick: Element) -> Walk:
    corners = product(*(range(0, n, b) for n, b in zip(dims, brick, strict=True)))
    return [
        tuple(c + w for c, w in zip(corner, within, strict=True))
        for corner in corners
        for within in elements(brick)
    ]


def dealt(dims: Element, blocks: Element, parts: Element) -> Walk:
    """Deal the blocks of each dimension like cards; the hands one after the other."""
    hands = []
    for n, b, p in zip(dims, blocks, parts, strict=True):
        mine: list[list[int]] = [[] for _ in range(p)]
        for turn, start in enumerate(range(0, n, b)):
            mine[turn % p] += range(start, start + b)
        hands.append(mine)
    return [element for players in product(*hands) for element in product(*players)]


def by_row_group(dims: Element, rows: int) -> Walk:
    """Visit each group of rows column by column, matrix after matrix."""
    *lead, m, n = dims
    return [
        (*first, i, j)
        for first in elements(tuple(lead))
        for top in range(0, m, rows)
        for j in range(n)
        for i in range(top, min(m, top + rows))
    ]


Case = tuple[Element, Permutation, Callable[[], Walk]]


def tma(dims: Element, mode: int, element: int) -> Case:
    return dims, tma_swizzle(mode, element), lambda: by_swizzled_address(dims, mode, element)


def chunks(dims: Element, *parameters: int) -> Case:
    return dims, swizzle(*parameters), lambda: by_chunk(dims, *parameters)


def bricked(dims: Element, *brick: int) -> Case:
    return dims, bricks(*brick), lambda: by_brick(dims, brick)


def cyclic(dims: Element, *pairs: int) -> Case:
    return dims, block_cyclic(*pairs), lambda: dealt(dims, pairs[::2], pairs[1::2])


def grouped(dims: Element, rows: int) -> Case:
    return dims, row_groups(rows), lambda: by_row_group(dims, rows)


def z(*dims: int) -> Case:
    return dims, morton, lambda: z_order(dims)


def h(n: int) -> Case:
    return (n, n), hilbert, lambda: hilbert_walk(n)


CASES: list[Case] = [
    *(z(1), z(8), z(1, 1), z(2, 2), z(8, 8), z(32, 32), z(1, 16), z(4, 16), z(16, 4), z(64, 2)),
    *(z(4, 4, 4), z(2, 8, 4), z(8, 1, 2), z(4, 2, 1, 8), z(2, 2, 2, 2, 2), z(16, 2, 8)),
    *(h(1), h(2), h(4), h(8), h(16), h(32)),
    *(tma((8, 64), 128, 2), tma((4, 64), 128, 2), tma((12, 64), 128, 2), tma((16, 32), 128, 4)),
    *(tma((8, 32), 64, 2), tma((3, 16), 64, 4), tma((8, 32), 32, 1), tma((9, 8), 32, 4)),
    *(tma((1, 8), 128, 16), tma((7, 64), 128, 2), tma((6, 128), 64, 1), tma((8, 128), 128, 2)),
    *(tma((1024,), 128, 1), tma((3, 5, 64), 128, 2), tma((4, 4, 16), 32, 8), tma((3, 48), 32, 2)),
    *(chunks((32, 32), 1, 1, 32), chunks((8, 64), 8, 1, 8), chunks((16, 16), 4, 2, 4)),
    *(chunks((4, 32), 2, 4, 16), chunks((1, 8), 1, 1, 8), chunks((64, 8), 8, 1, 1)),
    *(bricked((12,), 4), bricked((12, 10), 4, 5), bricked((6, 4, 9), 2, 1, 3)),
    *(bricked((8, 8), 8, 8), bricked((8, 8), 1, 1), bricked((4, 6, 2, 5), 2, 3, 2, 5)),
    *(cyclic((24,), 3, 4), cyclic((24,), 24, 1), cyclic((24,), 1, 24), cyclic((60,), 5, 3)),
    *(cyclic((12, 24), 2, 3, 4, 2), cyclic((6, 8), 1, 2, 8, 1)),
    cyclic((4, 6, 8), 2, 1, 1, 3, 2, 2),
    *(grouped((12, 5), 4), grouped((13, 5), 4), grouped((14, 5), 4), grouped((3, 5), 8)),
    *(grouped((1, 7), 2), grouped((7, 1), 2), grouped((3, 7, 4), 3), grouped((2, 2, 5, 3), 2)),
    *(grouped((17, 38), 6), grouped((5, 9), 1)),
]  # fmt: skip
CASE_IDS = [f"{p.text}-{'x'.join(map(str, dims))}" for dims, p, _ in CASES]


def index_symbols(dims: Iterable[int]) -> list[Sym]:
    return [Sym(f"x{k}", 0, n - 1) for k, n in enumerate(dims)]


def assert_range(x: Any, n: int) -> None:
    lo, hi = bounds(x)
    assert lo is not None
    assert hi is not None
    assert lo >= 0
    assert hi < n


@pytest.mark.parametrize(("dims", "permutation", "walk"), CASES, ids=CASE_IDS)
def test_is_its_definition(dims: Element, permutation: Permutation, walk: Any) -> None:
    """At every element: on integers, arrays and expressions, there and back."""
    layout, order, size = OrderBy(GenP(dims, permutation)), walk(), prod(dims)
    assert sorted(order) == elements(dims)
    assert [layout.apply(*element) for element in order] == list(range(size))
    assert [layout.inv(k) for k in range(size)] == order

    flat, index = np.arange(size), np.array(order).T
    assert (layout.apply(*index) == flat).all()
    assert (np.array(layout.inv(flat)) == index).all()
    assert (layout.offsets()[tuple(index)] == flat).all()

    names = [f"x{k}" for k in range(len(dims))]
    derived = layout.apply(*index_symbols(dims))
    values = evaluate(derived, dict(zip(names, index, strict=True)))
    assert (np.broadcast_to(values, size) == flat).all()
    back = layout.inv(Sym("f", 0, size - 1))
    for x, i in zip(back, index, strict=True):
        assert (np.broadcast_to(evaluate(x, {"f": flat}), size) == i).all()

    assert_range(derived, size)  # by intervals alone: what follows is simplified by them
    for x, n in zip(back, dims, strict=True):
        assert_range(x, n)


@pytest.mark.parametrize(("dims", "permutation", "walk"), CASES, ids=CASE_IDS)
def test_is_written_as_it_is_read(dims: Element, permutation: Permutation, walk: Any) -> None:
    layout = OrderBy(GenP(dims, permutation))
    again = parse_layout(layout.text)
    assert again == layout
    assert again.text == layout.text
    assert (again.offsets() == layout.offsets()).all()
    undone = OrderBy(GenP(dims, inverse(permutation)))
    assert parse_layout(undone.text) == undone
    assert (undone.offsets().ravel()[layout.offsets().ravel()] == np.arange(prod(dims))).all()


@pytest.mark.parametrize(("dims", "permutation", "walk"), CASES, ids=CASE_IDS)
def test_constants_stay_constants(dims: Element, permutation: Permutation, walk: Any) -> None:
    """Numbers give numbers, and an index with one value is gone from the offset."""
    layout, last = OrderBy(GenP(dims, permutation)), tuple(n - 1 for n in dims)
    flat = layout.apply(*last)
    assert type(flat) is int
    assert all(type(i) is int for i in layout.inv(flat))
    derived = layout.apply(*index_symbols(dims))
    assert {s.name for s in symbols(derived)} == {f"x{k}" for k, n in enumerate(dims) if n > 1}
    for x, n in zip(layout.inv(Sym("f", 0, prod(dims) - 1)), dims, strict=True):
        assert isinstance(x, Expr if n > 1 else int)


@pytest.mark.parametrize(
    ("dims", "permutation"),
    [((4, 8), morton), ((8, 8), hilbert), ((4, 64), tma_swizzle(128, 2)), ((6, 4), bricks(3, 2)),
     ((12,), block_cyclic(2, 3)), ((7, 3), row_groups(2))],
    ids=lambda x: getattr(x, "text", None),
)  # fmt: skip
def test_through_sympy(dims: Element, permutation: Permutation) -> None:
    layout = OrderBy(GenP(dims, permutation))
    x = sympy.symbols(f"x:{len(dims)}", integer=True, nonnegative=True)
    p = sympy.Symbol("p", integer=True, nonnegative=True)
    derived, back = layout.apply(*x), layout.inv(p)
    for k in range(0, prod(dims), 3):
        element = layout.inv(k)
        assert derived.subs(dict(zip(x, element, strict=True))) == k
        assert tuple(i.subs(p, k) for i in back) == element


# Layout, the most operations of the offset, and of all indices from the flat position together.
COSTS = [
    ("GenP([8, 8], morton)", 13, 18),
    ("GenP([32, 32], morton)", 25, 34),
    ("GenP([1024, 1024], morton)", 55, 74),
    ("GenP([16, 16, 16], morton)", 31, 40),
    ("GenP([1024, 4], morton)", 9, 12),  # what is left of the longer index moves as one
    ("GenP([2, 2], hilbert)", 7, 7),
    ("GenP([8, 8], hilbert)", 35, 37),
    ("GenP([32, 32], hilbert)", 63, 67),
    ("GenP([1024, 1024], hilbert)", 133, 142),
    ("GenP([64, 64], tma_swizzle(128, 2))", 5, 5),
    ("GenP([64, 32], tma_swizzle(64, 2))", 6, 6),
    ("GenP([64, 16], tma_swizzle(32, 2))", 6, 6),
    ("GenP([64, 64], swizzle(8, 1, 8))", 5, 5),
    ("GenP([64, 64], swizzle(8, 2, 4))", 6, 6),
    ("GenP([64, 64], bricks(8, 8))", 10, 10),
    ("GenP([384, 384, 384], bricks(8, 8, 8))", 16, 16),
    ("GenP([4096], block_cyclic(32, 4))", 8, 8),
    ("GenP([64, 64], row_groups(8))", 7, 7),
    ("GenP([39, 40], row_groups(8))", 14, 18),
]


@pytest.mark.parametrize(("text", "there", "back"), COSTS, ids=[t for t, _, _ in COSTS])
def test_costs_no_more_than(text: str, there: int, back: int) -> None:
    layout = parse_layout(f"OrderBy({text})")
    assert count(layout.apply(*index_symbols(layout.dims))) <= there
    assert count(layout.inv(Sym("f", 0, layout.size - 1))) <= back


@pytest.mark.parametrize("k", range(11))
def test_each_step_of_hilberts_curve_is_to_a_neighbour(k: int) -> None:
    n = 2**k
    layout = OrderBy(GenP([n, n], hilbert))
    flat = np.arange(n * n)
    i, j = layout.inv(flat)
    assert (abs(np.diff(i)) + abs(np.diff(j)) == 1).all()
    assert (i[0], j[0], i[-1], j[-1]) == (0, 0, n - 1, 0)
    assert (layout.apply(i, j) == flat).all()


@given(st.integers(0, 4**40 - 2))
def test_hilberts_curve_on_a_tile_too_large_for_int64(k: int) -> None:
    layout = OrderBy(GenP([2**40, 2**40], hilbert))
    (i, j), (i_next, j_next) = layout.inv(k), layout.inv(k + 1)
    assert abs(i_next - i) + abs(j_next - j) == 1
    assert layout.apply(i, j) == k


@pytest.mark.parametrize("per_phase", [8, 2**63, 2**64])
def test_swizzle_of_rows_that_all_share_a_phase(per_phase: int) -> None:
    """Also where so many rows that share it do not fit an array."""
    layout = OrderBy(GenP([8, 4], swizzle(1, per_phase, 4)))
    flat = np.arange(32)
    assert (layout.offsets().ravel() == flat).all()
    assert (np.ravel_multi_index(layout.inv(flat), (8, 4)) == flat).all()
    assert layout.apply(7, 3) == 31


@given(st.integers(0, 2**100 - 1))
def test_morton_on_a_tile_too_large_for_int64(k: int) -> None:
    """Sixty levels of both bits, then forty of the first index alone."""
    layout = OrderBy(GenP([2**70, 2**30], morton))
    digits = format(k, "0100b")
    high, paired = digits[:40], digits[40:]
    i, j = int(high + paired[0::2], 2), int(paired[1::2], 2)
    assert layout.apply(i, j) == k
    assert layout.inv(k) == (i, j)


def test_tma_swizzles_as_the_hardware_draws_them() -> None:
    """128 bytes: in row r, the 16-byte chunk c lies at chunk c ^ (r % 8)."""
    layout = OrderBy(GenP([16, 64], tma_swizzle(128, 2)))
    assert layout == OrderBy(GenP([16, 64], tma_swizzle(mode=128, element=2)))
    for r, c in np.ndindex(16, 8):
        assert layout.apply(r, 8 * c + 3) == r * 64 + 8 * (c ^ (r % 8)) + 3
    assert (layout.offsets() == OrderBy(GenP([16, 64], swizzle(8, 1, 8))).offsets()).all()
    half = OrderBy(GenP([16, 32], tma_swizzle(64, 2)))  # two rows a line
    assert (half.offsets() == OrderBy(GenP([16, 32], swizzle(8, 2, 4))).offsets()).all()


# -------------------------------------------------------------------------- nested at random
@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A tile of up to a hundred elements with anything that can permute it."""
    power, few, two = st.sampled_from([1, 2, 4]), st.integers(1, 3), st.integers(1, 2)
    match draw(st.sampled_from(["morton", "hilbert", "tma", "bricks", "rows", "block_cyclic"])):
        case "morton":
            return z(*draw(st.lists(power, min_size=1, max_size=3)))
        case "hilbert":
            return h(draw(st.sampled_from([2, 4, 8])))
        case "tma":
            mode, element = draw(st.sampled_from([(32, 4), (64, 8), (128, 8), (128, 16)]))
            return tma((draw(st.integers(1, 6)), mode // element), mode, element)
        case "rows":
            return grouped((draw(st.integers(1, 12)), draw(few)), draw(st.integers(1, 6)))
        case "bricks":
            pairs = draw(st.lists(st.tuples(few, few), min_size=1, max_size=2))
            return bricked(tuple(n * b for n, b in pairs), *(b for _, b in pairs))
    triples = draw(st.lists(st.tuples(two, few, two), min_size=1, max_size=2))
    return cyclic(
        tuple(n * b * p for n, b, p in triples), *(x for _, b, p in triples for x in (b, p))
    )


@given(st.lists(cases(), min_size=1, max_size=2), st.data())
def test_nested_in_one_another(nest: list[Case], data: st.DataObject) -> None:
    """Tiles of tiles, their dimensions viewed in another order: every offset, every index."""
    expected = [0]
    for _, _, walk in nest:
        order = walk()
        place = {element: k for k, element in enumerate(order)}
        inner = [place[element] for element in sorted(order)]
        expected = [far * len(inner) + near for far in expected for near in inner]
    dims = [n for d, _, _ in nest for n in d]
    perm = data.draw(st.permutations(range(len(dims))))
    offsets = np.array(expected).reshape(dims).transpose(np.argsort(perm))

    layout = (
        OrderBy(*(GenP(d, p) for d, p, _ in nest))
        .OrderBy(RegP(offsets.shape, perm))
        .GroupBy(offsets.shape)
    )
    assert parse_layout(layout.text) == layout
    assert (layout.offsets() == offsets).all()
    index = [i.ravel() for i in np.indices(offsets.shape)]
    values = {f"x{k}": i for k, i in enumerate(index)} | {"f": offsets.ravel()}
    derived = layout.apply(*index_symbols(layout.dims))
    assert (evaluate(derived, values) == offsets.ravel()).all()
    for x, i in zip(layout.inv(Sym("f", 0, offsets.size - 1)), index, strict=True):
        assert (evaluate(x, values) == i).all()


# -------------------------------------------------------------------------- sizes without values
M, N = size_symbol("M"), size_symbol("N")


def test_sizes_without_values() -> None:
    """In text a permutation says what divides a symbol, as `M/8` does; binding holds to it."""
    layout = parse_layout("OrderBy(GenP([M, N], bricks(8, 4)))")
    in_python = [size_symbol("M", [8]), size_symbol("N", [4])]
    assert layout == OrderBy(GenP(in_python, bricks(8, 4)))
    assert parse_layout(layout.text) == layout
    bound = layout.bind(M=16, N=12)
    assert [bound.inv(k) for k in range(16 * 12)] == by_brick((16, 12), (8, 4))
    with pytest.raises(LegoError, match="M = 12 is no multiple of 8"):
        layout.bind(M=12)
    m, n = layout.dims
    i, j = Sym("i", 0, m - 1), Sym("j", 0, n - 1)
    offset = layout.apply(i, j)
    assert repr(plain(offset)) == "8*N*(i//8) + 32*(j//4) + 4*(i%8) + j%4"
    assert repr(offset) == "8*N*(i//8) + j + 28*(j//4) + 4*(i%8)"  # the same, in fewer operations

    vector = parse_layout("OrderBy(GenP([n], block_cyclic(4, 3)))")
    assert parse_layout(vector.text) == vector
    bound = vector.bind(n=48)
    assert [bound.inv(k) for k in range(48)] == dealt((48,), (4,), (3,))
    assert parse_layout("OrderBy(GenP([n], inverse(block_cyclic(4, 3))))").bind(n=24).size == 24
    assert parse_layout("OrderBy(GenP([M], bricks(1)))") == OrderBy(GenP([M], bricks(1)))
    halves = parse_layout("OrderBy(GenP([n/2], bricks(8)))")  # 16 divides n
    assert parse_layout(halves.text) == halves
    with pytest.raises(LegoError, match="n = 24 is no multiple of 16"):
        halves.bind(n=24)

    rows = parse_layout("OrderBy(GenP([R, 64], tma_swizzle(128, 2)))")
    assert parse_layout(rows.text) == rows
    bound = rows.bind(R=5)
    assert [bound.inv(k) for k in range(5 * 64)] == by_swizzled_address((5, 64), 128, 2)


# -------------------------------------------------------------------------- mistakes
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: GenP([6, 4], morton), r"morton permutes .* that are powers of two, not \[6, 4\]"),
    (lambda: GenP([M, 4], morton), r"powers of two, not \[M, 4\]"),
    (lambda: GenP([8, 4], hilbert), r"hilbert permutes a square tile with a .* not \[8, 4\]"),
    (lambda: GenP([6, 6], hilbert), r"a power of two as its side, not \[6, 6\]"),
    (lambda: GenP([8], hilbert), r"hilbert permutes a square tile .* not \[8\]"),
    (lambda: GenP([2, 2, 2], hilbert), r"hilbert permutes a square tile .* not \[2, 2, 2\]"),
    (lambda: GenP([N, N], hilbert), r"hilbert permutes a square tile .* not \[N, N\]"),
    (lambda: tma_swizzle(16, 2), "the mode is 32, 64 or 128 bytes, not 16"),
    (lambda: tma_swizzle(128.0, 2), "the mode is 32, 64 or 128 bytes, not 128.0"),
    (lambda: tma_swizzle(128, 3), "an element has 1, 2, 4, 8 or 16 bytes, not 3"),
    (lambda: tma_swizzle(128, True), "an element has 1, 2, 4, 8 or 16 bytes, not True"),
    (lambda: GenP([8, 32 + 8], tma_swizzle(128, 1)),
     r"tma_swizzle\(128, 1\) permutes whole rows of 128 elements, not \[8, 40\]"),
    (lambda: GenP([M, 32], tma_swizzle(128, 2)), r"whole rows of 64 elements, not \[M, 32\]"),
    (lambda: bricks(), "bricks takes positive integers, at least one"),
    (lambda: bricks(8, 0), "bricks takes positive integers, not 0"),
    (lambda: bricks(M), "bricks takes positive integers, not M"),
    (lambda: bricks(True), "bricks takes positive integers, not True"),
    (lambda: GenP([8, 12], bricks(4, 8)), r"bricks\(4, 8\): 8 does not divide 12 in \[8, 12\]"),
    (lambda: GenP([8, 12], bricks(4)),
     r"bricks\(4\) permutes a tile of rank 1, not \[8, 12\] of rank 2"),
    (lambda: GenP([M, 8], bricks(4, 8)), r"bricks\(4, 8\): 4 is not known to divide M"),
    (lambda: block_cyclic(), "block_cyclic takes positive integers, at least one"),
    (lambda: block_cyclic(4, -1), "block_cyclic takes positive integers, not -1"),
    (lambda: block_cyclic(4, 2, 2), r"block_cyclic\(4, 2, 2\): each dimension takes a block and"),
    (lambda: GenP([20], block_cyclic(4, 2)), r"block_cyclic\(4, 2\): 8 does not divide 20"),
    (lambda: GenP([8, 8], block_cyclic(4, 2)), r"a tile of rank 1, not \[8, 8\] of rank 2"),
    (lambda: GenP([M], block_cyclic(4, 2)), r"8 is not known to divide M"),
    (lambda: parse_layout("OrderBy(GenP([4, 4], morton(2)))"), "morton takes no parameters"),
    (lambda: parse_layout("OrderBy(GenP([4, 4], tma_swizzle))"), "an element's bytes, not 0"),
    (lambda: parse_layout("OrderBy(GenP([4, 4], bricks))"), "takes positive integers, at"),
    (lambda: parse_layout("OrderBy(GenP([M], bricks(2, 2)))"), "of rank 2, not"),
    (lambda: parse_layout("OrderBy(GenP([4, 4], zorder))"),
     "antidiagonal, block_cyclic, bricks, hilbert, morton, reverse, row_groups, swizzle, tma"),
    (lambda: row_groups(0), "row_groups takes positive integers, not 0"),
    (lambda: GenP([12], row_groups(4)), r"row_groups\(4\) permutes a matrix, not \[12\]"),
    (lambda: GenP([M, 8], row_groups(4)), r"row_groups\(4\): the number of rows is the symbol M"),
    (lambda: parse_layout("OrderBy(GenP([4, 4], row_groups))"), "rows of a group, not 0 numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "message"), ERRORS, ids=[m for _, m in ERRORS])
def test_mistakes_are_errors_with_hints(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        mistake()
