"""Two layouts of one tile in common digits: what a conversion moves from where to where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, cut_all, weights
from lego_mlir.analysis.distributed.layout import DistributedLayout


class Digit(NamedTuple):
    """A digit of a place's number: `number // weight % size`."""

    place: Place
    weight: int
    size: int


@dataclass(frozen=True, slots=True)
class Atom:
    """A digit of the element's index that is one digit of a place in both layouts.

    Sizes are 2, or odd: a factor of 12 is two bits and a digit of 3.

    Attributes:
        factor: its dimension, size and stride in the tile.
        source: the digit in the source that it is.
        target: the digit in the target that it is.
    """

    factor: Factor
    source: Digit
    target: Digit

    @property
    def size(self) -> int:
        """How many values it has."""
        return self.factor.size

    @property
    def places(self) -> tuple[Place, Place]:
        """The places in source and target."""
        return self.source.place, self.target.place


Atoms: TypeAlias = tuple[Atom, ...]


def common_atoms(source: DistributedLayout, target: DistributedLayout) -> Atoms | None:
    """Return the digits that two layouts of one tile have in common, or None if they have none.

    They have none where sizes do not meet: a dimension of 6 that one of them divides into 2 by 3
    and the other into 3 by 2.
    """
    digits = []
    for mine, other in ((source, target), (target, source)):
        found: dict[tuple[int, int], tuple[int, Digit]] = {}
        for dim in range(mine.rank):
            borders = [f.stride for _, f in other.factors_of(dim)]
            for place in Place:
                factors = mine.places[place]
                for f, weight in zip(factors, weights(factors), strict=True):
                    if f.dim != dim:
                        continue
                    parts = cut_all([f], borders)
                    if parts is None:
                        return None
                    for part in parts:
                        at = Digit(place, weight * (part.stride // f.stride), part.size)
                        found[dim, part.stride] = part.size, at
        digits.append(found)
    of_source, of_target = digits
    atoms = []
    for (dim, stride), (size, digit) in of_source.items():
        whole = Atom(Factor(dim, size, stride), digit, of_target[dim, stride][1])
        atoms += list(_bits(whole))
    return tuple(atoms)


def _bits(atom: Atom) -> Iterator[Atom]:
    """Cut an atom into bits and, above them, an odd digit."""
    f, low = atom.factor, 1
    while f.size // low % 2 == 0:
        yield _part(atom, 2, low)
        low *= 2
    if f.size > low:
        yield _part(atom, f.size // low, low)


def _part(atom: Atom, size: int, low: int) -> Atom:
    f, a, b = atom.factor, atom.source, atom.target
    return Atom(
        Factor(f.dim, size, f.stride * low),
        Digit(a.place, a.weight * low, size),
        Digit(b.place, b.weight * low, size),
    )


def replica_bits(layout: DistributedLayout) -> list[int]:
    """Return the bits of the lane's number that tell copies apart."""
    lanes = layout.places[Place.LANE]
    return [
        weight.bit_length() - 1 + k
        for f, weight in zip(lanes, weights(lanes), strict=True)
        if f.dim == REPLICA
        for k in range(f.size.bit_length() - 1)
    ]


def stays(source: DistributedLayout, target: DistributedLayout, places: tuple[Place, ...]) -> bool:
    """Return whether no element has to leave its thread group to get where `target` has it.

    That is so if every digit of the source's places is the same digit of the same place in the
    target; what the source holds in copies is in every group anyway.

    Args:
        source: where elements are.
        target: where they go.
        places: for example CTA and warp, if they may change lanes.
    """
    for place in places:
        theirs = target.places[place]
        known = list(zip(theirs, weights(theirs), strict=True))
        mine = source.places[place]
        for f, weight in zip(mine, weights(mine), strict=True):
            if f.dim != REPLICA and not any(
                g.contains(f) and w * (f.stride // g.stride) == weight for g, w in known
            ):
                return False
    return True


def same_elements_in_threads(source: DistributedLayout, target: DistributedLayout) -> bool:
    """Return whether one choice of registers, the same in all threads, converts the layouts."""
    threads = (Place.CTA, Place.WARP, Place.LANE)
    return stays(source, target, threads) and stays(target, source, threads)
