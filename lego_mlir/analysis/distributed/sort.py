"""Sorts along a dimension, derived from the layout alone: a bitonic network over the index.

Blocks of 1, 2, 4, ... sorted elements are merged two by two. In each round an element at index i
meets that at index i XOR a mask, and the one that comes first goes to the lower index. The first
round of a merge mirrors the second block (mask 2k - 1), so that all comparisons are in one
direction: an index past the end of the dimension meets nobody, and any size will do.

The index is a number of bits, and where a bit is decides what a round takes:

    register    two registers of a thread are exchanged
    lane        a shuffle
    warp        through shared memory

Source: K. E. Batcher, "Sorting networks and their applications", 1968.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.factors import Place, weights
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.distributed.views import checked_dim
from lego_mlir.diagnostics import LegoError


@dataclass(frozen=True)
class Round:
    """A round of a network.

    Attributes:
        lanes: what the lane's number is XORed with to find the other lane.
        coordinate: what a thread's coordinate is XORed with to find the other warp's; 0 if the
            round is one of warps.
        partners: for each register that of the other thread that it meets; `None` for nobody.
        lower: whether a register has the lower index, where that is the same in all threads.
        digit: the bit of the warp's or lane's number that is 0 in the lower one; `None` if `lower`
            says it.
    """

    lanes: int
    coordinate: int
    partners: tuple[int | None, ...]
    lower: tuple[bool, ...]
    digit: Digit | None

    @property
    def is_local(self) -> bool:
        """Whether registers of one thread meet."""
        return not self.lanes and not self.coordinate


@dataclass(frozen=True)
class Sort:
    """The plan of a sort; the result has the layout of what is sorted.

    Attributes:
        layout: of the tile.
        dim: the dimension.
        rounds: what is done, in order.
    """

    layout: DistributedLayout
    dim: int
    rounds: tuple[Round, ...]

    def explain(self) -> str:
        """Return one line: the rounds, by where elements meet."""
        shared = sum(bool(r.coordinate) for r in self.rounds)
        local = sum(r.is_local for r in self.rounds)
        shuffles = len(self.rounds) - shared - local
        return f"{local} rounds in registers, {shuffles} by shuffles, {shared} by shared memory"


def masks(size: int) -> Iterator[int]:
    """Yield what indices are XORed with, round by round, to sort so many elements."""
    block = 1
    while block < size:
        yield 2 * block - 1
        step = block // 2
        while step:
            yield step
            step //= 2
        block *= 2


@lru_cache(maxsize=1 << 8)
def plan_sort(layout: DistributedLayout, dim: int) -> Sort:
    """Return how a tile is sorted along a dimension.

    Args:
        layout: of the tile, each element once a thread.
        dim: the dimension; negative ones count from the last.

    Raises:
        LegoError: there is no such dimension, CTAs divide it, or threads divide it by what is no
            power of two.
    """
    dim = checked_dim(layout, dim)
    for place, f in layout.factors_of(dim):
        is_top = f.span == layout.shape[dim]
        whole = f.stride & (f.stride - 1) == 0 and (
            f.size & (f.size - 1) == 0 or (is_top and place is Place.REGISTER)
        )
        if place is Place.CTA or not whole:
            by = (
                "the CTAs of a cluster" if place is Place.CTA else f"a {place.word} factor {f.size}"
            )
            raise LegoError(
                f"a dimension of {layout.shape[dim]} elements, divided by {by}, is not sorted",
                hint="take a number of warps that is a power of two, and no cluster",
            )
    registers = np.arange(layout.registers)
    coordinates = np.broadcast_to(
        layout.apply(0, 0, 0, registers).coordinates[dim], registers.shape
    )
    found = tuple(_round(layout, dim, coordinates, mask) for mask in masks(layout.shape[dim]))
    return Sort(layout, dim, found)


def _round(layout: DistributedLayout, dim: int, coordinates: np.ndarray, mask: int) -> Round:
    """Return the round in which indices are XORed with a mask."""
    own = {Place.REGISTER: 0, Place.LANE: 0, Place.WARP: 0}
    lanes, top = 0, 1 << (mask.bit_length() - 1)
    digit = None
    for place in own:
        factors = layout.places[place]
        for f, weight in zip(factors, weights(factors), strict=True):
            if f.dim != dim:
                continue
            bits = mask & (f.span - 1 if f.size & (f.size - 1) == 0 else -1) & -f.stride
            own[place] |= bits
            if place is Place.LANE:
                lanes |= bits // f.stride * weight
            if bits & top and place is not Place.REGISTER:
                digit = Digit(place, top // f.stride * weight, 2)
    at = {
        tuple(int(x) for x in where): r
        for r, where in enumerate(
            np.stack(
                np.broadcast_arrays(
                    *layout.apply(0, 0, 0, np.arange(layout.registers)).coordinates
                ),
                -1,
            )
        )
    }
    partners = []
    for where in at:
        other = list(where)
        other[dim] ^= own[Place.REGISTER]
        partners.append(at.get(tuple(other)))
    lower = tuple(bool(x & top == 0) for x in coordinates)
    coordinate = own[Place.WARP] | own[Place.LANE] if own[Place.WARP] else 0
    return Round(lanes, coordinate, tuple(partners), lower, digit)
