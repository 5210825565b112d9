"""Accesses of a tile in shared memory that has a layout of its own, such as wgmma's operands.

Registers that lie one after another in memory, in all threads, are accessed together; where
`ldmatrix` or `stmatrix` fits and takes fewer wavefronts, it does it.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed.conversions.matrices import (
    ROW_BYTES,
    Matrices,
    MatrixInstructions,
    plan_matrices,
)
from lego_mlir.analysis.distributed.conversions.memory_layouts import SharedMemory
from lego_mlir.analysis.distributed.conversions.shared_memory import Side, access_side
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.hardware.limits import BANK_BYTES, BANK_LINE_BYTES, MAX_ACCESS_BYTES

if TYPE_CHECKING:
    Ints: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@lru_cache(maxsize=1 << 10)
def plan_store(
    layout: DistributedLayout,
    memory: Layout,
    element_bytes: int,
    instructions: MatrixInstructions = MatrixInstructions(),  # noqa: B008 (a named tuple)
) -> Side:
    """Return how the threads of a CTA store a tile to shared memory.

    Args:
        layout: of the tile in registers, of one CTA. One of the threads that hold an element
            stores it.
        memory: from the tile's index to the offset of the element.
        element_bytes: 1, 2, 4 or 8.
        instructions: which matrix instructions there are.
    """
    shared = SharedMemory(memory, layout.shape)
    width = _width(layout, shared.offsets[1], element_bytes)
    sides = [access_side(layout, shared, element_bytes, width, is_store=True)]
    for transposed in (False, True) if instructions.store else ():
        found = plan_matrices(layout, element_bytes, is_transposed=transposed, is_store=True)
        if found is not None and holds_rows(shared.offsets[1], found, element_bytes):
            sides.append(access_side(layout, shared, element_bytes, 0, found, is_store=True))
    return min(sides, key=lambda side: (side.wavefronts, len(side.vectors)))


def estimate_store(layout: DistributedLayout, memory: Layout, element_bytes: int) -> int:
    """Return about how many wavefronts `plan_store` takes, without choosing its accesses.

    Lanes store whole words where they hold neighbours in memory; of smaller elements each one
    takes the place of a word. Bank conflicts, of which a swizzle leaves few, are not counted.

    Args:
        layout: of the tile in registers, of one CTA.
        memory: from the tile's index to the offset of the element.
        element_bytes: 1, 2, 4 or 8.
    """
    dim = _contiguous_dim(memory)
    held = 1 if dim is None else layout.contiguous(dim)
    filled = min(BANK_BYTES, held * element_bytes)
    return prod(layout.shape) * element_bytes * BANK_BYTES // (filled * BANK_LINE_BYTES)


@lru_cache(maxsize=1 << 10)
def _contiguous_dim(memory: Layout) -> int | None:
    """Return the dimension along which the first elements lie one after another."""
    zero = [0] * memory.rank
    first = memory.apply(*zero)
    for dim in range(memory.rank):
        if memory.dims[dim] > 1:
            step = memory.apply(*(int(d == dim) for d in range(memory.rank)))
            if step - first == 1:
                return dim
    return None


def holds_rows(offsets: Ints, matrices: Matrices, element_bytes: int) -> bool:
    """Return whether the rows of matrices are 16 aligned bytes of memory each.

    Args:
        offsets: of the tile's elements, in row-major order.
        matrices: the accesses.
        element_bytes: of an element.
    """
    return _are_vectors(offsets[matrices.rows.elements()], ROW_BYTES // element_bytes)


def _width(layout: DistributedLayout, offsets: Ints, element_bytes: int) -> int:
    """Return the most elements of a vector, in the order of the first thread's registers."""
    held = offsets[layout.elements()]
    _, order = np.unique(held[0, 0, 0], return_index=True)
    most = MAX_ACCESS_BYTES // element_bytes
    widths = (most >> k for k in range(most.bit_length()))
    return next(w for w in widths if len(order) % w == 0 and _are_vectors(held[..., order], w))


def _are_vectors(offsets: Ints, width: int) -> bool:
    """Return whether each `width` offsets lie one after another, from a multiple of it on."""
    vectors = offsets.reshape(*offsets.shape[:-1], -1, width)
    first = vectors[..., :1]
    return bool(not (first % width).any() and (vectors == first + np.arange(width)).all())
