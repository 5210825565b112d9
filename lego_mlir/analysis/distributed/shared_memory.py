"""Conversions through shared memory: where elements lie, and by which accesses.

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
from lego_mlir.analysis.distributed.atoms import Atom, Atoms
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, digits
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts
from lego_mlir.hardware.limits import (
    BANK_BYTES,
    BANK_LINE_BYTES,
    MAX_ACCESS_BYTES,
    WARP_THREADS,
)

if TYPE_CHECKING:
    Ints: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    Bools: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class SharedMemory:
    """Where a tile's elements lie in the shared memory of a CTA, or of each CTA of a cluster.

    Attributes:
        layout: from the tile's index to the flat offset, in elements, the CTAs' parts one after
            another.
        ctas: how many CTAs hold a part.
        interval: after so many elements there is padding; 0 for none.
        padding: elements of padding.
    """

    layout: Layout
    ctas: int = 1
    interval: int = 0
    padding: int = 0

    @cached_property
    def offsets(self) -> Ints:
        """The CTA's part and the offset in it of each element, in row-major order: `(2, n)`."""
        flat = np.asarray(self.layout.offsets(), np.int64).reshape(-1)
        cta, offset = np.divmod(flat, flat.size // self.ctas)
        if self.interval:
            offset = offset + offset // self.interval * self.padding
        return np.stack([cta, offset])

    @property
    def elements(self) -> int:
        """How many elements of memory a CTA needs, padding included."""
        return int(self.offsets[1].max()) + 1

    @property
    def text(self) -> str:
        """The layout's text, with the padding."""
        pad = f", {self.padding} elements of padding after {self.interval}" if self.interval else ""
        return self.layout.text + pad


@dataclass(frozen=True)
class Side:
    """The accesses of one side.

    Attributes:
        vectors: the registers that each access moves, in the order of memory.
        element_bytes: of an element.
        wavefronts: that all warps of a CTA take.
        ideal: the fewest that accesses of this width can take.
    """

    vectors: tuple[tuple[int, ...], ...]
    element_bytes: int
    wavefronts: int
    ideal: int

    @property
    def width(self) -> int:
        """Bytes of an access of a lane."""
        return len(self.vectors[0]) * self.element_bytes


@dataclass(frozen=True)
class SharedExchange:
    """A conversion through shared memory: store, barrier, load.

    Attributes:
        memory: where elements lie.
        store: the accesses of the source; of several copies only the first stores.
        load: the accesses of the target.
    """

    memory: SharedMemory
    store: Side
    load: Side

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a CTA."""
        return self.memory.elements * self.store.element_bytes


def plan_shared(
    source: DistributedLayout,
    target: DistributedLayout,
    atoms: Atoms | None,
    element_bytes: int,
) -> SharedExchange:
    """Return the cheapest conversion through shared memory that the rules above give.

    Args:
        source: where elements are.
        target: where they go.
        atoms: their common digits, or None if they have none.
        element_bytes: 1, 2, 4 or 8.
    """
    if atoms is None:
        candidates = _padded(source, element_bytes)
    else:
        candidates = (
            (_swizzled(source, atoms, low, element_bytes), *_widths(low))
            for low in _vectors(atoms, element_bytes)
        )
    plans = [
        SharedExchange(
            memory,
            _side(source, memory, element_bytes, store, is_store=True),
            _side(target, memory, element_bytes, load, is_store=False),
        )
        for memory, store, load in candidates
    ]
    return min(
        plans,
        key=lambda p: (
            p.store.wavefronts + p.load.wavefronts,
            len(p.store.vectors) + len(p.load.vectors),
            p.shared_bytes,
        ),
    )


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


# Vectors.
def _vectors(atoms: Atoms, element_bytes: int) -> Iterator[list[Atom]]:
    """Yield choices of the fastest bits: what both sides have in registers, then one side's."""
    most = (MAX_ACCESS_BYTES // element_bytes).bit_length() - 1
    bits = [a for a in atoms if a.size == 2]
    both = sorted(
        (a for a in bits if a.places == (Place.REGISTER, Place.REGISTER)),
        key=lambda a: a.source.weight + a.target.weight,
    )[:most]
    yield both
    for mine, other in ((0, 1), (1, 0)):
        # Registers of one side that are the first lanes of the other are no conflict for either.
        more = [
            a for a in bits if a.places[mine] is Place.REGISTER and a.places[other] is Place.LANE
        ]
        more.sort(key=lambda a: (a.source, a.target)[other].weight)
        for count in range(1, min(len(more), most - len(both)) + 1):
            yield [*both, *more[:count]]


def _widths(low: list[Atom]) -> tuple[int, int]:
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
def _swizzled(
    source: DistributedLayout, atoms: Atoms, low: list[Atom], element_bytes: int
) -> SharedMemory:
    """Return the memory whose fastest bits are given."""
    store, load = _widths(low)
    row_bits = (BANK_LINE_BYTES // element_bytes).bit_length() - 1
    bits = [a for a in atoms if a.size == 2 and a.source.place is not Place.CTA]
    free = [a for a in bits if a not in low]
    in_source = [a for a in free if _in_phase(a, 0, store * element_bytes)]
    in_target = [a for a in free if _in_phase(a, 1, load * element_bytes)]
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
    return SharedMemory(layout, prod(a.size for a in ctas))


def _in_phase(atom: Atom, side: int, width: int) -> bool:
    """Return whether an atom is among the lanes of a phase, for accesses of `width` bytes a lane.

    A request of more than 4 bytes a lane runs in phases of 16 or 8 lanes.
    """
    digit = (atom.source, atom.target)[side]
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


def _padded(
    source: DistributedLayout, element_bytes: int
) -> Iterator[tuple[SharedMemory, int, int]]:
    """Yield row-major memories in every order of dimensions, with paddings, and the widths 1."""
    rank = source.rank
    cta = [f for _, f in _cta_factors(source)]
    if cta:
        # Parts of CTAs are not rows of the tile in general: order factors of CTAs first.
        yield SharedMemory(_by_ctas(source), prod(f.size for f in cta)), 1, 1
        return
    words = max(1, BANK_BYTES // element_bytes)
    for order in permutations(range(rank)):
        layout = OrderBy(RegP(list(source.shape), list(order)))
        for padding in _PADDING:
            row = source.shape[order[-1]]
            yield SharedMemory(layout, 1, row if padding else 0, padding * words), 1, 1


def _cta_factors(source: DistributedLayout) -> list[tuple[int, Factor]]:
    return [(k, f) for k, f in enumerate(source.places[Place.CTA]) if f.dim != REPLICA]


def _by_ctas(source: DistributedLayout) -> Layout:
    """Return the memory in the order of the source's places, each CTA's part together."""
    order = [f for place in source.places for f in place if f.dim != REPLICA]
    logical = sorted(order, key=lambda f: (f.dim, -f.stride))
    return OrderBy(RegP([f.size for f in logical], [logical.index(f) for f in order])).GroupBy(
        list(source.shape)
    )


# Accesses.
def _side(
    layout: DistributedLayout,
    memory: SharedMemory,
    element_bytes: int,
    elements: int,
    *,
    is_store: bool,
) -> Side:
    """Return one side's accesses of so many elements, and what they cost."""
    offsets = memory.offsets[1][layout.elements()]
    # Copies in registers are stored once; loads fetch each of them.
    first = offsets[0, 0, 0]
    order = np.argsort(first, kind="stable")
    if is_store:
        order = order[np.unique(first[order], return_index=True)[1]]
        vectors = order.reshape(-1, elements)
    else:
        copies = first.size // np.unique(first).size
        vectors = order.reshape(-1, elements, copies).swapaxes(1, 2).reshape(-1, elements)
    requests = np.moveaxis(offsets[..., vectors[:, 0]], -1, -2) * element_bytes
    active = _storing(layout) if is_store else np.ones(layout.sizes[:3], np.bool_)
    mask = np.broadcast_to(active[:, :, None, :], requests.shape)
    cost = wavefronts(requests, elements * element_bytes, mask)
    by_cta = cost.executed.reshape(layout.ctas, -1).sum(axis=-1)
    ideal = cost.ideal.reshape(layout.ctas, -1).sum(axis=-1)
    listed = tuple(tuple(int(r) for r in v) for v in vectors)
    return Side(listed, element_bytes, int(by_cta.max()), int(ideal.max()))


def _storing(layout: DistributedLayout) -> Bools:
    """Return which threads store: of copies the first, but every CTA has its own memory."""
    active = np.ones(layout.sizes[:3], np.bool_)
    for place in (Place.WARP, Place.LANE):
        factors = layout.places[place]
        numbers = np.arange(layout.sizes[place])
        for f, digit in zip(factors, digits(factors, numbers), strict=True):
            if f.dim == REPLICA:
                shape = [1, 1, 1]
                shape[place] = -1
                active &= (np.asarray(digit) == 0).reshape(shape)
    return active
