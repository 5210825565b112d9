"""An interpreter of conversion plans on arrays: what hardware would do, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lego_mlir.analysis.distributed import Conversion, DistributedLayout
from lego_mlir.analysis.distributed.conversions.clusters import Kind, OfCluster
from lego_mlir.analysis.distributed.conversions.matrices import Matrices
from lego_mlir.analysis.distributed.conversions.memory_layouts import SharedMemory, owning_cta

EMPTY = -1
"""What a register holds before anything is written to it."""


def registers_of(layout: DistributedLayout, values: np.ndarray) -> np.ndarray:
    """Return what the registers of a layout hold: (ctas, warps, 32, registers)."""
    return np.asarray(values).reshape(-1)[layout.elements()]


def run(plan: Conversion, held: np.ndarray) -> np.ndarray:
    """Return the target's registers after a conversion of the source's."""
    if plan.registers is not None:
        return held[..., list(plan.registers)]
    found = np.full(plan.target.sizes, EMPTY, held.dtype)
    cta, warp, lane = np.indices(plan.target.sizes[:3])
    if plan.exchange is not None:
        for shuffles in plan.exchange.rounds:
            other = shuffles.lane.at(cta, warp, lane)
            assert ((other >= 0) & (other < 32)).all()
            for word in shuffles.words:
                for sent, received in zip(word.sent, word.received, strict=True):
                    # Every lane supplies one register; every lane reads one lane's.
                    supplied = held[cta, warp, lane, sent.at(cta, warp, lane)]
                    values = supplied[cta, warp, other]
                    for copy in received:
                        found[cta, warp, lane, copy.at(cta, warp, lane)] = values
        return found
    if plan.pieces is not None and plan.pieces.kind is Kind.GATHER:
        return _gathered(plan.pieces, held, found)
    if plan.pieces is not None:
        own = replace(plan, source=plan.pieces.source, target=plan.pieces.target, pieces=None)
        return np.concatenate([run(own, held[k : k + 1]) for k in range(len(held))])
    assert plan.shared is not None
    return _through_memory(plan, held, found)


def _gathered(pieces: OfCluster, held: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Have each CTA send its part of a piece to those whose numbers differ in the moved digits."""
    ctas = np.stack(np.unravel_index(np.arange(len(held)), pieces.digits), -1)
    moved, group = np.array(pieces.moved), pieces.source.elements()
    loads = pieces.target.elements()[0]
    for reader, own in enumerate(ctas):
        buffer = np.full(group.max() + 1, EMPTY, held.dtype)
        for sender, other in enumerate(ctas):
            if (own == other)[~moved].all():
                part = np.ravel_multi_index(other[moved], np.array(pieces.digits)[moved])
                buffer[group[part]] = held[sender]
        found[reader] = buffer[loads]
    return found


def _through_memory(plan: Conversion, held: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Store vectors at the address of their first element, and load them likewise."""
    assert plan.shared is not None
    memory = plan.shared.memory
    buffers = np.full((plan.source.ctas, memory.elements), EMPTY, held.dtype)

    def addresses(layout: DistributedLayout, vector: tuple[int, ...]) -> tuple[Any, Any]:
        part, offset = memory.offsets[:, layout.elements()[..., vector[0]]]
        assert (offset % len(vector) == 0).all()
        return part, offset[..., None] + np.arange(len(vector))

    cta = np.arange(plan.source.ctas)[:, None, None, None]
    store, load = plan.shared.store, plan.shared.load
    if store.matrices is not None:
        for words, at in _matrix_accesses(store.matrices, memory, store.element_bytes):
            buffers[cta, at] = held[..., words]
    else:
        for vector in store.vectors:
            _, at = addresses(plan.source, vector)
            buffers[cta, at] = held[..., list(vector)]
    if load.matrices is not None:
        for words, at in _matrix_accesses(load.matrices, memory, load.element_bytes):
            found[..., words] = buffers[cta, at]
        return found
    for vector in load.vectors:
        part, at = addresses(plan.target, vector)
        owner = owning_cta(plan.source, part, cta[..., 0])
        found[..., list(vector)] = buffers[owner[..., None], at]
    return found


def _matrix_accesses(
    matrices: Matrices, memory: SharedMemory, size: int
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield the registers and the offsets that each lane moves, matrix by matrix, as the ISA says.

    Lane 8 m + r gives the address of row r of matrix m, 16 bytes. Plain, lane l moves word l % 4 of
    row l / 4; transposed, the elements l / 4 of the rows 2 (l % 4) and 2 (l % 4) + 1.
    """
    given = memory.offsets[1][matrices.rows.elements()]
    per_word, per_row = 4 // size, 16 // size
    lane = np.arange(32)
    for start, registers in zip(matrices.starts, matrices.registers, strict=True):
        address = given[..., start]
        assert (address % per_row == 0).all()
        for m in range(len(registers) // per_word):
            row = address[..., 8 * m : 8 * m + 8]
            if matrices.is_transposed:
                at = np.stack([row[..., 2 * (lane % 4) + x] + lane // 4 for x in (0, 1)], -1)
            else:
                first = row[..., lane // 4] + lane % 4 * per_word
                at = first[..., None] + np.arange(per_word)
            yield list(registers[m * per_word : (m + 1) * per_word]), at
