"""Which elements of a thread's registers exist, as far as it is not proven that all do.

An element does not exist past the end of a dimension, and in the padding of partial tiles. Both are
comparisons of a coordinate with a limit. Registers whose comparisons are proven to agree share one
condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from lego_mlir.algebra import Layout
from lego_mlir.algebra.partial import mask
from lego_mlir.index import Int, bounds, construct, polynomial
from lego_mlir.index.nodes import plain
from lego_mlir.index.proofs.prover import is_less
from lego_mlir.mlir.lowering.parts_access.offsets import Factor, Place, Registers, offset_of

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

    @property
    def is_never(self) -> bool:
        """Whether they are known not to hold."""
        lowest = (bounds(construct.sub(x, limit))[0] for x, limit in self.limits)
        return any(low is not None and low >= 0 for low in lowest)


ALWAYS = Condition(frozenset())


class RegisterPlaces(NamedTuple):
    """Where the elements of registers lie, and which of them exist.

    Attributes:
        exist: the condition of each register.
        all_exist: that of all of them together.
        places: the offset of each register.
    """

    exist: Sequence[Condition]
    all_exist: Condition
    places: Sequence[Place]


def places_of(
    layout: Layout, first: tuple[Int, ...], factors: tuple[Factor, ...], in_bounds: bool
) -> RegisterPlaces:
    """Return where the registers of a thread lie, cached as `derive_offset` does.

    Args:
        layout: of the tensor.
        first: the index of the thread's first element.
        factors: the register factors.
        in_bounds: whether all indices are known to be inside of the dimensions.
    """
    find = _known_places.__wrapped__ if layout.functions else _known_places
    return find(layout, first, factors, in_bounds)


@lru_cache(maxsize=1 << 10)
def _known_places(
    layout: Layout, first: tuple[Int, ...], factors: tuple[Factor, ...], in_bounds: bool
) -> RegisterPlaces:
    registers = Registers.of(first, factors)
    exist, all_exist = conditions(layout, registers, in_bounds=in_bounds)
    if all(own.is_never for own in exist):
        places: list[Place] = [(0, k) for k in range(len(exist))]  # there is no offset
    else:
        places = registers.places(offset_of(layout, registers.index))
    return RegisterPlaces(exist, all_exist, places)


def conditions(
    layout: Layout, registers: Registers, *, in_bounds: bool
) -> tuple[list[Condition], Condition]:
    """Return the condition of each register, and that of all of them together.

    Args:
        layout: of the tensor.
        registers: their indices.
        in_bounds: whether all indices are known to be inside of the dimensions.
    """
    limits = [] if in_bounds else [*zip(registers.index, layout.dims, strict=True)]
    if layout.is_partial:
        limits += layout.limits(registers.index)
    found: list[set[tuple[Int, Int]]] = [set() for _ in range(registers.count)]
    together: set[tuple[Int, Int]] = set()
    for coordinate, limit in limits:
        if is_less(coordinate, limit):
            continue
        places = registers.places(coordinate)
        furthest = _furthest(places)
        if all(is_less(x, limit) for x in furthest):
            continue
        together.update((x, limit) for x in furthest)
        for own, (base, constant) in zip(found, places, strict=True):
            compared = representative(base, constant, limit)
            if not is_less(compared, limit):
                own.add((compared, limit))
    return [Condition(frozenset(own)) for own in found], Condition(frozenset(together))


def _furthest(places: Sequence[Place]) -> list[Int]:
    """Return the greatest of all places, one for each base."""
    greatest: dict[Int, int] = {}
    for base, constant in places:
        greatest[base] = max(constant, greatest.get(base, constant))
    return [construct.add(base, most) for base, most in greatest.items()]


def split(x: Int) -> Place:
    """Return an expression as a base without constant, and the constant."""
    constant, terms = polynomial.parts(plain(x))
    return polynomial.build(0, terms), constant


@lru_cache(maxsize=1 << 12)
def representative(base: Int, constant: int, limit: Int) -> Int:
    """Return a coordinate that is below the limit exactly where `base + constant` is.

    If a number divides all terms but constants, the limit lies only at multiples of it, counted
    from there, and not within the stretches between them.
    """
    limit_base, limit_constant = split(limit)
    stretch = 1
    while 2 * stretch <= _MOST_TOGETHER and all(
        polynomial.divides(2 * stretch, x) for x in (base, limit_base)
    ):
        stretch *= 2
    distance = constant - limit_constant
    return construct.add(base, limit_constant + distance - distance % stretch)
