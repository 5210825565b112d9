"""Random layouts, and what they are by definition.

A layout is drawn as a description, which two readers take: `built` makes the product's layout,
and the oracle (`table_of` and what it calls) lists its offsets, written from the definitions in
the paper (section 3.2) on NumPy's own reshape and transpose, and sharing no code with the product.
Sizes are products of a common pool of factors, so every reordering of a chain has equally many
elements. A factor may be symbolic; `bound` puts numbers for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from own_permutations import FUNCTIONS

from lego_mlir.algebra import (
    Col,
    GenP,
    Layout,
    Permutation,
    RegP,
    Row,
    antidiagonal,
    block_cyclic,
    bricks,
    hilbert,
    inverse,
    morton,
    reverse,
    row_groups,
    size_symbol,
    swizzle,
    tma_swizzle,
)
from lego_mlir.algebra.parts import make_order, make_view
from lego_mlir.index import Int, evaluate

MIXED = st.sampled_from([2, 2, 2, 2, 3, 3, 4, 5, 7, 8, 11])
POWERS = st.sampled_from([2, 2, 4, 8])
ORDERS = st.sampled_from(["OrderBy", "OrderBy", "TileOrderBy"])
ELEMENTS = st.sampled_from([30, *[200] * 5, *[1000] * 4, 10_000, 100_000])

SYMBOLS = (*(size_symbol(name) for name in "PQR"), size_symbol("M", multiple_of=[4]))
SYMBOLIC_FACTORS: tuple[Int, ...] = (*SYMBOLS[:3], SYMBOLS[3] // 4, 4, 2, 3)
"""4 * (M // 4) is M again where both factors meet in one dimension."""

Table: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Dim: TypeAlias = "tuple[Int, ...]"


# ------------------------------------------------------------------------------ descriptions
@dataclass(frozen=True)
class B:
    """A block: its dimensions, each a tuple of factors, and what permutes them.

    `inverted` stands for `inverse(...)` of a permutation.
    """

    dims: tuple[Dim, ...]
    kind: str
    parameters: tuple[int, ...] = ()
    inverted: bool = False


@dataclass(frozen=True)
class L:
    """A layout: its reorderings and its view."""

    orders: tuple[tuple[str, tuple[B, ...]], ...]
    view: tuple[str, tuple[tuple[Dim, ...], ...]] | None


def bound(d: L, values: Mapping[str, int]) -> L:
    """The description with numbers for its symbols."""

    def numbers(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(tuple(evaluate(f, values) for f in dim) for dim in dims)

    orders = tuple(
        (kind, tuple(replace(b, dims=numbers(b.dims)) for b in bs)) for kind, bs in d.orders
    )
    view = None if d.view is None else (d.view[0], tuple(numbers(level) for level in d.view[1]))
    return L(orders, view)


@st.composite
def values_of(draw: st.DrawFn, layout: Layout) -> dict[str, int]:
    """A value for each symbol of a layout that keeps its facts."""
    return {
        s.name: draw(st.integers(1, 3), label=s.name) * (4 if s.divisors else 1)
        for s in layout.symbols
    }


# -------------------------------------------------------------------------------- strategies
@st.composite
def spread(draw: st.DrawFn, pool: list[Int], slots: int) -> list[list[Int]]:
    """The factors of the pool in a random order, dealt to so many dimensions."""
    dealt: list[list[Int]] = [[] for _ in range(slots)]
    for factor in draw(st.permutations(pool)):
        dealt[draw(st.integers(0, slots - 1))].append(factor)
    return dealt


@st.composite
def blocks(draw: st.DrawFn, pool: list[Int], one_rank: bool) -> tuple[B, ...]:
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


REGULAR = ("Row", "Col", "RegP")


@st.composite
def permuted_block(draw: st.DrawFn, dims: tuple[Dim, ...]) -> B:
    """A block of these dimensions, permuted by anything that can permute them."""
    kinds = ["Row", "Col", "RegP", "RegP", "reverse", "bricks", "block_cyclic"]
    if len(dims) > 1 and all(isinstance(f, int) for f in dims[-2]):
        kinds += ["row_groups"] * 2
    if len(dims) == 2 and sorted(map(str, dims[0])) == sorted(map(str, dims[1])):
        kinds += ["antidiagonal"] * 4
    numbers = [prod(d) for d in dims] if all(isinstance(f, int) for d in dims for f in d) else []
    if numbers:
        kinds += kinds_for(numbers)
    kind = draw(st.sampled_from(kinds))
    inverted = kind not in REGULAR and draw(st.integers(0, 4)) == 0
    return B(dims, kind, draw(parameters(kind, dims)), inverted)


def kinds_for(sizes: list[int]) -> list[str]:
    """What else may permute a tile of these sizes, the rare chances more often."""
    kinds = []
    if all(n & (n - 1) == 0 for n in sizes):
        kinds += ["morton"] * 2
        if len(sizes) == 2 and sizes[0] == sizes[1]:
            kinds += ["hilbert"] * 4
        if len(sizes) == 2 and sizes[1] > 1:
            kinds += ["swizzle"] * 2
    if len(sizes) == 2 and sizes[1] in (4, 8):
        kinds += ["rotate" if sizes[1] == 8 else "snake"] * 4
    if sizes == [8]:
        kinds += ["stride"] * 4
    if prod(sizes) % 8 == 0:
        kinds += ["tma_swizzle"] * 2
    return kinds


@st.composite
def parameters(draw: st.DrawFn, kind: str, dims: tuple[Dim, ...]) -> tuple[int, ...]:
    """The arguments of a permutation for the tile that it permutes."""
    match kind:
        case "RegP":
            return tuple(draw(st.permutations(range(len(dims)))))
        case "swizzle":
            columns = prod(dims[1]).bit_length() - 1
            vec = draw(st.integers(0, columns))
            phases = draw(st.integers(0, columns - vec))
            return 1 << vec, 1 << draw(st.integers(0, 2)), 1 << phases
        case "tma_swizzle":
            size = prod(prod(dim) for dim in dims)
            fits = [(m, e) for m in (32, 64, 128) for e in (1, 2, 4, 8, 16) if size % (m // e) == 0]
            return draw(st.sampled_from(fits))
        case "row_groups":
            return (draw(st.integers(1, prod(dims[-2]) + 1)),)
        case "bricks":
            return tuple(draw(parts_of(dim, 2))[0] for dim in dims)
        case "block_cyclic":
            return tuple(n for dim in dims for n in draw(parts_of(dim, 3))[:2])
    return ()


@st.composite
def parts_of(draw: st.DrawFn, dim: Dim, parts: int) -> list[int]:
    """So many numbers whose product divides a dimension."""
    numbers = [f for f in dim if isinstance(f, int)]
    return [prod(part) for part in draw(spread(numbers, parts))]


@st.composite
def layouts(draw: st.DrawFn, factors: tuple[Int, ...] = (), most: int = 6) -> L:
    """A layout whose sizes are products of `factors`; without them, of numbers."""
    if factors:
        pool = draw(st.lists(st.sampled_from(factors), min_size=1, max_size=most))
    else:
        limit = draw(ELEMENTS)
        pool, size = [], 1
        numbers = draw(st.sampled_from([MIXED, MIXED, POWERS]))
        for f in draw(st.lists(numbers, min_size=3, max_size=12)):
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


def symbolic_layouts() -> st.SearchStrategy[L]:
    """Layouts with symbolic sizes and what is known to divide them."""
    return layouts(SYMBOLIC_FACTORS, most=5)


# -------------------------------------------------------------------------------- the product
def number(dim: Dim) -> Int:
    return prod(dim, start=1)


NAMED: dict[str, Callable[..., Permutation]] = {
    "antidiagonal": lambda: antidiagonal,
    "block_cyclic": block_cyclic,
    "bricks": bricks,
    "hilbert": lambda: hilbert,
    "morton": lambda: morton,
    "reverse": lambda: reverse,
    "row_groups": row_groups,
    "swizzle": swizzle,
    "tma_swizzle": tma_swizzle,
}


def built(d: L) -> Layout:
    """The product's layout of a description."""

    def block(b: B) -> Any:
        dims = [number(dim) for dim in b.dims]
        match b.kind:
            case "Row":
                return Row(*dims)
            case "Col":
                return Col(*dims)
            case "RegP":
                return RegP(dims, b.parameters)
        permutation = NAMED[b.kind](*b.parameters) if b.kind in NAMED else None
        if permutation is not None:
            return GenP(dims, inverse(permutation) if b.inverted else permutation)
        pair = FUNCTIONS[b.kind], FUNCTIONS[f"{b.kind}_inv"]
        return GenP(dims, inverse(*pair)) if b.inverted else GenP(dims, *pair)

    orders = tuple(make_order(kind, tuple(block(b) for b in bs)) for kind, bs in d.orders)
    view = None
    if d.view:
        kind, tiles = d.view
        view = make_view(kind, tuple([number(n) for n in level] for level in tiles))
    return Layout(orders, view)


# --------------------------------------------------------------------------------- the oracle
def regular(dims: list[int], perm: Any) -> Table:
    """RegP: for every index in row-major order, its position in the permuted space."""
    positions = np.arange(prod(dims)).reshape([dims[p] for p in perm])
    return positions.transpose(np.argsort(perm)).reshape(-1)


def block_table(b: B) -> Table:
    """For every index of a block in row-major order, its flat position."""
    table = permutation_table(b, [prod(dim) for dim in b.dims])
    return np.argsort(table) if b.inverted else table


def permutation_table(b: B, dims: list[int]) -> Table:
    size = prod(dims)
    every = np.indices(dims).reshape(len(dims), -1)
    match b.kind:
        case "Row":
            return regular(dims, range(len(dims)))
        case "Col":
            return regular(dims, range(len(dims))[::-1])
        case "RegP":
            return regular(dims, b.parameters)
        case "reverse":
            return np.arange(size)[::-1]
        case "antidiagonal":  # walk the diagonals, each from its top right end
            i, j = every
            return np.argsort(np.lexsort((i, i + j)))
        case "rotate":
            i, j = every
            return i * 8 + (i + j) % 8
        case "snake":
            rows = np.arange(size).reshape(dims)
            rows[1::2] = rows[1::2, ::-1]
            return rows.reshape(-1)
        case "stride":
            return np.array([1, 4, 7, 2, 5, 0, 3, 6])
        case "swizzle":
            vec, per_phase, max_phase = b.parameters
            i, j = every
            phase = (i // per_phase) % max_phase
            return i * dims[1] + ((j // vec) ^ phase) * vec + j % vec
        case "tma_swizzle":  # 16-byte chunks, by the number of the 128-byte line
            mode, element = b.parameters
            byte = np.arange(size) * element
            return (byte ^ ((byte >> 7) % (mode // 16) << 4)) // element
        case "bricks":  # dimensions (brick, within), memory (all bricks, all withins)
            split = [x for n, k in zip(dims, b.parameters, strict=True) for x in (n // k, k)]
            return regular(split, [*range(0, len(split), 2), *range(1, len(split), 2)])
        case "row_groups":  # sorted by matrix, group, column and row
            (group,) = b.parameters
            *lead, i, j = every
            order = np.lexsort([x.reshape(-1) for x in (i, j, i // group, *reversed(lead))])
            table = np.empty(size, dtype=np.int64)
            table[order] = np.arange(size)
            return table
        case "block_cyclic":  # dimensions (round, part, place), memory (parts, rounds and places)
            split = []
            for n, k, parts in zip(dims, b.parameters[::2], b.parameters[1::2], strict=True):
                split += [n // (k * parts), parts, k]
            within = [x for x in range(len(split)) if x % 3 != 1]
            return regular(split, [*range(1, len(split), 3), *within])
        case "morton":  # bit by bit, the last dimension first
            table, shift = np.zeros(size, dtype=np.int64), 0
            for bit in range(max(dims).bit_length()):
                for n, i in reversed(list(zip(dims, every, strict=True))):
                    if n >> (bit + 1):
                        table |= (i >> bit & 1) << shift
                        shift += 1
            return table
        case "hilbert":  # four copies of the curve half as wide
            curve = np.zeros((1, 1), dtype=np.int64)
            while len(curve) < dims[0]:
                n = curve.size
                turned = curve.T[::-1, ::-1]
                curve = np.block([[curve.T, n + curve], [3 * n + turned, 2 * n + curve]])
            return curve.reshape(-1)
    raise AssertionError(b.kind)


def order_table(bs: tuple[B, ...]) -> Table:
    """OrderBy: the first block is the outermost."""
    table = np.zeros(1, dtype=np.int64)
    for b in bs:
        inner = block_table(b)
        table = (table[:, None] * len(inner) + inner[None, :]).reshape(-1)
    return table


def sigma(d: int, q: int) -> list[int]:
    """From q levels of d dimensions to d dimensions of q levels."""
    return [k + d * h for k in range(d) for h in range(q)]


def table_of(d: L) -> Table:
    """For every logical index in row-major order, its offset."""
    tiled = d.view is not None and d.view[0] == "TileBy"
    chain: list[Table] = []
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
    size = len(chain[0]) if chain else prod(prod(n) for t in d.view[1] for n in t)
    offsets = np.arange(size)
    for table in reversed(chain):
        offsets = table[offsets]
    return offsets


# ------------------------------------------------------------------------ points of a layout
def every_index(dims: Any) -> list[Table]:
    """All indices in row-major order, one array a dimension."""
    return [axis.reshape(-1) for axis in np.indices(dims)]
