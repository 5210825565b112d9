"""The vectors in which the elements of a thread's registers are accessed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from lego_mlir.index import Int, construct
from lego_mlir.mlir.lowering.parts_access.offsets import Place


@dataclass(frozen=True, slots=True)
class Access:
    """Neighbours in memory that are accessed at once.

    Attributes:
        base: the offset of the first is this ...
        constant: ... plus this.
        lanes: for each neighbour the registers that hold it: more than one only of a load.
        guard: what the access depends on, the same for all.
    """

    base: Int
    constant: int
    lanes: tuple[tuple[int, ...], ...]
    guard: Hashable


def accesses(places: Sequence[Place], guards: Sequence[Hashable], widest: int) -> list[Access]:
    """Return the accesses of all registers, as wide as is proven to be right.

    Args:
        places: of the registers.
        guards: of the registers. Those of one access are equal.
        widest: the most elements of an access, a power of two. Memory begins at a multiple of it.
    """
    together: dict[tuple[Int, Hashable], dict[int, list[int]]] = {}
    for register, ((base, constant), guard) in enumerate(zip(places, guards, strict=True)):
        together.setdefault((base, guard), {}).setdefault(constant, []).append(register)
    found = []
    for (base, guard), at in together.items():
        most = _divisor(base, widest)
        left = sorted(at, reverse=True)
        while left:
            first, width = left[-1], most
            while first % width or any(k not in at for k in range(first, first + width)):
                width //= 2
            lanes = tuple(tuple(at[k]) for k in range(first, first + width))
            found.append(Access(base, first, lanes, guard))
            del left[-width:]
    return found


def _divisor(x: Int, most: int) -> int:
    """Return the greatest power of two up to `most` that is known to divide an expression."""
    while most > 1:
        rest = construct.mod(x, most)
        if isinstance(rest, int) and rest == 0:
            break
        most //= 2
    return most
