"""Which elements of a thread's registers exist, as far as it is not proven that all do.

An element does not exist past the end of a dimension, and in the padding of partial tiles. Both are
comparisons of a coordinate with a limit. Registers whose comparisons are proven to agree share one
condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lego_mlir.algebra import Layout
from lego_mlir.algebra.partial import mask
from lego_mlir.index import Int, construct, polynomial
from lego_mlir.index.proofs.prover import is_less
from lego_mlir.mlir.lowering.parts_access.offsets import Place, Registers

_MOST_TOGETHER = 1 << 10
"""The longest stretch of coordinates that is looked for in which all comparisons agree."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Comparisons that all have to hold: each coordinate is below its limit."""

    limits: frozenset[tuple[Int, Int]]

    @property
    def expression(self) -> Int:
        """1 where they hold, 0 where one does not."""
        return mask(sorted(self.limits, key=repr))  # type: ignore[no-any-return]


ALWAYS = Condition(frozenset())


def conditions(layout: Layout, registers: Registers) -> list[Condition]:
    """Return the condition of each register."""
    limits = [*zip(registers.index, layout.dims, strict=True)]
    if layout.is_partial:
        limits += layout.limits(registers.index)
    found: list[set[tuple[Int, Int]]] = []
    for coordinate, limit in limits:
        places = registers.places(coordinate)
        found = found or [set() for _ in places]
        if _all_below(places, limit):
            continue
        for own, (base, constant) in zip(found, places, strict=True):
            compared = _representative(base, constant, limit)
            if not is_less(compared, limit):
                own.add((compared, limit))
    return [Condition(frozenset(own)) for own in found]


def _all_below(places: Sequence[Place], limit: Int) -> bool:
    """Return whether all places are proven to be below a limit."""
    greatest: dict[Int, int] = {}
    for base, constant in places:
        greatest[base] = max(constant, greatest.get(base, constant))
    return all(is_less(construct.add(base, most), limit) for base, most in greatest.items())


@lru_cache(maxsize=1 << 12)
def _representative(base: Int, constant: int, limit: Int) -> Int:
    """Return a coordinate that is below the limit exactly where `base + constant` is.

    If a number divides base and limit, the limit does not lie within the stretches of that length.
    """
    stretch = 1
    while 2 * stretch <= _MOST_TOGETHER and all(
        polynomial.divides(2 * stretch, x) for x in (base, limit)
    ):
        stretch *= 2
    return construct.add(base, constant - constant % stretch)
