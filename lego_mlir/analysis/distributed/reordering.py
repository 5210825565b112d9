"""The order of one dimension in which a layout becomes another one.

A dot sums over k in any order, as long as both operands have the same one. So what threads hold as
an accumulator's columns may be operand A of the next dot as it is, where k is ordered as they hold
it: no element leaves its thread.

    accumulator    lane t holds columns 2 t + c % 2 + 8 (c / 2)
    operand A      lane t holds k = 4 t + a % 4 + 16 (a / 4), of 8-bit elements

    column 16 i + 8 h + 2 t + c is k = 16 i + 4 t + 2 h + c: the digits i, h, t, c become i, t, h, c
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lego_mlir.analysis.distributed.factors import Factor, Place
from lego_mlir.analysis.distributed.layout import DistributedLayout


@dataclass(frozen=True, slots=True)
class Reordering:
    """A permutation of one dimension's digits.

    Attributes:
        sizes: of the digits, slowest first.
        order: digit k of the new index is digit `order[k]` of the old one.
    """

    sizes: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """Whether the order stays."""
        return self.order == tuple(range(len(self.order)))


@lru_cache(maxsize=1 << 8)
def reordering(given: DistributedLayout, needed: DistributedLayout, dim: int) -> Reordering | None:
    """Return the order of a dimension in which threads that hold one layout hold another one.

    Registers may have other numbers. Where several orders do, it is the one in which registers
    hold elements in the order in which they held them.

    Args:
        given: where elements are.
        needed: where they shall be, of the same shape.
        dim: the dimension.

    Returns:
        None if there is no such order: other dimensions differ, or threads of one layout hold
        another number of elements along this one.
    """
    if given.shape != needed.shape:
        return None
    pairs: list[tuple[Factor, Factor]] = []
    for place in Place:
        mine, other = given.places[place], needed.places[place]
        if place is not Place.REGISTER:
            found = _paired(mine, other)
        else:
            own, its = (_by_stride(f for f in x if f.dim == dim) for x in (mine, other))
            found = _paired(own, its)
            if _others(mine, dim) != _others(other, dim):
                return None
        if found is None or any(not _fits(f, g, dim) for f, g in found):
            return None
        pairs += [(f, g) for f, g in found if f.dim == dim]
    pairs.sort(key=lambda pair: -pair[0].stride)
    order = sorted(range(len(pairs)), key=lambda k: -pairs[k][1].stride)
    return Reordering(tuple(f.size for f, _ in pairs), tuple(order))


def _fits(given: Factor, needed: Factor, dim: int) -> bool:
    """Return whether a digit counts the same in both layouts, but for the stride along `dim`."""
    return given.dim == needed.dim and (given.dim == dim or given.stride == needed.stride)


def _by_stride(factors: Iterable[Factor]) -> list[Factor]:
    return sorted(factors, key=lambda f: -f.stride)


def _others(factors: Sequence[Factor], dim: int) -> list[Factor]:
    """Return the factors of other dimensions, by dimension and stride."""
    return sorted((f for f in factors if f.dim != dim), key=lambda f: (f.dim, f.stride))


def _paired(
    given: Sequence[Factor], needed: Sequence[Factor]
) -> list[tuple[Factor, Factor]] | None:
    """Cut factors into digits that two lists have in common, and pair these; `None` if none are."""
    left, right = list(given), list(needed)
    found = []
    while left and right:
        f, g = left.pop(), right.pop()
        n = min(f.size, g.size)
        if f.size % n or g.size % n:
            return None
        for rest, whole in ((left, f), (right, g)):
            if whole.size > n:
                rest.append(Factor(whole.dim, whole.size // n, whole.stride * n))
        found.append((Factor(f.dim, n, f.stride), Factor(g.dim, n, g.stride)))
    return None if left or right else found
