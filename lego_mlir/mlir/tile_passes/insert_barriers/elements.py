"""Which elements of a buffer each thread accesses, where that is known.

An access has an index a dimension. It is known where the index is the sum of a function of the
thread's number, and of its CTA's in a cluster, and an origin that all threads have. The first is
evaluated for all threads: so two accesses can be compared element by element, and it turns out
which threads meet.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import IntEnum
from itertools import product
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lego_mlir.algebra import Layout
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.index import Int, Sym, construct, evaluate, polynomial, symbols
from lego_mlir.index.nodes import plain

Ints: TypeAlias = NDArray[np.int64]

MOST_COMPARED = 1 << 18
"""The most elements of one access that are looked at one by one."""

SPARSE = 4
"""Elements that lie in a range so many times their number are numbered anew: a table of the range
would be too large."""


class Meeting(IntEnum):
    """Which threads access the same bytes: none, or threads of a warp, a CTA or a cluster."""

    NONE = 0
    WARP = 1
    CTA = 2
    CLUSTER = 3


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The elements that the threads of a CTA, or of all CTAs of a cluster, access.

    Attributes:
        layout: of the buffer.
        unit: bytes of an element.
        start: the byte at which the buffer begins.
        threads: for each dimension an array of what each thread adds to the origin.
        registers: for each dimension an array of what each register of a thread adds to that.
        origin: for each dimension the least index of all.
        sizes: the values of the layout's symbols, which stay while the kernel runs.
        active: whether a thread makes the access, for each.
        of_warps: whether a warp makes it together, any thread of it for another one.
        cta_threads: the threads of a CTA.
        pattern: what is equal of elements of one kernel that differ in their origin only.
    """

    layout: Layout
    unit: int
    start: int
    threads: tuple[Ints, ...]
    registers: tuple[Ints, ...]
    origin: tuple[Int, ...]
    sizes: tuple[Int, ...]
    active: NDArray[np.bool_]
    of_warps: bool
    cta_threads: int
    pattern: tuple[Hashable, ...]

    @property
    def is_absolute(self) -> bool:
        """Whether the origin and the layout's sizes are known."""
        return not self.layout.symbols and all(isinstance(x, int) for x in self.origin)

    @property
    def extents(self) -> tuple[int, ...]:
        """The box, from the origin on, that the elements lie in."""
        both = zip(self.threads, self.registers, strict=True)
        return tuple(int(x.max() + y.max()) + 1 for x, y in both)

    def bytes(self, unit: int) -> tuple[Ints, Ints]:
        """Return the numbers of the units of memory that are accessed, and each one's thread."""
        origin = cast("tuple[int, ...]", self.origin)
        added = zip(self.threads, self.registers, origin, strict=True)
        index = [np.add.outer(x + at, y) for x, y, at in added]
        inside = np.ones(index[0].shape, np.bool_) & self.active[:, None]
        for x, n in zip(index, cast("tuple[int, ...]", self.layout.dims), strict=True):
            inside &= (x >= 0) & (x < n)
        threads = np.broadcast_to(np.arange(inside.shape[0])[:, None], inside.shape)[inside]
        kept = tuple(x[inside] for x in index)
        if self.layout.is_partial:
            exists = np.broadcast_to(self.layout.mask(*kept), threads.shape).astype(np.bool_)
            kept, threads = tuple(x[exists] for x in kept), threads[exists]
        offsets = np.broadcast_to(np.asarray(self.layout.apply(*kept), np.int64), threads.shape)
        first = (self.start + offsets * self.unit) // unit
        several = first[:, None] + np.arange(self.unit // unit)
        return several.reshape(-1), np.repeat(threads, self.unit // unit)

    def ranks(self, begin: Sequence[int], extents: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the elements as numbers, row-major in a box, and each one's thread.

        Args:
            begin: the index of the origin in the box.
            extents: of the box.
        """
        of_threads, of_registers = np.zeros_like(self.threads[0]), np.zeros_like(self.registers[0])
        for x, y, first, n in zip(self.threads, self.registers, begin, extents, strict=True):
            of_threads, of_registers = of_threads * n + x + first, of_registers * n + y
        ranks = np.add.outer(of_threads[self.active], of_registers).reshape(-1)
        return ranks, np.repeat(np.flatnonzero(self.active), len(of_registers))


def elements(
    layout: Layout,
    unit: int,
    start: int,
    index: Sequence[Int],
    sizes: Sequence[Int],
    factors: Sequence[tuple[int, int, int]],
    threads: Mapping[Sym, Ints],
    active: NDArray[np.bool_],
    *,
    of_warps: bool,
    cta_threads: int,
) -> Elements | None:
    """Return the elements that threads access, `None` if they are not known.

    Args:
        layout: of the buffer.
        unit: bytes of an element.
        start: the byte at which the buffer begins.
        index: of the thread's first element, expressions.
        sizes: the values of the layout's symbols, which stay while the kernel runs.
        factors: the register factors: dimension, size and stride.
        threads: the symbols that tell threads apart, with their values in each thread. All other
            symbols are the same in all threads.
        active: whether a thread makes the access, for each.
        of_warps: whether a warp makes it together, any thread of it for another one.
        cta_threads: the threads of a CTA.
    """
    count = len(active)
    digits = np.array(list(product(*(range(n) for _, n, _ in factors))), np.int64)
    if count * len(digits) > MOST_COMPARED:
        return None
    values_of = {symbol.name: values for symbol, values in threads.items()}
    of_threads, of_registers, origin, owns = [], [], [], []
    for dim, x in enumerate(index):
        split = _split(x, threads.keys())
        if split is None:
            return None
        own, common = split
        owns.append(own)
        own_values = np.broadcast_to(evaluate(own, values_of), (count,))
        in_dim = [stride if d == dim else 0 for d, _, stride in factors]
        registers = digits @ np.array(in_dim, np.int64)
        least, lowest = int(own_values.min()), int(registers.min())
        of_threads.append(own_values - least)
        of_registers.append(registers - lowest)
        origin.append(construct.add(common, least + lowest))
    pattern = layout, unit, start, *owns, tuple(factors), active.tobytes(), of_warps
    at = tuple(of_threads), tuple(of_registers), tuple(origin), tuple(sizes)
    return Elements(layout, unit, start, *at, active, of_warps, cta_threads, pattern)


def _split(x: Int, threads: Set[Sym]) -> tuple[Int, Int] | None:
    """Return what depends on the threads alone, and what does not; `None` if that is no sum."""
    constant, terms = polynomial.parts(plain(x))
    own: polynomial.Terms = {}
    common: polynomial.Terms = {}
    for mono, coefficient in terms.items():
        names = frozenset[Sym]().union(*(symbols(atom) for atom, _ in mono))
        if not names & threads:
            common[mono] = coefficient
        elif names <= threads:
            own[mono] = coefficient
        else:
            return None
    return polynomial.build(0, own), polynomial.build(constant, common)


class Meetings:
    """Compares the accesses of one kernel, those that differ in their origin only once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], Meeting] = {}

    def of(self, a: Elements, b: Elements, *, same_time: bool) -> Meeting:
        """Return which different threads may access the same bytes, one by `a` and one by `b`.

        Where that is unknown they are any of the cluster.

        Args:
            a: of an access of the same memory.
            b: of another one.
            same_time: whether the symbols in both origins have the same values.
        """
        groups = a.of_warps or b.of_warps, a.cta_threads
        if a.is_absolute and b.is_absolute:
            key: tuple[Hashable, ...] = a.pattern, a.origin, b.pattern, b.origin
            if key not in self._known:
                unit = int(np.gcd.reduce([a.unit, b.unit, a.start, b.start]))
                self._known[key] = _of_threads(a.bytes(unit), b.bytes(unit), *groups)
            return self._known[key]
        if (a.layout, a.sizes, a.unit, a.start) != (b.layout, b.sizes, b.unit, b.start):
            return Meeting.CLUSTER
        apart = _distance(a, b) if same_time else None
        if apart is None:
            ends = [max(m, n) for m, n in zip(a.extents, b.extents, strict=True)]
            if not all(
                polynomial.divides(n, x) and polynomial.divides(n, y)
                for n, x, y in zip(ends, a.origin, b.origin, strict=True)
            ):
                return Meeting.CLUSTER
            # Tiles at multiples of their size are the same or disjoint.
            apart = (0,) * len(ends)
        key = a.pattern, b.pattern, apart
        if key not in self._known:
            begins = [max(0, -n) for n in apart], [max(0, n) for n in apart]
            boxes = list(zip(a.extents, b.extents, *begins, strict=True))
            if any(i + m <= j or j + n <= i for m, n, i, j in boxes):
                self._known[key] = Meeting.NONE
                return Meeting.NONE
            ends = [max(m + i, n + j) for m, n, i, j in boxes]
            x = a.ranks(begins[0], ends)
            y = x if a.pattern == b.pattern and not any(apart) else b.ranks(begins[1], ends)
            self._known[key] = _of_threads(x, y, *groups)
        return self._known[key]


def _distance(a: Elements, b: Elements) -> tuple[int, ...] | None:
    """Return how far the second origin is behind the first; `None` if that is no number."""
    found = [construct.sub(y, x) for x, y in zip(a.origin, b.origin, strict=True)]
    known = tuple(n for n in found if isinstance(n, int))
    return known if len(known) == len(found) else None


def _of_threads(
    a: tuple[Ints, Ints], b: tuple[Ints, Ints], of_warps: bool, cta_threads: int
) -> Meeting:
    """Compare elements and their threads; with `of_warps` threads of a warp always differ.

    Both come in the order of their threads, so that of several writes of one number to a table the
    last one is that of the last thread, or backwards of the first: nothing need be sorted.
    """
    (places, threads), (at, others) = a, b
    if not len(places) or not len(at):
        return Meeting.NONE
    low, high = int(places.min()), int(places.max())
    is_counted = a is b and not of_warps and high - low < SPARSE * len(places)
    if is_counted and int(np.bincount(places - low).max()) == 1:
        return Meeting.NONE  # each element is accessed once
    inside = (at >= low) & (at <= high)
    places, at, others = places - low, at[inside] - low, others[inside]
    if high - low >= SPARSE * len(places):
        found, places = np.unique(places, return_inverse=True)
        near = np.minimum(np.searchsorted(found, at), len(found) - 1)
        met = found[near] == at
        at, others = near[met], others[met]
    most = np.full(int(places.max()) + 1, -1)
    most[places] = threads
    met = most[at] >= 0
    at, others = at[met], others[met]
    if not len(others):
        return Meeting.NONE
    least = np.empty_like(most)
    least[places[::-1]] = threads[::-1]
    first, last = least[at], most[at]
    for level, size in (
        (Meeting.NONE, 1),
        (Meeting.WARP, WARP_THREADS),
        (Meeting.CTA, cta_threads),
    ):
        x, y, z = (threads // size for threads in (first, last, others))
        if not (level is Meeting.NONE and of_warps) and np.all((x == z) & (y == z)):
            return level
    return Meeting.CLUSTER
