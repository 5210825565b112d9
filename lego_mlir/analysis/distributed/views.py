"""Layouts of views: what reshaping, transposing, slicing and broadcasting make of a layout.

None of these moves an element. Registers keep what they hold; only its index changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from lego_mlir.analysis.distributed.factors import (
    REPLICA,
    Factor,
    Place,
    Places,
    canonical,
    cut,
    cut_all,
    size_of,
)
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.diagnostics import LegoError


def reduced(
    layout: DistributedLayout, dim: int, places: Iterable[Place] = tuple(Place)
) -> DistributedLayout:
    """Return the quotient by a dimension: the layout of what a reduction along it leaves.

    Thread factors of the dimension become replicas, for a reduction leaves its result in all of
    them; register factors go. The dimension stays, with size 1, so `keepdims` costs nothing.

    Args:
        layout: of what is reduced.
        dim: the dimension; negative ones count from the last.
        places: those whose factors are reduced; the dimension keeps what the others count.

    Raises:
        LegoError: there is no such dimension.
    """
    dim = checked_dim(layout, dim)
    gone = set(places)
    kept = [f for place, f in layout.factors_of(dim) if place not in gone]
    strides = {f: size_of(kept[k + 1 :]) for k, f in enumerate(kept)}
    found: list[tuple[Factor, ...]] = []
    for place, factors in zip(Place, layout.places, strict=True):
        new = []
        for f in factors:
            if f.dim != dim:
                new.append(f)
            elif place not in gone:
                new.append(replace(f, stride=strides[f]))
            elif place is not Place.REGISTER:
                new.append(Factor(REPLICA, f.size, 1))
        found.append(tuple(new))
    shape = [size_of(kept) if d == dim else n for d, n in enumerate(layout.shape)]
    return _layout(shape, found)


def squeezed(layout: DistributedLayout, dim: int) -> DistributedLayout:
    """Return the layout without a dimension of size 1.

    Raises:
        LegoError: there is no such dimension, or it has another size.
    """
    dim = checked_dim(layout, dim)
    if layout.shape[dim] != 1:
        raise LegoError(
            f"dimension {dim} of the tile {list(layout.shape)} has size {layout.shape[dim]}; only "
            "a dimension of size 1 is squeezed"
        )
    order = [d for d in range(layout.rank) if d != dim]
    return _renumbered(
        layout, [layout.shape[d] for d in order], {d: k for k, d in enumerate(order)}
    )


def sliced(layout: DistributedLayout, dim: int) -> DistributedLayout:
    """Return the quotient by a dimension, without the dimension.

    Raises:
        LegoError: there is no such dimension.
    """
    return squeezed(reduced(layout, dim), dim)


def unsqueezed(layout: DistributedLayout, dim: int) -> DistributedLayout:
    """Return the layout with a new dimension of size 1 before dimension `dim`.

    Raises:
        LegoError: there is no such place.
    """
    if not -layout.rank - 1 <= dim <= layout.rank:
        raise LegoError(f"a tile {list(layout.shape)} gets no new dimension {dim}")
    dim %= layout.rank + 1
    shape = [*layout.shape[:dim], 1, *layout.shape[dim:]]
    return _renumbered(layout, shape, {d: d + (d >= dim) for d in range(layout.rank)})


def broadcast(layout: DistributedLayout, shape: Sequence[int]) -> DistributedLayout:
    """Return the layout of a tile whose dimensions of size 1 are repeated to another shape.

    Every thread holds all repetitions of its elements, in registers that are all the same value.
    Where the result's layout is known, convert to its quotient and use `broadcast_registers`.

    Raises:
        LegoError: the tile does not broadcast to the shape.
    """
    fits = len(shape) == layout.rank and all(
        n in (1, m) for n, m in zip(layout.shape, shape, strict=True)
    )
    if not fits:
        raise LegoError(
            f"a tile {list(layout.shape)} does not broadcast to {list(shape)}",
            hint="give both the same number of dimensions; those that differ have size 1",
        )
    new = [Factor(d, m, 1) for d, m in enumerate(shape) if layout.shape[d] != m]
    places = list(layout.places)
    places[Place.REGISTER] = (*new, *places[Place.REGISTER])
    return _layout(shape, places)


def broadcast_registers(layout: DistributedLayout, dims: Iterable[int]) -> tuple[int, ...]:
    """Return for each register of a layout the register of its quotient with the same value.

    A tile in the quotient by `dims` is broadcast to the layout along them without any instruction:
    every thread already holds what its registers repeat.

    Args:
        layout: of the result.
        dims: the dimensions along which the tile has size 1.

    Raises:
        LegoError: there is no such dimension.
    """
    gone = {checked_dim(layout, dim) for dim in dims}
    quotient = layout
    for dim in gone:
        quotient = reduced(quotient, dim)
    found = []
    for register in range(layout.registers):
        coordinates = layout.apply(0, 0, 0, register).coordinates
        at = [0 if d in gone else x for d, x in enumerate(coordinates)]
        found.append(int(quotient.inverse(at).register))
    return tuple(found)


def transposed(layout: DistributedLayout, order: Sequence[int] | None = None) -> DistributedLayout:
    """Return the layout with its dimensions in another order, as NumPy's transpose.

    Args:
        layout: of any rank.
        order: dimension k of the result is dimension `order[k]`; by default they are reversed.

    Raises:
        LegoError: that is no order of the dimensions.
    """
    order = list(range(layout.rank))[::-1] if order is None else list(order)
    if sorted(order) != list(range(layout.rank)):
        raise LegoError(f"{order} is no order of the dimensions of a tile {list(layout.shape)}")
    shape = [layout.shape[d] for d in order]
    return _renumbered(layout, shape, {d: k for k, d in enumerate(order)})


def reshaped(layout: DistributedLayout, shape: Sequence[int]) -> DistributedLayout:
    """Return the layout of a tile's elements, in row-major order, as a tile of another shape.

    Raises:
        LegoError: the numbers of elements differ, or a factor crosses a border of the new shape, so
            that the result is no table of factors.
    """
    if prod(shape) != prod(layout.shape) or any(n < 1 for n in shape):
        raise LegoError(
            f"a tile {list(layout.shape)} of {prod(layout.shape)} elements is not reshaped to "
            f"{list(shape)}"
        )
    below = [prod(shape[k + 1 :]) for k in range(len(shape))]
    flat = canonical([[_flattened(f, layout.shape) for f in p] for p in layout.places])
    found = []
    for place, factors in zip(Place, flat, strict=True):
        new: list[Factor] = []
        for f in factors:
            parts = (f,) if f.dim == REPLICA else cut_all([f], below)
            if parts is None:
                raise LegoError(
                    f"reshaping {list(layout.shape)} to {list(shape)} would cut {f.size} "
                    f"{place.word}s, which hold elements {f.stride} apart, where no factor of "
                    f"{f.size} ends",
                    hint="convert the tile to a layout whose factors the new shape divides",
                )
            for part in parts:
                if part.dim == REPLICA:
                    new.append(part)
                    continue
                dim = next(k for k, stride in enumerate(below) if part.stride >= stride)
                new.append(Factor(dim, part.size, part.stride // below[dim]))
        found.append(tuple(new))
    return _layout(shape, found)


def _flattened(factor: Factor, shape: Sequence[int]) -> Factor:
    """Return a factor with its stride in the row-major number of the element."""
    if factor.dim == REPLICA:
        return factor
    return Factor(0, factor.size, factor.stride * prod(shape[factor.dim + 1 :]))


def joined(layout: DistributedLayout, parts: int = 2) -> DistributedLayout:
    """Return the layout of several tiles of one layout, joined along a new last dimension.

    Element k of the new dimension is the k-th tile's; neighbours lie in neighbouring registers.

    Raises:
        LegoError: there is not at least one part.
    """
    places = list(layout.places)
    places[Place.REGISTER] = (*places[Place.REGISTER], Factor(layout.rank, parts, 1))
    return _layout([*layout.shape, parts], places)


def split(layout: DistributedLayout) -> DistributedLayout:
    """Return the layout of each of the tiles along the last dimension: the inverse of `joined`.

    Raises:
        LegoError: the tile has no dimension, or a thread does not hold all of the last one.
    """
    last = checked_dim(layout, -1)
    for place, f in layout.factors_of(last):
        if place is not Place.REGISTER:
            raise LegoError(
                f"a split along dimension {last} needs all of it in each thread, but "
                f"{f.size} {place.word}s divide it",
                hint="convert the tile to a layout with this dimension in registers first",
            )
    return sliced(layout, last)


def block(layout: DistributedLayout, shape: Sequence[int]) -> DistributedLayout:
    """Return the layout of each of the equal blocks of a tile that every thread has a part of.

    Args:
        layout: of the tile.
        shape: of a block; it divides the tile's.

    Raises:
        LegoError: threads divide the tile into blocks, or a block has another rank.
    """
    if len(shape) != layout.rank or any(n % m for n, m in zip(layout.shape, shape, strict=True)):
        raise LegoError(f"a tile {list(layout.shape)} does not consist of blocks {list(shape)}")
    places: list[tuple[Factor, ...]] = []
    for place, factors in zip(Place, layout.places, strict=True):
        kept: list[Factor] = []
        for f in factors:
            pieces = (f,) if f.dim == REPLICA else cut(f, shape[f.dim])
            if pieces is None:
                raise LegoError(
                    f"blocks {list(shape)} cut what the registers of '{layout}' hold",
                    hint="blocks of a multiple of the tile's registers",
                )
            inside = [p for p in pieces if p.dim == REPLICA or p.stride < shape[p.dim]]
            if place is not Place.REGISTER and len(inside) < len(pieces):
                raise LegoError(
                    f"{place.word}s divide the tile {list(layout.shape)} into blocks {list(shape)}",
                    hint="blocks along a dimension that every thread has in registers",
                )
            kept.extend(inside)
        places.append(tuple(kept))
    return _layout(shape, places)


def checked_dim(layout: DistributedLayout, dim: int) -> int:
    """Return a dimension as a number from 0; negative ones count from the last.

    Raises:
        LegoError: there is no such dimension.
    """
    if isinstance(dim, bool) or not -layout.rank <= dim < layout.rank:
        raise LegoError(
            f"there is no dimension {dim} in a tile {list(layout.shape)}",
            hint=f"dimensions are 0 to {layout.rank - 1}" if layout.rank else "it is a scalar",
        )
    return dim % layout.rank


def _renumbered(
    layout: DistributedLayout, shape: Iterable[int], dims: dict[int, int]
) -> DistributedLayout:
    """Return the layout with its dimensions renumbered."""
    dims = {REPLICA: REPLICA, **dims}
    return _layout(shape, [tuple(replace(f, dim=dims[f.dim]) for f in p) for p in layout.places])


def _layout(shape: Iterable[int], places: Sequence[tuple[Factor, ...]]) -> DistributedLayout:
    ctas, warps, lanes, registers = places
    found: Places = (ctas, warps, lanes, registers)
    return DistributedLayout(tuple(shape), found)
