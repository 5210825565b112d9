"""Conversions of tiles that the CTAs of a cluster divide: what is left for CTAs to do.

A digit of the CTA's number that counts the same elements in both layouts takes no part in a
conversion: each CTA, or each group of CTAs, converts its own piece of the tile. What is left is

    within    nothing: the conversion is one of each CTA's piece
    split     each CTA has all of the tile, and takes a part of it
    gather    each CTA of a group has a part of the piece, and all of them get all of it
    exchange  anything else: CTAs send one another different parts
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from lego_mlir.analysis.distributed.factors import (
    REPLICA,
    Factor,
    Place,
    Places,
    cut,
    replicas,
    weights,
)
from lego_mlir.analysis.distributed.layout import DistributedLayout


class Kind(StrEnum):
    """What the CTAs of a cluster do in a conversion."""

    WITHIN = "within"
    SPLIT = "split"
    GATHER = "gather"
    EXCHANGE = "exchange"


@dataclass(frozen=True)
class OfCluster:
    """A conversion of what is left when the CTA digits that stay are taken away.

    Attributes:
        kind: what CTAs do.
        source: where a piece's elements are. It has one CTA; of a gather those of a group, of an
            exchange all.
        target: where they go, in one CTA; of a split or an exchange in all.
        digits: the sizes of the digits of the CTA's number, slowest first.
        moved: which of these digits number the CTAs of a group.
    """

    kind: Kind
    source: DistributedLayout
    target: DistributedLayout
    digits: tuple[int, ...] = ()
    moved: tuple[bool, ...] = ()


@lru_cache(maxsize=1 << 10)
def of_cluster(source: DistributedLayout, target: DistributedLayout) -> OfCluster:
    """Return what is left of a conversion for CTAs to do.

    Args:
        source: where elements are, in several CTAs.
        target: where they go, in as many.
    """
    mine, theirs = _digits(source, target), _digits(target, source)
    if [f.size for f in mine] != [f.size for f in theirs]:
        return OfCluster(Kind.EXCHANGE, source, target)
    pairs = list(zip(mine, theirs, strict=True))
    stays = [a for a, b in pairs if a == b and a.dim != REPLICA]
    gives = [a for a, b in pairs if a != b and a.dim != REPLICA]
    takes = [b for a, b in pairs if a != b and b.dim != REPLICA]
    if takes:
        if gives or stays:
            return OfCluster(Kind.EXCHANGE, source, target)
        return OfCluster(Kind.SPLIT, _piece(source), target)
    return OfCluster(
        Kind.GATHER if gives else Kind.WITHIN,
        _piece(source, stays, gives),
        _piece(target, stays),
        tuple(f.size for f in mine),
        tuple(f in gives for f in mine),
    )


def _digits(layout: DistributedLayout, other: DistributedLayout) -> list[Factor]:
    """Return the CTA factors of a layout, cut where those of another layout meet."""
    borders = weights(other.places[Place.CTA])
    factors = layout.places[Place.CTA]
    found: list[Factor] = []
    for f, weight in zip(factors, weights(factors), strict=True):
        parts: Sequence[Factor] = [f]
        for border in borders:
            # A border of the CTA's number, as one of the element's coordinate.
            at = f.stride * border // weight if border > weight else f.stride
            pieces = [cut(part, at) for part in parts]
            if None not in pieces:
                parts = [p for piece in pieces for p in piece or ()]
        found += [replicas(p.size) if p.dim == REPLICA else p for p in parts]
    return found


def _piece(
    layout: DistributedLayout, stays: Iterable[Factor] = (), ctas: Iterable[Factor] = ()
) -> DistributedLayout:
    """Return the layout of a piece: without the digits that stay, and with these CTA factors."""
    shape = list(layout.shape)
    places: list[tuple[Factor, ...]] = [tuple(ctas), *layout.places[Place.WARP :]]
    # The slowest first: it changes no strides of those that are left to take away.
    for gone in sorted(stays, key=lambda f: -f.stride):
        shape[gone.dim] //= gone.size
        places = [tuple(_closed(f, gone) for f in place) for place in places]
    found: Places = (places[0], places[1], places[2], places[3])
    return DistributedLayout(tuple(shape), found)


def _closed(f: Factor, gone: Factor) -> Factor:
    """Return a factor where another one's digit has been taken out of its dimension."""
    if f.dim != gone.dim or f.stride < gone.stride:
        return f
    return Factor(f.dim, f.size, f.stride // gone.size)
