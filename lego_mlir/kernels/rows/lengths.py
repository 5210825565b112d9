"""Lengths of rows that only the launch knows: classes of them, each with a kernel of its own.

A class has the lengths between two bounds, of which there are four to an octave, that the same
vectors divide. Its kernel has the tiles of its longest row, with masks for shorter ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import gcd

from lego_mlir.algebra import size_symbol
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelChoice, KernelSequence
from lego_mlir.frontend.host.argument_types import Parameter
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import Sym

COLUMNS = "N"
"""The name of a number of columns that the launch knows."""

_MOST, _ANY = (1 << 31) - 1, 1 << 20
"""The most columns, which have indices of 32 bits; and what their number is taken for if it may be
any."""

_STEPS, _POWERS, _LONGEST = 4, 256, 1 << 18
"""Bounds to an octave, beyond those that are powers of two; and the last one."""


@dataclass(frozen=True, slots=True)
class RowLengths:
    """The lengths of a class.

    Attributes:
        most: columns of the longest row.
        below: columns that the shortest row has more than; 0 if it may have any.
        multiple: what divides the number of columns.
    """

    most: int = _MOST
    multiple: int = 1
    below: int = 0

    @property
    def longest(self) -> int:
        """The columns that a kernel is made for."""
        return _ANY if self.most > _LONGEST else self.most

    @property
    def size(self) -> Sym:
        """The number of columns as a size of tensors."""
        return size_symbol(COLUMNS, (self.multiple,) if self.multiple > 1 else ())

    def text(self, divisor: int = 1) -> str:
        """Return the number of columns in types of tensors, divided by one of its divisors."""
        if divisor > 1:
            return f"{COLUMNS}/{divisor}"
        promised = f"{{{self.multiple}}}" if self.multiple > 1 else ""
        bounds = f"{self.below}|{self.most}" if self.below else f"{self.most}"
        return f"{COLUMNS}{promised}<={bounds}"


def bounds_of(*, has_statistics: bool) -> tuple[int, ...]:
    """Return the longest rows of each class that has a bound, ascending.

    Args:
        has_statistics: whether a tile has whole rows; else only short ones fill it together.
    """
    steps = _STEPS if has_statistics else 1
    return tuple(
        (1 << k) * (steps + step) // steps
        for k in range(4, _LONGEST.bit_length())
        for step in range(steps if _POWERS <= 1 << k < _LONGEST else 1)
    )


def powers_of_two(least: int, most: int) -> tuple[int, ...]:
    """Return the powers of two from one bound to another, the last that is too small left out."""
    return tuple(1 << k for k in range((least - 1).bit_length(), most.bit_length()))


def multiples_of(element_bytes: int) -> tuple[int, ...]:
    """Return what classes have of the divisors of lengths, descending: vectors of elements."""
    return tuple(reversed(powers_of_two(1, MAX_ACCESS_BYTES // element_bytes)))


def of_any_length(
    name: str,
    parameters: Mapping[str, Parameter],
    made: Callable[[RowLengths], Kernel | KernelSequence],
    bounds: tuple[int, ...],
    multiples: tuple[int, ...],
    limits: tuple[int, int] = (1, _MOST),
) -> KernelChoice:
    """Return the kernel of rows whose length only the launch knows.

    Args:
        name: of the kernel.
        parameters: the types of the arguments by name, in order.
        made: returns the kernel of a class of lengths.
        bounds: of the classes, ascending.
        multiples: powers of two, descending, of which the first that divides a length is that of
            its class; the last divides all.
        limits: the least and the greatest length. If no class has the latter, one more has it.
    """
    least, most = limits
    if bounds[-1] < most:
        bounds += (most,)
    ends = pairwise((0, *bounds))
    classes = [RowLengths(end, n, below) for below, end in ends for n in multiples]
    places = {n: place for place, n in enumerate(multiples)}
    unit, last = multiples[0], len(multiples) - 1

    def choose(columns: int) -> int:
        if not least <= columns <= most:
            raise LegoError(
                f"{name}: rows have {columns} columns; they may have {least} to {most}",
                hint="pass arrays with rows of these lengths",
            )
        place = places.get(gcd(columns, unit), last)
        return bisect_left(bounds, columns) * len(multiples) + place

    def explanation() -> str:
        divides = f", and whether {', '.join(map(str, multiples[:-1]))} divides it" * (last > 0)
        return f"a kernel for each {COLUMNS} of up to {', '.join(map(str, bounds))}{divides}"

    makers = [partial(made, lengths) for lengths in classes]
    return KernelChoice(name, parameters, (COLUMNS,), choose, makers, None, explanation)
