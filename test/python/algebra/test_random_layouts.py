"""Random layouts against plain enumeration.

A layout is drawn as a description, which two readers take: `built` makes the product's layout,
and the oracle (`table_of` and what it calls) lists its offsets by loops, written from the
definitions in the paper (section 3.2) and sharing no code with the product. Sizes are products of
a common pool of factors, so every reordering of a chain has equally many elements.

LEGO_TEST_EXAMPLES sets the number of layouts for a longer run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.algebra import (
    Col,
    GenP,
    Layout,
    OrderBy,
    RegP,
    Row,
    antidiagonal,
    parse_layout,
    reverse,
    size_symbol,
    swizzle,
)
from lego_mlir.algebra.parts import make_order, make_view
from lego_mlir.index import Int, Sym, bounds, evaluate

FACTORS = st.sampled_from([2, 2, 2, 3, 3, 4, 5, 7, 8])
ORDERS = st.sampled_from(["OrderBy", "OrderBy", "TileOrderBy"])
LAYOUTS = int(os.environ.get("LEGO_TEST_EXAMPLES", "500"))


# ------------------------------------------------------------------------------ descriptions
@dataclass(frozen=True)
class B:
    """A block: its dimensions, each a tuple of factors, and what permutes them."""

    dims: tuple[tuple[Any, ...], ...]
    kind: str
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True)
class L:
    orders: tuple[tuple[str, tuple[B, ...]], ...]
    view: tuple[str, tuple[tuple[tuple[Any, ...], ...], ...]] | None


def rotate(i: Any, j: Any) -> Any:
    """A user's permutation of an 8-column tile: row i turned by i places."""
    return i * 8 + (i + j) % 8


def rotate_inv(flat: Any) -> Any:
    return flat // 8, (flat - flat // 8) % 8


FUNCTIONS = {"rotate": rotate, "rotate_inv": rotate_inv}


@st.composite
def spread(draw: st.DrawFn, pool: list[Any], slots: int) -> list[list[Any]]:
    """The factors of the pool in a random order, dealt to so many slots."""
    dealt: list[list[Any]] = [[] for _ in range(slots)]
    for factor in draw(st.permutations(pool)):
        dealt[draw(st.integers(0, slots - 1))].append(factor)
    return dealt


@st.composite
def blocks(draw: st.DrawFn, pool: list[Any], one_rank: bool) -> tuple[B, ...]:
    """Blocks that use up the pool; all of one rank where levels must meet."""
    q = draw(st.integers(1, 3))
    rank = draw(st.integers(1, 6 // q))
    ranks = [rank if one_rank else draw(st.integers(1, 6 // q)) for _ in range(q)]
    rest, squares = list(pool), {}
    if 2 in ranks and draw(st.integers(0, 2)) == 0:  # two equal dimensions, for antidiagonal
        twins = [f for f in dict.fromkeys(rest) if rest.count(f) >= 2]
        if twins:
            side = draw(st.sampled_from(twins))
            rest.remove(side)
            rest.remove(side)
            squares[ranks.index(2)] = ((side,), (side,))
    slots = iter(draw(spread(rest, sum(r for k, r in enumerate(ranks) if k not in squares) or 1)))
    shapes = [
        squares.get(k) or tuple(tuple(next(slots)) for _ in range(r)) for k, r in enumerate(ranks)
    ]
    if len(squares) == q:  # nowhere to go for the rest of the pool
        shapes[0] = (shapes[0][0], (*shapes[0][1], *next(slots)))
    return tuple(draw(permuted_block(dims)) for dims in shapes)


@st.composite
def permuted_block(draw: st.DrawFn, dims: tuple[tuple[Any, ...], ...]) -> B:
    rank = len(dims)
    kinds = ["Row", "Col", "RegP", "RegP", "reverse"]
    if rank == 2 and sorted(map(str, dims[0])) == sorted(map(str, dims[1])):
        kinds += ["antidiagonal"] * 4
    numbers = [prod(d) for d in dims] if all(isinstance(f, int) for d in dims for f in d) else []
    if rank == 2 and numbers and all(n & (n - 1) == 0 for n in numbers) and numbers[1] > 1:
        kinds += ["swizzle"] * 4
    if rank == 2 and numbers and numbers[1] == 8:
        kinds += ["rotate"] * 4
    kind = draw(st.sampled_from(kinds))
    if kind == "RegP":
        return B(dims, kind, tuple(draw(st.permutations(range(rank)))))
    if kind == "swizzle":
        columns = numbers[1].bit_length() - 1
        vec = draw(st.integers(0, columns))
        phases = draw(st.integers(0, columns - vec))
        return B(dims, kind, (1 << vec, 1 << draw(st.integers(0, 2)), 1 << phases))
    return B(dims, kind)


@st.composite
def layouts(draw: st.DrawFn, factors: tuple[Any, ...] = (), most: int = 6) -> L:
    if factors:
        pool = draw(st.lists(st.sampled_from(factors), min_size=1, max_size=most))
    else:
        limit = draw(st.sampled_from([30, 200, 200, 1000, 1000, 10_000]))
        pool, size = [], 1
        for f in draw(st.lists(FACTORS, min_size=3, max_size=12)):
            if size * f <= limit:
                pool.append(f)
                size *= f
    view = draw(st.sampled_from(["GroupBy", "TileBy", "TileBy", None]))
    least = draw(st.sampled_from([0, 1, 1, 1, 2]))
    kinds = draw(st.lists(ORDERS, min_size=least, max_size=3))
    kinds = kinds or ([] if view else ["OrderBy"])
    orders = tuple(
        (kind, draw(blocks(pool, kind == "TileOrderBy" or view == "TileBy"))) for kind in kinds
    )
    if view is None:
        return L(orders, None)
    levels = draw(st.integers(1, 3))
    rank = draw(st.integers(1, 6 // levels))
    dims = [tuple(f) for f in draw(spread(pool, levels * rank))]
    return L(orders, (view, tuple(tuple(dims[k * rank : (k + 1) * rank]) for k in range(levels))))


# -------------------------------------------------------------------------------- the product
def number(dim: tuple[Any, ...]) -> Int:
    return prod(dim, start=1)


def built(d: L) -> Layout:
    def block(b: B) -> Any:
        dims = [number(dim) for dim in b.dims]
        match b.kind:
            case "Row":
                return Row(*dims)
            case "Col":
                return Col(*dims)
            case "RegP":
                return RegP(dims, b.parameters)
            case "rotate":
                return GenP(dims, rotate, rotate_inv)
            case "swizzle":
                return GenP(dims, swizzle(*b.parameters))
        return GenP(dims, {"reverse": reverse, "antidiagonal": antidiagonal}[b.kind])

    orders = tuple(make_order(kind, tuple(block(b) for b in bs)) for kind, bs in d.orders)
    view = None
    if d.view:
        kind, tiles = d.view
        view = make_view(kind, tuple([number(n) for n in level] for level in tiles))
    return Layout(orders, view)


# --------------------------------------------------------------------------------- the oracle
def canonical(dims: list[int], index: Any) -> int:
    flat = 0
    for n, i in zip(dims, index, strict=True):
        flat = flat * n + i
    return flat


def regular(dims: list[int], perm: Any) -> list[int]:
    """RegP: for every index in row-major order, its place in the permuted space."""
    return [
        canonical([dims[p] for p in perm], [index[p] for p in perm])
        for index in product(*map(range, dims))
    ]


def block_table(b: B) -> list[int]:
    dims = [prod(dim) for dim in b.dims]
    every = list(product(*map(range, dims)))
    match b.kind:
        case "Row":
            return regular(dims, range(len(dims)))
        case "Col":
            return regular(dims, range(len(dims))[::-1])
        case "RegP":
            return regular(dims, b.parameters)
        case "reverse":
            return list(range(len(every)))[::-1]
        case "antidiagonal":  # walk the diagonals, each from its top right end
            walk = sorted(every, key=lambda index: (index[0] + index[1], index[0]))
            place = {index: at for at, index in enumerate(walk)}
            return [place[index] for index in every]
        case "rotate":
            return [i * 8 + (i + j) % 8 for i, j in every]
        case "swizzle":
            vec, per_phase, max_phase = b.parameters
            table = []
            for i, j in every:
                phase = (i // per_phase) % max_phase
                table.append(i * dims[1] + ((j // vec) ^ phase) * vec + j % vec)
            return table
    raise AssertionError(b.kind)


def order_table(bs: tuple[B, ...]) -> list[int]:
    """OrderBy: the first block is the outermost."""
    table = [0]
    for b in bs:
        inner = block_table(b)
        table = [outer * len(inner) + at for outer in table for at in inner]
    return table


def sigma(d: int, q: int) -> list[int]:
    return [k + d * h for k in range(d) for h in range(q)]


def table_of(d: L) -> list[int]:
    """For every logical index in row-major order, its offset."""
    tiled = d.view is not None and d.view[0] == "TileBy"
    chain: list[list[int]] = []
    for kind, bs in d.orders:
        chain.append(order_table(bs))
        if tiled or kind == "TileOrderBy":
            s = sigma(len(bs[0].dims), len(bs))
            dims = [prod(dim) for b in bs for dim in b.dims]
            chain.append(regular([dims[k] for k in s], [s.index(k) for k in range(len(s))]))
    if tiled:
        assert d.view is not None
        tiles = d.view[1]
        dims = [prod(dim) for level in tiles for dim in level]
        chain.append(regular(dims, sigma(len(tiles[0]), len(tiles))))
    offsets = list(range(len(chain[0]) if chain else prod(prod(n) for t in d.view[1] for n in t)))
    for table in reversed(chain):
        offsets = [table[at] for at in offsets]
    return offsets


# -------------------------------------------------------------------------------------- tests
def every_index(layout: Layout) -> list[np.ndarray]:
    return [axis.reshape(-1) for axis in np.indices(layout.dims)]


def symbolic_index(layout: Layout) -> list[Sym]:
    return [Sym(f"i{k}", 0, n - 1) for k, n in enumerate(layout.dims)]


@settings(max_examples=LAYOUTS)
@given(layouts())
def test_apply_inv_and_offsets_are_the_enumeration(d: L) -> None:
    """NumPy, all points: a wrong permutation, stage order or reshuffle shows here."""
    layout, truth = built(d), np.array(table_of(d))
    index = every_index(layout)
    assert sorted(truth) == list(range(len(truth)))  # the oracle itself is a bijection
    assert (np.broadcast_to(layout.apply(*index), truth.shape) == truth).all()
    for got, i in zip(layout.inv(truth), index, strict=True):
        assert (np.broadcast_to(got, i.shape) == i).all()
    # offsets() is in tensor order: the levels of each dimension joined.
    offsets = layout.offsets()
    assert offsets.shape == layout.tensor_shape
    levels = len(layout.view.tiles) if layout.view and layout.view.kind == "TileBy" else 1
    tensor = truth.reshape(layout.dims).transpose(sigma(layout.rank // levels, levels))
    assert (offsets.reshape(-1) == tensor.reshape(-1)).all()


@settings(max_examples=LAYOUTS)
@given(layouts())
def test_symbolic_apply_and_inv_are_the_enumeration(d: L) -> None:
    """The simplified expressions at every point, and their ranges."""
    layout, truth = built(d), np.array(table_of(d))
    index = every_index(layout)
    values = {f"i{k}": i for k, i in enumerate(index)}
    offset = layout.apply(*symbolic_index(layout))
    assert (evaluate(offset, values) == truth).all()
    flat = Sym("flat", 0, len(truth) - 1)
    for x, i, n in zip(layout.inv(flat), index, layout.dims, strict=True):
        assert (evaluate(x, {"flat": truth}) == i).all()
        lo, hi = bounds(x)
        assert lo is None or lo <= 0
        assert hi is None or hi >= n - 1


@settings(max_examples=LAYOUTS // 4)
@given(layouts(), st.data())
def test_plain_integers(d: L, data: st.DataObject) -> None:
    """Python ints in, Python ints out, at some points and the two corners."""
    layout, truth = built(d), table_of(d)
    at = data.draw(st.integers(0, len(truth) - 1))
    for k in (0, at, len(truth) - 1):
        index = tuple(int(i) for i in np.unravel_index(k, layout.dims))
        offset = layout.apply(*index)
        assert type(offset) is int
        assert offset == truth[k]
        assert layout.apply(index) == offset
        assert layout.inv(offset) == index


@settings(max_examples=LAYOUTS // 12)
@given(layouts(), st.data())
def test_sympy_symbols(d: L, data: st.DataObject) -> None:
    """SymPy in, SymPy out: numbers put into the result are the offsets."""
    sympy = pytest.importorskip("sympy")
    layout, truth = built(d), table_of(d)
    names = sympy.symbols(f"i:{layout.rank}", integer=True)
    flat = sympy.Symbol("flat", integer=True)
    offset, back = layout.apply(*names), layout.inv(flat)
    for k in {0, data.draw(st.integers(0, len(truth) - 1)), len(truth) - 1}:
        index = tuple(int(i) for i in np.unravel_index(k, layout.dims))
        assert sympy.sympify(offset).subs(dict(zip(names, index, strict=True))) == truth[k]
        assert tuple(sympy.sympify(x).subs(flat, truth[k]) for x in back) == index


SIZES = tuple(size_symbol(name) for name in "PQR")


@settings(max_examples=LAYOUTS // 4)
@given(layouts((*SIZES, 2, 3), most=5), st.data())
def test_symbolic_sizes_agree_with_bind(d: L, data: st.DataObject) -> None:
    """One derivation for all sizes is right at each: apply, inv, size, shape and text."""
    layout = built(d)
    sizes = {s.name: data.draw(st.integers(1, 5), label=s.name) for s in layout.symbols}
    bound = layout.bind(**sizes)
    assert not bound.symbols
    assert bound.size == evaluate(layout.size, sizes)
    index = every_index(bound)
    values = {f"i{k}": i for k, i in enumerate(index)} | sizes
    truth = np.broadcast_to(bound.apply(*index), index[0].shape)
    symbolic = layout.apply(*symbolic_index(layout))
    assert (np.broadcast_to(evaluate(symbolic, values), truth.shape) == truth).all()
    flat = Sym("flat", 0, layout.size - 1)
    for x, i in zip(layout.inv(flat), index, strict=True):
        assert (evaluate(x, {"flat": truth} | sizes) == i).all()


@settings(max_examples=LAYOUTS // 2)
@given(st.one_of(layouts(), layouts((*SIZES, 2, 3), most=5)), st.data())
def test_text_parses_to_the_layout_it_prints(d: L, data: st.DataObject) -> None:
    layout = built(d)
    parsed = parse_layout(layout.text, functions=FUNCTIONS)
    assert parsed.text == layout.text
    assert parsed == layout
    assert hash(parsed) == hash(layout)
    # Blanks mean nothing between tokens.
    blank = data.draw(st.sampled_from([" ", "  ", "\t", "\n"]))
    spaced = "".join(blank + c + blank if c in "()[],.*@" else c for c in layout.text)
    assert parse_layout(spaced, functions=FUNCTIONS) == layout


def test_the_oracle_on_a_hand_made_table() -> None:
    """Col(2, 3) tiled by columns: offsets written out by hand, for oracle and product."""
    d = L((("OrderBy", (B(((2,), (3,)), "Col"),)),), ("TileBy", (((1,), (3,)), ((2,), (1,)))))
    assert table_of(d) == [0, 1, 2, 3, 4, 5]
    assert built(d).offsets().tolist() == [[0, 2, 4], [1, 3, 5]]
    assert built(d) == OrderBy(Col(2, 3)).TileBy([1, 3], [2, 1])
