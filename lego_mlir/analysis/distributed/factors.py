"""Size factors: what distributed layouts are made of.

A factor of size n and stride s along dimension d contributes `digit * s` to the coordinate along d,
where the digit runs from 0 to n - 1. The digits of a place (CTA, warp, lane or register) are those
of its number in a mixed radix, slowest first. So register 5 of the factors (size 3, then size 2)
has the digits 2 and 1.

Sizes need not be powers of two: the accumulator of `wgmma.m64n176` has 22 tiles of 8 columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import prod
from typing import Any, TypeAlias


class Place(IntEnum):
    """Where elements are held, slowest first, as in the physical space of a layout's text."""

    CTA = 0
    WARP = 1
    LANE = 2
    REGISTER = 3

    @property
    def word(self) -> str:
        """The name for messages."""
        return "CTA" if self is Place.CTA else self.name.lower()


REPLICA = -1
"""The dimension of factors that count copies of the same elements."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A mixed-radix digit of a place, and what it contributes to an element's index.

    Attributes:
        dim: the dimension of the tile, or `REPLICA`.
        size: how many values the digit has.
        stride: by how much the coordinate grows with the digit. The strides of replica factors
            follow from their order.
    """

    dim: int
    size: int
    stride: int

    @property
    def span(self) -> int:
        """The stride of the next slower factor of a dense dimension: `size * stride`."""
        return self.size * self.stride

    def contains(self, other: Factor) -> bool:
        """Return whether the digit of `other` can be computed from the digit of this factor."""
        return (
            self.dim == other.dim
            and other.stride % self.stride == 0
            and self.span % other.span == 0
        )


Factors: TypeAlias = tuple[Factor, ...]
Places: TypeAlias = tuple[Factors, Factors, Factors, Factors]


def replicas(size: int) -> Factor:
    """Return a factor of `size` copies."""
    return Factor(REPLICA, size, 1)


def size_of(factors: Iterable[Factor]) -> int:
    """Return how many numbers the digits of these factors make."""
    return prod(f.size for f in factors)


def weights(factors: Sequence[Factor]) -> tuple[int, ...]:
    """Return the weight of each digit in the number of its place: 1 for the last, fastest one."""
    return tuple(size_of(factors[k + 1 :]) for k in range(len(factors)))


def digits(factors: Sequence[Factor], number: Any) -> list[Any]:
    """Return the digits of a number, or of an array of numbers, slowest first."""
    found: list[Any] = []
    for f in reversed(factors[1:]):
        found.append(number % f.size)
        number = number // f.size
    return [*([number] if factors else []), *reversed(found)]


def canonical(places: Sequence[Iterable[Factor]]) -> Places:
    """Return the one way of writing these factors.

    Factors of size 1 are dropped, neighbours that make one longer factor are merged, and replicas
    are numbered as the hardware counts. Two lists of factors that hold the same elements in the
    same places become equal.
    """
    count = 1
    found: list[Factors] = []
    for place in reversed(places):
        kept: list[Factor] = []
        for factor in reversed([f for f in place if f.size != 1]):
            f = factor
            if f.dim == REPLICA:
                f = replace(f, stride=count)
                count *= f.size
            if kept and kept[-1].dim == f.dim and kept[-1].span == f.stride:
                fast = kept.pop()
                f = Factor(f.dim, f.size * fast.size, fast.stride)
            kept.append(f)
        found.append(tuple(reversed(kept)))
    ctas, warps, lanes, registers = reversed(found)
    return ctas, warps, lanes, registers


def cut(factor: Factor, border: int) -> Factors | None:
    """Cut a factor in two where its dimension has a border.

    Args:
        factor: of any dimension.
        border: a stride along the dimension.

    Returns:
        The parts, slowest first; the factor alone if the border is not inside of it; None if the
        border is inside but not a multiple, or not a divisor, of what it would cut.
    """
    if not factor.stride < border < factor.span:
        return (factor,)
    if border % factor.stride or factor.span % border:
        return None
    low = border // factor.stride
    return (
        Factor(factor.dim, factor.size // low, border),
        Factor(factor.dim, low, factor.stride),
    )


def cut_all(factors: Iterable[Factor], borders: Iterable[int]) -> Factors | None:
    """Cut factors at all borders, in their order; None if one of them cannot be cut."""
    found = tuple(factors)
    for border in borders:
        parts = [cut(f, border) for f in found]
        if any(p is None for p in parts):
            return None
        found = tuple(f for p in parts if p is not None for f in p)
    return found
