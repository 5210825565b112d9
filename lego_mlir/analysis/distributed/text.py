"""Distributed layouts from and to the notation of the layout algebra.

A distributed layout permutes size factors, so one RegP expresses it, with no syntax of its own:

    OrderBy(Row(4, 32, 88)).OrderBy(RegP([4, 2, 8, 22, 4, 2], [0, 2, 4, 3, 1, 5]))
        .GroupBy([64, 176])

The first OrderBy is the physical space, `Row(ctas, warps, 32, registers)`, without the CTAs where
there is one; GroupBy is the logical space, the tile and the replicas, without these where there is
one of each element. In the text's canonical form RegP has a size for each factor of the table:
dimension by dimension, then the replicas, slowest first.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

from lego_mlir.algebra import Layout, OrderBy, RegP, Row, parse_layout
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Places, cut
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS

if TYPE_CHECKING:
    from lego_mlir.algebra import Block
    from lego_mlir.analysis.distributed.layout import DistributedLayout

Pieces: TypeAlias = list[Factor]
"""Digits of the flat logical position, slowest first in the flat position reached so far; all of
dimension 0, with strides in the flat logical space."""

_FORM = "OrderBy(Row(warps, 32, registers)).OrderBy(RegP(...)).GroupBy([...])"


@lru_cache(maxsize=1 << 12)
def to_layout(distributed: DistributedLayout) -> Layout:
    """Return the layout from (index of the tile, replica) to the flat position.

    It is canonical: it depends on nothing but the shape and the factors.
    """
    physical = [f for place in distributed.places for f in place]
    dims = (*range(distributed.rank), REPLICA)
    logical = [f for dim in dims for _, f in distributed.factors_of(dim)]
    sizes = distributed.sizes if distributed.ctas > 1 else distributed.sizes[1:]
    layout = OrderBy(Row(*sizes))
    if physical != logical:
        order = [logical.index(f) for f in physical]
        layout = layout.OrderBy(RegP([f.size for f in logical], order))
    replicas = [distributed.replicas] if distributed.replicas > 1 else []
    return layout.GroupBy([*distributed.shape, *replicas])


@lru_cache(maxsize=1 << 12)
def parse(text: str, shape: tuple[int, ...]) -> DistributedLayout:
    """Return the distributed layout that `text` describes: `DistributedLayout.parse`."""
    return from_layout(parse_layout(text), shape)


def from_layout(layout: Layout, shape: tuple[int, ...]) -> DistributedLayout:
    """Return a layout of the algebra as a distributed layout of a tile of this shape.

    Any chain of RegP, Row and Col will do, in any way of writing. Replicas may be numbered in any
    order; the result numbers them canonically.

    Raises:
        LegoError: the layout has symbolic sizes or partial tiles, does not begin with the physical
            space, is of other sizes, or does more than permute factors.
    """
    from lego_mlir.analysis.distributed.layout import DistributedLayout

    hint = f"a distributed layout is written {_FORM}"
    if layout.symbols:
        names = ", ".join(s.name for s in layout.symbols)
        raise LegoError(
            f"'{layout}' has symbolic sizes ({names}), and registers have numbers", hint=hint
        )
    if layout.is_partial:
        raise LegoError(f"the tiles of '{layout}' are partial", hint=hint)
    physical = _physical(layout, hint)
    dims = [int(n) for n in layout.dims]
    if tuple(dims[: len(shape)]) != shape or len(dims) > len(shape) + 1:
        raise LegoError(
            f"'{layout}' has the logical space {dims}, which is not the tile {list(shape)}",
            hint="GroupBy has the sizes of the tile, and the number of replicas as the last one "
            "where elements are held more than once",
        )
    pieces = [Factor(0, prod(dims), 1)]
    for stage in reversed(layout.stages):
        pieces = _through(stage, pieces, layout)
    borders = list(accumulate(reversed(physical), mul))
    pieces = _cut_positions(pieces, borders, layout)
    logical = list(accumulate(reversed(dims), mul))
    pieces = [part for piece in pieces for part in _cut_strides(piece, logical, layout)]

    places: list[list[Factor]] = [[], [], [], []]
    below = [prod(dims[k + 1 :]) for k in range(len(dims))]
    position = prod(physical)
    for piece in pieces:
        position //= piece.size
        if piece.size == 1:
            continue
        place = next(k for k in range(4) if position >= prod(physical[k + 1 :]))
        dim = next(k for k, stride in enumerate(below) if piece.stride >= stride)
        stride = piece.stride // below[dim]
        places[place].append(Factor(dim if dim < len(shape) else REPLICA, piece.size, stride))
    found: Places = (tuple(places[0]), tuple(places[1]), tuple(places[2]), tuple(places[3]))
    return DistributedLayout(shape, found)


def _physical(layout: Layout, hint: str) -> tuple[int, int, int, int]:
    """Return the numbers of CTAs, warps, lanes and registers by the first OrderBy."""
    blocks: tuple[Block, ...] = layout.orders[0].blocks if layout.orders else ()
    if layout.orders and layout.orders[0].kind == "OrderBy" and len(blocks) == 1:
        block = blocks[0]
        sizes = tuple(int(n) for n in block.dims)
        if block == Row(*sizes) and len(sizes) in (3, 4) and sizes[-2] == WARP_THREADS:
            ctas, warps, lanes, registers = (1,) * (4 - len(sizes)) + sizes
            return ctas, warps, lanes, registers
    raise LegoError(f"'{layout}' does not begin with the physical space", hint=hint)


def _through(stage: tuple[Block, ...], pieces: Pieces, layout: Layout) -> Pieces:
    """Return the pieces in the order of the flat positions that a stage gives."""
    dims: list[int] = []
    order: list[int] = []
    for block in stage:
        if not isinstance(block, RegP):
            raise LegoError(
                f"'{block.text}' does more than permute size factors, and no lane indexes its "
                "registers by a number that it computes",
                hint="write RegP, Row and Col; swizzles belong to shared memory",
            )
        order += [len(dims) + p for p in block.perm]
        dims += [int(n) for n in block.dims]
    pieces = _cut_positions(pieces, list(accumulate(reversed(dims), mul)), layout)
    groups: list[Pieces] = []
    rest = iter(pieces)
    for n in dims:
        group: Pieces = []
        while prod(p.size for p in group) < n:
            group.append(next(rest))
        groups.append(group)
    return [piece for p in order for piece in groups[p]]


def _cut_positions(pieces: Pieces, borders: list[int], layout: Layout) -> Pieces:
    """Cut the pieces at borders of the flat position, which are numbers of positions."""
    found: Pieces = []
    position = prod(p.size for p in pieces)
    for piece in pieces:
        position //= piece.size
        parts = [Factor(0, piece.size, position)]
        for border in borders:
            cuts = [cut(part, border) for part in parts]
            if any(c is None for c in cuts):
                raise _crossing(layout)
            parts = [p for c in cuts if c is not None for p in c]
        found += [Factor(0, p.size, piece.stride * (p.stride // position)) for p in parts]
    return [p for p in found if p.size > 1]


def _cut_strides(piece: Factor, borders: list[int], layout: Layout) -> Pieces:
    """Cut a piece at borders of the flat logical position."""
    parts = [piece]
    for border in borders:
        cuts = [cut(part, border) for part in parts]
        if any(c is None for c in cuts):
            raise _crossing(layout)
        parts = [p for c in cuts if c is not None for p in c]
    return parts


def _crossing(layout: Layout) -> LegoError:
    return LegoError(
        f"'{layout}' does not permute size factors: where its sizes meet, none divides the other",
        hint="each of CTAs, warps, lanes and registers is a product of factors of the tile's sizes",
    )
