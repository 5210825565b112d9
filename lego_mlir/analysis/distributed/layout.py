"""The class of distributed layouts: where CTAs, warps and lanes hold a tile's elements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from lego_mlir.analysis.distributed import factors as mixed
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, Places
from lego_mlir.analysis.distributed.verify import check_bijection
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MAX_CLUSTER_CTAS, MAX_CTA_THREADS, WARP_THREADS

if TYPE_CHECKING:
    from lego_mlir.algebra import Layout

    Ints: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

Shape: TypeAlias = tuple[int, ...]

ENUMERATED = 1 << 22
"""The most positions of a layout that are enumerated."""


class Position(NamedTuple):
    """A register of a thread; integers, or arrays of one shape."""

    cta: Any
    warp: Any
    lane: Any
    register: Any


class Element(NamedTuple):
    """An element of a tile, and which of its copies; integers, or arrays of one shape."""

    coordinates: tuple[Any, ...]
    replica: Any


@dataclass(frozen=True)
class DistributedLayout:
    """A bijection between (element of a tile, replica) and (CTA, warp, lane, register).

    It is held as a table of size factors (`factors`), in one canonical form: layouts that hold the
    same elements in the same places are equal and have the same text. Copies of an element are
    interchangeable, so replicas are numbered as the hardware counts: the fastest replica factor is
    the one of the fastest register or lane.

    Attributes:
        shape: the shape of the tile.
        places: the factors of CTAs, warps, lanes and registers, in this order, each slowest first.

    Raises:
        LegoError: lanes are not 32, there are more warps or CTAs than hardware has, or the factors
            are no bijection; names the positions that clash, or an element that nobody holds.
    """

    shape: Shape
    places: Places

    def __post_init__(self) -> None:
        sizes: tuple[Any, ...] = self.shape  # it may come from anywhere
        for n in sizes:
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise LegoError(f"a tile has sizes of at least 1, not {n!r}")
        for place, given in zip(Place, self.places, strict=True):
            for f in given:
                if not REPLICA <= f.dim < len(self.shape):
                    raise LegoError(
                        f"a {place.word} factor counts along dimension {f.dim}, but the tile has "
                        f"the shape {list(self.shape)}"
                    )
                if f.size < 1 or f.stride < 1:
                    raise LegoError(
                        f"a {place.word} factor along dimension {f.dim} has size {f.size} and "
                        f"stride {f.stride}; both are at least 1"
                    )
        object.__setattr__(self, "places", mixed.canonical(self.places))
        _check_threads(*self.sizes[:3])
        check_bijection(self.shape, self.places)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash, computed once: layouts are the keys of many caches."""
        return hash((self.shape, self.places))

    @staticmethod
    def of(
        shape: Iterable[int],
        *,
        ctas: Iterable[Factor] = (),
        warps: Iterable[Factor] = (),
        lanes: Iterable[Factor],
        registers: Iterable[Factor] = (),
    ) -> DistributedLayout:
        """Return the layout of these factors, each place slowest first.

        Raises:
            LegoError: as the class.
        """
        places = (tuple(ctas), tuple(warps), tuple(lanes), tuple(registers))
        return DistributedLayout(tuple(shape), places)

    @staticmethod
    def parse(text: str, shape: Iterable[int]) -> DistributedLayout:
        """Read a layout's text, in the notation of `#lego.layout<"...">`.

        Args:
            text: a chain of RegP, Row and Col whose first OrderBy is the physical space:
                `OrderBy(Row(warps, 32, registers))`, or `OrderBy(Row(ctas, warps, 32, registers))`.
            shape: the shape of the tile. The logical space is this shape, and one last dimension
                of replicas where there are any.

        Raises:
            LegoError: the text is no such layout.
        """
        from lego_mlir.analysis.distributed.text import parse

        return parse(text, tuple(shape))

    # What it is.
    @cached_property
    def sizes(self) -> tuple[int, int, int, int]:
        """The numbers of CTAs, warps, lanes and registers."""
        ctas, warps, lanes, registers = map(mixed.size_of, self.places)
        return ctas, warps, lanes, registers

    @property
    def ctas(self) -> int:
        """The number of CTAs."""
        return self.sizes[Place.CTA]

    @property
    def warps(self) -> int:
        """The number of warps of a CTA."""
        return self.sizes[Place.WARP]

    @property
    def registers(self) -> int:
        """The number of elements that a thread holds, copies included."""
        return self.sizes[Place.REGISTER]

    @property
    def threads(self) -> int:
        """The number of threads of all CTAs."""
        return prod(self.sizes[:3])

    @property
    def rank(self) -> int:
        """The number of dimensions of the tile."""
        return len(self.shape)

    @cached_property
    def replicas(self) -> int:
        """How many copies of each element there are."""
        return prod(f.size for place in self.places for f in place if f.dim == REPLICA)

    @cached_property
    def is_power_of_two(self) -> bool:
        """Whether all sizes are powers of two, so that it is a linear layout over F2, too."""
        return all(f.size & (f.size - 1) == 0 for place in self.places for f in place)

    def factors_of(self, dim: int) -> tuple[tuple[Place, Factor], ...]:
        """Return the factors of a dimension (or `REPLICA`), each with its place, slowest first."""
        found = [(p, f) for p, fs in zip(Place, self.places, strict=True) for f in fs]
        return tuple(sorted((x for x in found if x[1].dim == dim), key=lambda x: -x[1].stride))

    def contiguous(self, dim: int) -> int:
        """Return how many elements next to each other along `dim` each thread holds.

        It is the widest vector of a memory that is contiguous along `dim`, if registers may be
        taken in any order.
        """
        held = 1
        for place, f in reversed(self.factors_of(dim)):
            if place is not Place.REGISTER:
                break
            held = f.span
        return held

    # The text.
    @cached_property
    def layout(self) -> Layout:
        """The layout from (index of the tile, replica) to the flat position, in canonical form."""
        from lego_mlir.analysis.distributed.text import to_layout

        return to_layout(self)

    @property
    def text(self) -> str:
        """The canonical text: equal layouts of one shape, and only those, have equal texts."""
        return self.layout.text

    def __str__(self) -> str:
        return self.text

    def table(self) -> str:
        """Return the factors for people, a line for each place.

        For example, of the accumulator of mma.m16n8:

            lane      8 along dim 0, 4 along dim 1 by 2
            register  2 along dim 0 by 8, 2 along dim 1
        """
        lines = []
        for place, given in zip(Place, self.places, strict=True):
            words = [
                f"{f.size} copies"
                if f.dim == REPLICA
                else f"{f.size} along dim {f.dim}" + (f" by {f.stride}" if f.stride > 1 else "")
                for f in given
            ]
            if words:
                lines.append(f"{place.word:<9} {', '.join(words)}")
        return "\n".join(lines)

    # What it does.
    def apply(self, cta: Any, warp: Any, lane: Any, register: Any) -> Element:
        """Return which element a register holds, and which of its copies that is.

        Args:
            cta: the CTA's number in the cluster; like the others, an int or an array of ints.
            warp: the warp's number in the CTA.
            lane: the lane's number in the warp.
            register: the register's number in the thread.

        Raises:
            LegoError: a number is out of range.
        """
        numbers = Position(cta, warp, lane, register)
        index = [_zero(numbers)] * (self.rank + 1)
        for place, given, number in zip(Place, self.places, numbers, strict=True):
            _check_range(place.word, number, self.sizes[place])
            for f, digit in zip(given, mixed.digits(given, number), strict=True):
                index[f.dim] = index[f.dim] + digit * f.stride  # REPLICA is the last entry
        return Element(tuple(index[:-1]), index[-1])

    def inverse(self, index: Iterable[Any], replica: Any = 0) -> Position:
        """Return the register that holds a copy of an element.

        Args:
            index: the element's index, one value a dimension: ints or arrays of ints.
            replica: which of its copies.

        Raises:
            LegoError: the index does not have one value a dimension, or is out of range.
        """
        values = [*index, replica]
        if len(values) != self.rank + 1:
            raise LegoError(f"an index of the tile {list(self.shape)} has {self.rank} values")
        for k, (x, n) in enumerate(zip(values, (*self.shape, self.replicas), strict=True)):
            _check_range(f"coordinate {k}" if k < self.rank else "replica", x, n)
        numbers = []
        for given in self.places:
            number = _zero(values)
            for f in given:
                number = number * f.size + values[f.dim] // f.stride % f.size
            numbers.append(number)
        return Position(*numbers)

    def elements(self) -> Ints:
        """Return the row-major number of the element in each register.

        Returns:
            An int64 array of shape `(ctas, warps, 32, registers)`.

        Raises:
            LegoError: there are too many to enumerate.
        """
        if prod(self.sizes) > ENUMERATED:
            raise LegoError(
                f"a layout of {prod(self.sizes)} positions is not enumerated; {ENUMERATED} are the "
                "most"
            )
        flat = np.zeros((), np.int64)
        for k, given in enumerate(self.places):
            number = np.arange(self.sizes[k])
            part = np.zeros_like(number)
            for f, digit in zip(given, mixed.digits(given, number), strict=True):
                if f.dim != REPLICA:
                    part += digit * (f.stride * prod(self.shape[f.dim + 1 :]))
            flat = flat[..., None] + part
        return flat


def _check_threads(ctas: int, warps: int, lanes: int) -> None:
    """Refuse numbers of threads that no cluster has."""
    if lanes != WARP_THREADS:
        raise LegoError(
            f"a warp has {WARP_THREADS} lanes, the layout {lanes}",
            hint="lanes that hold copies are a factor of replicas",
        )
    most = MAX_CTA_THREADS // WARP_THREADS
    for what, number, limit in (("warps", warps, most), ("CTAs", ctas, MAX_CLUSTER_CTAS)):
        if number > limit:
            raise LegoError(f"the layout has {number} {what}; {limit} are the most")


def _zero(numbers: Iterable[Any]) -> Any:
    """Return 0, or an array of zeros of the shape to which the numbers broadcast."""
    found = list(numbers)
    if all(isinstance(x, int) for x in found):
        return 0
    shape = np.broadcast_shapes(*(np.shape(x) for x in found))
    return np.zeros(shape, np.int64) if shape else 0


def _check_range(what: str, x: Any, n: int) -> None:
    """Refuse a number, or an array with a number, outside of [0, n)."""
    if isinstance(x, int):  # numbers of one thread are frequent, and NumPy is slow on them
        is_outside = not 0 <= x < n
    else:
        is_outside = bool(np.size(x)) and not 0 <= np.min(x) <= np.max(x) < n
    if is_outside:
        shown = x if np.ndim(x) == 0 else f"between {np.min(x)} and {np.max(x)}"
        raise LegoError(f"{what} is {shown}, not in [0, {n})")


def same_threads(a: DistributedLayout, b: DistributedLayout) -> bool:
    """Return whether two layouts are of the same numbers of CTAs and warps."""
    return a.sizes[:2] == b.sizes[:2]
