"""Labelled spaces of bit vectors: what linear layouts map from and to.

A space is a tuple of named dimensions, fastest first: the bits of the first are the least
significant of a flattened vector. Everything here is bookkeeping of which bit is whose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension of bit vectors: a name and how many bits."""

    name: str
    bits: int

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return 1 << self.bits

    def __str__(self) -> str:
        return f"{self.name}: {self.size}"


Dims: TypeAlias = tuple[Dim, ...]


def dim(name: str, size: Any) -> Dim:
    """Return a dimension by its size.

    Raises:
        LegoError: the size is no power of two.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1 or size & (size - 1):
        raise LegoError(f"linear layouts have sizes that are powers of two; {name} is {size!r}")
    return Dim(name, size.bit_length() - 1)


def dims_text(dims: Dims) -> str:
    """Return dimensions for a message: `j: 16, i: 4`."""
    return ", ".join(map(str, dims)) or "nothing"


def total_bits(dims: Dims) -> int:
    """Return how many bits all the dimensions have."""
    return sum(d.bits for d in dims)


def split(flat: int, dims: Dims) -> tuple[int, ...]:
    """Return the coordinates of a flattened vector."""
    coordinates = []
    for d in dims:
        coordinates.append(flat % d.size)
        flat >>= d.bits
    return tuple(coordinates)


def join(coordinates: Sequence[int], dims: Dims) -> int:
    """Return the flattened vector of coordinates."""
    flat = 0
    for x, d in zip(reversed(coordinates), reversed(dims), strict=True):
        flat = flat << d.bits | x
    return flat


def positions(dims: Dims) -> dict[str, range]:
    """Return where the bits of each dimension stand in a flattened vector."""
    found, start = {}, 0
    for d in dims:
        found[d.name] = range(start, start + d.bits)
        start += d.bits
    return found


# Label by label, a part of a space is the low bits of its dimensions.
def joined(low: Dims, high: Dims) -> Dims:
    """Return the space that has `low`'s bits, and above them, label by label, those of `high`."""
    bits = {d.name: d.bits for d in low}
    for d in high:
        bits[d.name] = bits.get(d.name, 0) + d.bits
    return tuple(Dim(name, n) for name, n in bits.items())


def without(dims: Dims, low: Dims) -> Dims:
    """Return what is left of a space above `low`; every dimension stays, even without bits."""
    bits = {d.name: d.bits for d in low}
    return tuple(Dim(d.name, d.bits - bits.get(d.name, 0)) for d in dims)


def bit_positions(dims: Dims, low: Dims) -> tuple[list[int], list[int]]:
    """Return the positions in `dims` of the bits of `low`, and those of all other bits."""
    where = positions(dims)
    taken = [position for d in low for position in where[d.name][: d.bits]]
    return taken, sorted(set(range(total_bits(dims))) - set(taken))


# Choices among dimensions.
def chosen(dims: Dims, names: Iterable[str] | None) -> tuple[Dims, list[int]]:
    """Return the dimensions of these names (`None`: all), in their order, and their bit positions.

    Raises:
        LegoError: there is none of that name.
    """
    if names is None:
        return dims, list(range(total_bits(dims)))
    where, known = positions(dims), {d.name: d for d in dims}
    picked = tuple(names)
    for name in picked:
        if name not in known:
            raise LegoError(f"there is no dimension '{name}' among ({dims_text(dims)})")
    return tuple(known[n] for n in picked), [position for n in picked for position in where[n]]


def reordered(dims: Dims, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names, if they are those of the dimensions in some order.

    Raises:
        LegoError: they are not.
    """
    if sorted(names) != sorted(d.name for d in dims):
        raise LegoError(f"({', '.join(names)}) is no order of ({dims_text(dims)})")
    return names


def recut(dims: Dims, sizes: Mapping[str, int]) -> Dims:
    """Return the same bits cut into dimensions of these sizes, fastest first.

    Raises:
        LegoError: the sizes are no powers of two, or their product is not that of `dims`.
    """
    cut = tuple(dim(name, size) for name, size in sizes.items())
    if total_bits(cut) != total_bits(dims):
        raise LegoError(
            f"({dims_text(dims)}) has {1 << total_bits(dims)} elements, "
            f"({dims_text(cut)}) has {1 << total_bits(cut)}"
        )
    return cut
