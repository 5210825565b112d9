"""Conversions through shared memory: store, barrier, load, by the widest accesses that pay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lego_mlir.analysis.distributed.conversions.atoms import Atom, Atoms
from lego_mlir.analysis.distributed.conversions.memory_layouts import (
    SharedMemory,
    padded,
    swizzled,
    widths,
)
from lego_mlir.analysis.distributed.factors import REPLICA, Place, digits
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES

if TYPE_CHECKING:
    Bools: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


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
        candidates = padded(source, element_bytes)
    else:
        candidates = (
            (swizzled(source, atoms, low, element_bytes), *widths(low))
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
        # Registers of one side that are warps or the first lanes of the other are no conflict for
        # either. (What CTAs divide lies in their own memories.)
        more = [a for a in bits if a.places[mine] is Place.REGISTER]
        warps = [a for a in more if a.places[other] is Place.WARP]
        lanes = [a for a in more if a.places[other] is Place.LANE]
        lanes.sort(key=lambda a: (a.source, a.target)[other].weight)
        for chosen in (lanes, [*warps, *lanes]) if warps else (lanes,):
            for count in range(1, min(len(chosen), most - len(both)) + 1):
                yield [*both, *chosen[:count]]


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
