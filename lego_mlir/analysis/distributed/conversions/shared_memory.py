"""Conversions through shared memory: store, barrier, load, by the widest accesses that pay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lego_mlir.analysis.distributed.conversions.atoms import Atom, Atoms
from lego_mlir.analysis.distributed.conversions.matrices import (
    ROW_BYTES,
    Matrices,
    MatrixInstructions,
    plan_matrices,
)
from lego_mlir.analysis.distributed.conversions.memory_layouts import (
    SharedMemory,
    padded,
    swizzled,
    widths,
)
from lego_mlir.analysis.distributed.factors import REPLICA, Place, digits
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.memory_costs.bank_conflicts import wavefronts
from lego_mlir.hardware.limits import BANK_BYTES, MAX_ACCESS_BYTES, WARP_THREADS

if TYPE_CHECKING:
    Bools: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Side:
    """The accesses of one side.

    Attributes:
        vectors: the registers that each access moves, in the order of memory; of matrices, in the
            order of the instruction's registers.
        element_bytes: of an element.
        wavefronts: that all warps of a CTA take.
        ideal: the fewest that accesses of this width can take.
        matrices: how `ldmatrix` or `stmatrix` accesses them; `None` for vectors.
    """

    vectors: tuple[tuple[int, ...], ...]
    element_bytes: int
    wavefronts: int
    ideal: int
    matrices: Matrices | None = None

    @property
    def width(self) -> int:
        """Bytes of an access of a lane."""
        return len(self.vectors[0]) * self.element_bytes

    @property
    def scattered_words(self) -> int:
        """How many words a thread's loads bring to registers that do not follow one another.

        An access of several words fills consecutive registers. Where the layout's are others, each
        word is copied. (Smaller elements that a word does not hold together are taken out anyway.)
        """
        each = max(1, BANK_BYTES // self.element_bytes)
        found = 0
        for vector in self.vectors:
            words = [vector[k : k + each] for k in range(0, len(vector), each)]
            if all(map(_is_run, words)) and not _is_run(vector):
                found += len(words)
        return found

    def describe(self, verb: str) -> str:
        """Return the accesses in words; `verb` is load or store."""
        if self.matrices is None:
            return f"{len(self.vectors)} {verb}s of {self.width} bytes"
        name = ("ld" if verb == "load" else "st") + "matrix"
        trans = ".trans" if self.matrices.is_transposed else ""
        return f"{len(self.vectors)} {name}.x{self.width // 4}{trans}"

    def explain(self, verb: str) -> str:
        """Return the accesses and what they cost, in words; `verb` is load or store."""
        excess = self.wavefronts - self.ideal
        return (
            f"{self.describe(verb)}, {self.wavefronts} wavefronts of which {excess} for bank "
            "conflicts"
        )


def _is_run(registers: tuple[int, ...]) -> bool:
    """Return whether registers follow one another, from a multiple of their number on."""
    first, count = registers[0], len(registers)
    return first % count == 0 and registers == tuple(range(first, first + count))


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
    instructions: MatrixInstructions = MatrixInstructions(),  # noqa: B008 (a named tuple)
) -> SharedExchange:
    """Return the cheapest conversion through shared memory that the rules above give.

    Args:
        source: where elements are.
        target: where they go.
        atoms: their common digits, or None if they have none.
        element_bytes: 1, 2, 4 or 8.
        instructions: which matrix instructions there are.
    """
    if atoms is None:
        plans = [
            SharedExchange(
                memory,
                access_side(source, memory, element_bytes, store, is_store=True),
                access_side(target, memory, element_bytes, load, is_store=False),
            )
            for memory, store, load in padded(source, element_bytes)
        ]
    else:
        plans = _swizzled_plans(source, target, atoms, element_bytes, instructions)
    return min(
        plans,
        key=lambda p: (
            p.store.wavefronts + p.load.wavefronts,
            len(p.store.vectors) + len(p.load.vectors),
            p.load.scattered_words,
            p.shared_bytes,
        ),
    )


def _swizzled_plans(
    source: DistributedLayout,
    target: DistributedLayout,
    atoms: Atoms,
    element_bytes: int,
    instructions: MatrixInstructions,
) -> list[SharedExchange]:
    """Return the conversions through swizzled memories, by each pair of instructions that fits."""
    is_alone = source.ctas == 1  # the instructions access the CTA's own memory only
    stores = _matrices(source, element_bytes, has=instructions.store and is_alone, is_store=True)
    loads = _matrices(target, element_bytes, has=instructions.load and is_alone, is_store=False)
    lows = [*_vectors(atoms, element_bytes)]
    for side, found in enumerate((stores, loads)):
        for m in found:
            by_digit = {(a.source, a.target)[side]: a for a in atoms}
            if all(digit in by_digit for digit in m.row):
                lows.append([by_digit[digit] for digit in m.row])
    plans = []
    for low in lows:
        by_store = [None, *(m for m in stores if m.reads_rows_of(low, 0))]
        by_load = [None, *(m for m in loads if m.reads_rows_of(low, 1))]
        for store, load in product(by_store, by_load):
            phases = None if store is None else store.phase, None if load is None else load.phase
            memory = swizzled(source, atoms, low, element_bytes, phases)
            elements = widths(low)
            plans.append(
                SharedExchange(
                    memory,
                    access_side(source, memory, element_bytes, elements[0], store, is_store=True),
                    access_side(target, memory, element_bytes, elements[1], load, is_store=False),
                )
            )
    return plans


def _matrices(
    layout: DistributedLayout, element_bytes: int, *, has: bool, is_store: bool
) -> list[Matrices]:
    """Return the accesses of a side by matrices, plain and transposed, that there are."""
    planned = (
        plan_matrices(layout, element_bytes, is_transposed=t, is_store=is_store)
        for t in (False, True)
    )
    return [m for m in planned if m is not None] if has else []


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
def access_side(
    layout: DistributedLayout,
    memory: SharedMemory,
    element_bytes: int,
    elements: int,
    matrices: Matrices | None = None,
    *,
    is_store: bool,
) -> Side:
    """Return one side's accesses of so many elements, or by matrices, and what they cost."""
    if matrices is not None:
        return _by_matrices(memory, element_bytes, matrices)
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


def _by_matrices(memory: SharedMemory, element_bytes: int, matrices: Matrices) -> Side:
    """Return one side's accesses by matrices: eight lanes at a time give the addresses of rows."""
    rows = matrices.rows
    offsets = memory.offsets[1][rows.elements()[..., list(matrices.starts)]]
    requests = np.moveaxis(offsets, -1, -2) * element_bytes
    given = len(matrices.registers[0]) * element_bytes // 4 * 8  # lanes that give an address
    mask = np.broadcast_to(np.arange(WARP_THREADS) < given, requests.shape)
    cost = wavefronts(requests, ROW_BYTES, mask)
    by_cta, ideal = (x.reshape(rows.ctas, -1).sum(axis=-1) for x in (cost.executed, cost.ideal))
    return Side(matrices.registers, element_bytes, int(by_cta.max()), int(ideal.max()), matrices)


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
