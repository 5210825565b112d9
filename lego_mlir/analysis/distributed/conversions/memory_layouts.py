"""Where a conversion's elements lie in shared memory.

The memory's layout is derived from the common digits of the two sides (papers/linear_layouts,
sections 5.4 and 9.2). A row is what all banks hold, 128 bytes. From the fastest bits on, it has

    vector    bits that are registers on both sides, or on one side and lanes on the other
    bank      the lanes of a phase on either side; a lane bit of the source alone and one of the
              target alone share a bank bit, as their XOR
    the rest  in rows, the target's bits of those pairs first

so the XOR is the `swizzle` of the layout notation, and no phase meets a bank twice unless there are
not enough bits. Lanes are always bits; digits of other sizes count rows or whole memories.

Where sizes do not meet there are no common digits. Then the tile lies row by row, in the order of
dimensions and with the padding that cost least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lego_mlir.algebra import GenP, Layout, OrderBy, RegP, Row, swizzle
from lego_mlir.analysis.distributed.conversions.atoms import Atom, Atoms, Digit
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, digits
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES, WARP_THREADS

if TYPE_CHECKING:
    Ints: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True)
class SharedMemory:
    """Where a tile's elements lie in the shared memory of a CTA, or of each CTA of a cluster.

    Attributes:
        layout: from the tile's index to the flat offset, in elements, the CTAs' parts one after
            another. Its dimensions may be larger than the tile's: the rest is padding.
        shape: of the tile.
        ctas: how many CTAs hold a part.
    """

    layout: Layout
    shape: tuple[int, ...]
    ctas: int = 1

    @cached_property
    def offsets(self) -> Ints:
        """The CTA's part and the offset in it of each element, in row-major order: `(2, n)`."""
        flat = np.asarray(self.layout.offsets(), np.int64)
        held = flat.reshape([int(n) for n in self.layout.dims])[tuple(map(slice, self.shape))]
        return np.stack(np.divmod(held.reshape(-1), flat.size // self.ctas))

    @property
    def elements(self) -> int:
        """How many elements of memory a CTA needs, padding included."""
        return int(self.offsets[1].max()) + 1

    @property
    def text(self) -> str:
        """The layout's text."""
        return self.layout.text


def owning_cta(source: DistributedLayout, part: Any, cta: Any) -> Any:
    """Return the CTA whose shared memory a thread reads for a part of the tile.

    Among CTAs that hold copies of the part it is the one nearest to the thread's own: their
    numbers agree in every digit that counts copies.

    Args:
        source: the layout of what was stored.
        part: the part's number, of `SharedMemory.offsets`; an int or an array.
        cta: the number of the reading CTA.
    """
    factors = source.places[Place.CTA]
    held = [f for f in factors if f.dim != REPLICA]
    parts = iter(digits(held, part))
    owner: Any = 0 * cta
    for f, own in zip(factors, digits(factors, cta), strict=True):
        owner = owner * f.size + (own if f.dim == REPLICA else next(parts))
    return owner


def widths(low: list[Atom]) -> tuple[int, int]:
    """Return the elements of an access of source and target: leading bits in its registers."""
    found = []
    for side in range(2):
        n = 1
        for a in low:
            if a.places[side] is not Place.REGISTER:
                break
            n *= 2
        found.append(n)
    return found[0], found[1]


# The swizzled layout.
def swizzled(
    source: DistributedLayout,
    atoms: Atoms,
    low: list[Atom],
    element_bytes: int,
    phases: tuple[frozenset[Digit] | None, frozenset[Digit] | None] = (None, None),
) -> SharedMemory:
    """Return the memory whose fastest bits are given.

    Args:
        source: where elements are.
        atoms: the common digits of source and target.
        low: the fastest bits.
        element_bytes: of an element.
        phases: for source and target the digits of a phase, where these are not the lanes of an
            access by vectors.
    """
    row_bits = (BANK_LINE_BYTES // element_bytes).bit_length() - 1
    bits = [a for a in atoms if a.size == 2 and a.source.place is not Place.CTA]
    free = [a for a in bits if a not in low]
    in_source, in_target = (
        [a for a in free if _in_phase(a, side, width * element_bytes, phases[side])]
        for side, width in enumerate(widths(low))
    )
    shared = [a for a in in_source if a in in_target]
    e = [a for a in in_source if a not in shared]
    f = [a for a in in_target if a not in shared]
    pairs = list(zip(e, f, strict=False))
    alone = [*e[len(pairs) :], *f[len(pairs) :]]
    room = row_bits - len(low)
    pairs, plain = pairs[:room], [*shared, *alone][: max(0, room - len(pairs))]
    # What the lanes leave of a row is filled; if only bits of pairs are left, these need no XOR.
    used = [*low, *(x for x, _ in pairs), *plain]
    others = [a for a in free if a not in used and a not in [y for _, y in pairs]]
    fill = others[: room - len(pairs) - len(plain)]
    while pairs and len(pairs) + len(plain) + len(fill) < room:
        x, y = pairs.pop()
        plain = [*plain, x, y]
    xored = [y for _, y in pairs]
    row = [*low, *(x for x, _ in pairs), *plain, *fill]
    rest = [*xored, *(a for a in bits if a not in row and a not in xored)]
    odd = [a for a in atoms if a.size != 2 and a.source.place is not Place.CTA]
    ctas = sorted((a for a in atoms if a.source.place is Place.CTA), key=lambda a: a.source.weight)
    fastest_first = [*row, *rest, *odd, *ctas]
    layout = _memory_layout(
        source.shape,
        [a.factor for a in reversed(fastest_first)],
        inner=(1 << len(rest), 1 << len(row)),
        vector=1 << len(low),
        phases=1 << len(pairs),
    )
    return SharedMemory(layout, source.shape, prod(a.size for a in ctas))


def _in_phase(atom: Atom, side: int, width: int, phase: frozenset[Digit] | None) -> bool:
    """Return whether an atom is among the digits of a phase, for accesses of `width` bytes a lane.

    A request of more than 4 bytes a lane runs in phases of 16 or 8 lanes.
    """
    digit = (atom.source, atom.target)[side]
    if phase is not None:
        return digit in phase
    lanes = WARP_THREADS * BANK_BYTES // max(BANK_BYTES, width)
    return digit.place is Place.LANE and digit.weight < lanes


def _memory_layout(
    shape: tuple[int, ...],
    order: list[Factor],
    *,
    inner: tuple[int, int],
    vector: int,
    phases: int,
) -> Layout:
    """Return the layout that permutes factors, slowest first in memory, and swizzles rows."""
    merged: list[Factor] = []
    for f in order:
        if merged and merged[-1].dim == f.dim and merged[-1].stride == f.span:
            f = Factor(f.dim, merged.pop().size * f.size, f.stride)
        merged.append(f)
    logical = sorted(merged, key=lambda f: (f.dim, -f.stride))
    outer = prod(f.size for f in merged) // prod(inner)
    permutation = RegP([f.size for f in logical] or [1], [logical.index(f) for f in merged] or [0])
    if phases == 1:
        return OrderBy(permutation).GroupBy(list(shape) or [1])
    block = GenP(list(inner), swizzle(vector, 1, phases))
    layout = OrderBy(Row(outer), block) if outer > 1 else OrderBy(block)
    return layout.OrderBy(permutation).GroupBy(list(shape))


# The padded layout.
_PADDING = (0, 1, 2, 4)
"""Paddings of a row that are tried, in vectors."""


def padded(
    source: DistributedLayout, element_bytes: int
) -> Iterator[tuple[SharedMemory, int, int]]:
    """Yield row-major memories in every order of dimensions, with paddings, and the widths 1."""
    rank = source.rank
    cta = [f for _, f in _cta_factors(source)]
    if cta:
        # Parts of CTAs are not rows of the tile in general: order factors of CTAs first.
        yield SharedMemory(_by_ctas(source), source.shape, prod(f.size for f in cta)), 1, 1
        return
    words = max(1, BANK_BYTES // element_bytes)
    for order in permutations(range(rank)):
        for padding in _PADDING:
            sizes = list(source.shape)
            sizes[order[-1]] += padding * words
            yield SharedMemory(OrderBy(RegP(sizes, list(order))), source.shape), 1, 1


def _cta_factors(source: DistributedLayout) -> list[tuple[int, Factor]]:
    return [(k, f) for k, f in enumerate(source.places[Place.CTA]) if f.dim != REPLICA]


def _by_ctas(source: DistributedLayout) -> Layout:
    """Return the memory in the order of the source's places, each CTA's part together."""
    order = [f for place in source.places for f in place if f.dim != REPLICA]
    logical = sorted(order, key=lambda f: (f.dim, -f.stride))
    return OrderBy(RegP([f.size for f in logical], [logical.index(f) for f in order])).GroupBy(
        list(source.shape)
    )
