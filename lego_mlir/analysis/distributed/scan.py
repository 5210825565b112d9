"""Inclusive scans along a dimension, derived from the layout alone.

The dimension is a mixed-radix number. Digit by digit, fastest first, blocks of scanned elements
become one larger block: the k-th of them is combined with the totals of the k before it. So every
step has the values, and the totals of the blocks so far, which lie in the quotient of the layout by
the digits that are done. Where a digit is decides the step:

    register    the totals before it are accumulated one after another
    lane        bit by bit: the lane whose bit differs has the other total (a butterfly)
    warp, CTA   the totals go through shared memory, so that every thread has all of them

Combining must be associative; the order of elements along the dimension is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.conversions.plan import Conversion, plan_conversion
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, Places, weights
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.distributed.views import checked_dim


@dataclass(frozen=True)
class ScanStep:
    """How blocks along one digit become one block.

    Attributes:
        digit: the digit of the thread's or register's number.
        before: for each register of values the register of the totals that has its block's.
        groups: for each register of the new totals the old ones, in the order of the digit: the
            registers of a thread, or those of the gathered totals. Of a lane's bit, the only one.
        gather: brings the totals of other warps or CTAs into registers.
    """

    digit: Digit
    before: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    gather: Conversion | None = None


@dataclass(frozen=True)
class Scan:
    """The plan of an inclusive scan; the result has the layout of what is scanned.

    Attributes:
        layout: of the tile.
        dim: the dimension.
        totals: for each register of the first totals the register of the value that it is.
        steps: what is done, in order.
    """

    layout: DistributedLayout
    dim: int
    totals: tuple[int, ...]
    steps: tuple[ScanStep, ...]

    def explain(self) -> str:
        """Return one line: what each digit of the dimension takes."""
        words = []
        for step in self.steps:
            size = step.digit.size
            if step.gather is not None:
                words.append(f"{size} {step.digit.place.word}s ({step.gather.explain()})")
            elif step.digit.place is Place.LANE:
                words.append(f"{len(step.groups)} shuffles of {step.digit.weight} lanes")
            else:
                words.append(f"{size} registers")
        return " → ".join(words) or "nothing to combine"


@lru_cache(maxsize=1 << 10)
def plan_scan(layout: DistributedLayout, dim: int, element_bytes: int) -> Scan:
    """Return how a tile is scanned along a dimension.

    Args:
        layout: of the tile, and of the result.
        dim: the dimension; negative ones count from the last.
        element_bytes: 1, 2, 4 or 8.

    Raises:
        LegoError: there is no such dimension or element, or totals are larger than shared memory.
    """
    dim = checked_dim(layout, dim)
    places = list(layout.places)
    places[Place.REGISTER] = tuple(f for f in places[Place.REGISTER] if f.dim != REPLICA)
    totals = _layout(layout.shape, places)
    first = tuple(
        int(layout.inverse(totals.apply(0, 0, 0, r).coordinates).register)
        for r in range(totals.registers)
    )
    steps, done = [], 1
    while totals.shape[dim] > 1:
        place, factor = totals.factors_of(dim)[-1]
        factors = totals.places[place]
        weight = dict(zip(factors, weights(factors), strict=True))[factor]
        size = 2 if place is Place.LANE else factor.size
        before = tuple(
            _register_at(totals, layout, r, dim, 1, done) for r in range(layout.registers)
        )
        after = _without_fastest(totals, dim, size)
        gather, held = None, totals
        if place in (Place.WARP, Place.CTA):
            held = _in_registers(totals, factor)
            gather = plan_conversion(totals, held, element_bytes)
        count = 1 if place is Place.LANE else size
        groups = tuple(
            tuple(_register_at(held, after, r, dim, size, 1, k) for k in range(count))
            for r in range(after.registers)
        )
        steps.append(ScanStep(Digit(place, weight, size), before, groups, gather))
        totals, done = after, done * size
    return Scan(layout, dim, first, tuple(steps))


def _register_at(
    held: DistributedLayout,
    layout: DistributedLayout,
    register: int,
    dim: int,
    times: int,
    per: int,
    plus: int = 0,
) -> int:
    """Return the register of `held` with a register's element, at another coordinate of `dim`.

    The coordinate x becomes `x * times // per + plus`. The layouts differ in it by whole digits of
    one place, so the answer for the first thread is that for all.
    """
    at = list(layout.apply(0, 0, 0, register).coordinates)
    at[dim] = at[dim] * times // per + plus
    return int(held.inverse(at).register)


def _without_fastest(layout: DistributedLayout, dim: int, size: int) -> DistributedLayout:
    """Return the quotient by the fastest digit of a dimension."""
    places = []
    for place, factors in zip(Place, layout.places, strict=True):
        new: list[Factor] = []
        for f in factors:
            if f.dim != dim:
                new.append(f)
            elif f.stride > 1:
                new.append(Factor(dim, f.size, f.stride // size))
            else:
                new.append(Factor(dim, f.size // size, 1))
                if place is not Place.REGISTER:
                    new.append(Factor(REPLICA, size, 1))
        places.append(tuple(new))
    shape = [n // size if d == dim else n for d, n in enumerate(layout.shape)]
    return _layout(tuple(shape), places)


def _in_registers(layout: DistributedLayout, factor: Factor) -> DistributedLayout:
    """Return the layout with a factor of warps or CTAs in the registers of every thread."""
    places = [
        tuple(Factor(REPLICA, f.size, 1) if f == factor else f for f in p) for p in layout.places
    ]
    places[Place.REGISTER] = (*places[Place.REGISTER], factor)
    return _layout(layout.shape, places)


def _layout(shape: tuple[int, ...], places: list[tuple[Factor, ...]]) -> DistributedLayout:
    ctas, warps, lanes, registers = places
    found: Places = (ctas, warps, lanes, registers)
    return DistributedLayout(shape, found)
