"""Copies of a tile in shared memory to another layout there, by `ldmatrix` and `stmatrix`.

Tensor cores read 8-bit operands along k only, and memory may have them along the other dimension:
such a tile is transposed on its way. An instruction moves matrices of 8 by 8 halves of a word, so
of 8-bit elements the transposed load leaves pairs that were neighbours in the source:

    load, transposed   lane 4 c + q has of matrix h the pair c of the rows 8 h + 2 q + 0 and 1
    in each lane       bytes of two words make two words of one half of the pairs each
    store              lane 4 c + q has 4 bytes of row 2 c, and of row 2 c + 1, of the target

The swizzle puts the rows 2 c of a target into half of the banks. So lanes with c >= 4 store their
two words the other way around, and eight lanes store even and odd rows, in all banks.

No element leaves its lane. What lies along the other dimension in between, here the row 8 h + 2 q +
e at place 4 q + 2 h + e, is the target's layout: any order of a row's elements can be had by it.

Source: PTX ISA, "ldmatrix" and "stmatrix" (figure of the fragment layout for 8x8 matrices).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np

from lego_mlir.algebra import GenP, Layout, OrderBy, Row, swizzle
from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.conversions.matrices import ROW_BYTES, Matrices, plan_matrices
from lego_mlir.analysis.distributed.conversions.memory_layouts import SharedMemory
from lego_mlir.analysis.distributed.conversions.shared_access import holds_rows
from lego_mlir.analysis.distributed.conversions.shared_memory import access_side
from lego_mlir.analysis.distributed.factors import Factor, Place
from lego_mlir.analysis.distributed.layout import DistributedLayout

_WORD_BYTES, _HALF_BYTES = 4, 2
_LAST_LANE_BIT = 16
_LANE_ROWS = 3
"""Bits of a lane's number that count the rows of a matrix, or the columns of a transposed one."""


class Exchanged(NamedTuple):
    """Words that change places.

    Attributes:
        lanes: the digit of a lane's number that is 1 where they do.
        register: the distance of the registers of `SharedCopy.stored` whose elements they have.
    """

    lanes: Digit
    register: int


@dataclass(frozen=True)
class SharedCopy:
    """How the warps of a role copy a tile.

    Attributes:
        loaded: where elements are when they are loaded.
        stored: the layout in which they are stored: the same threads hold them, in other registers.
        load: the loads of matrices.
        store: the stores of matrices.
        exchange: of two of a lane's words that change places in some lanes; `None` if none do.
    """

    loaded: DistributedLayout
    stored: DistributedLayout
    load: Matrices
    store: Matrices
    exchange: Exchanged | None = None

    def memory(self, target: Layout) -> Layout:
        """Return where the index of an element leads that is stored as if no words were exchanged.

        Args:
            target: the target, whose last dimensions are the tile's.
        """
        if self.exchange is None:
            return target
        pairs = OrderBy(Row(int(target.size) // 16), GenP([8, 2], swizzle(1, 4, 2)))
        return target.compose(pairs.GroupBy([int(n) for n in target.dims]))


@lru_cache(maxsize=1 << 6)
def plan_shared_copy(
    source: Layout, target: Layout, element_bytes: int, warps: int
) -> SharedCopy | None:
    """Return how warps copy a tile between two layouts in shared memory; `None` if they cannot.

    Args:
        source: from the tile's index to the element's offset.
        target: the same of where it goes.
        element_bytes: of an element.
        warps: that copy.
    """
    if element_bytes > _HALF_BYTES or source.dims != target.dims:
        return None
    shape = tuple(int(n) for n in source.dims)
    taken, needed = (_row(memory, ROW_BYTES // element_bytes) for memory in (source, target))
    if taken is None or needed is None:
        return None
    is_transposed = not set(taken) & set(needed)
    if not is_transposed and taken != needed:
        return None
    layouts = _layouts(shape, taken, needed, element_bytes, warps, is_transposed=is_transposed)
    if layouts is None:
        return None
    loaded, stored = layouts
    load = plan_matrices(loaded, element_bytes, is_transposed=is_transposed, is_store=False)
    store = plan_matrices(stored, element_bytes, is_transposed=False, is_store=True)
    if load is None or store is None:
        return None
    for memory, matrices in ((source, load), (target, store)):
        if not holds_rows(np.asarray(memory.offsets()).reshape(-1), matrices, element_bytes):
            return None
    found = SharedCopy(loaded, stored, load, store)
    if not is_transposed or element_bytes == _HALF_BYTES or taken[0].dim != len(shape) - 1:
        return found
    pair = Exchanged(Digit(Place.LANE, _LAST_LANE_BIT, 2), 1 << len(needed) - 2)
    other = replace(found, exchange=pair)
    return min(found, other, key=lambda plan: _wavefronts(plan, target, element_bytes))


def _wavefronts(plan: SharedCopy, target: Layout, element_bytes: int) -> int:
    """Return what the stores of a plan cost."""
    memory = SharedMemory(plan.memory(target), plan.stored.shape)
    return access_side(plan.stored, memory, element_bytes, 0, plan.store, is_store=True).wavefronts


def _row(memory: Layout, length: int) -> tuple[Factor, ...] | None:
    """Return the bits of the tile's index that count the elements of a row, fastest first.

    Args:
        memory: the layout in shared memory.
        length: elements of a row, which are neighbours.
    """
    offsets = np.asarray(memory.offsets())
    at = np.argsort(offsets.reshape(-1))[:length]
    if len(at) < length or at[0]:
        return None
    found = []
    for k in range(length.bit_length() - 1):
        place = np.unravel_index(at[1 << k], offsets.shape)
        dims = [d for d, x in enumerate(place) if x]
        if len(dims) != 1:
            return None
        found.append(Factor(dims[0], 2, int(place[dims[0]])))
    return tuple(found)


def _layouts(
    shape: tuple[int, ...],
    taken: Sequence[Factor],
    needed: Sequence[Factor],
    element_bytes: int,
    warps: int,
    *,
    is_transposed: bool,
) -> tuple[DistributedLayout, DistributedLayout] | None:
    """Return the layouts of the elements between the load and the store.

    Args:
        shape: of the tile.
        taken: the bits of a row of the source, fastest first.
        needed: the bits of a row of the target.
        element_bytes: of an element.
        warps: that divide the tile.
        is_transposed: whether the bits differ.
    """
    word = (_WORD_BYTES // element_bytes).bit_length() - 1
    halves = (_HALF_BYTES // element_bytes).bit_length() - 1 if is_transposed else 0
    rest = _rest(shape, (*taken, *(needed if is_transposed else ())))
    if rest is None:
        return None
    own, other = taken[0].dim, needed[0].dim
    if is_transposed:
        lane_rows = [*taken[halves:]]
    else:
        lane_rows, rest = _split_rows(rest, own)
    if len(lane_rows) != _LANE_ROWS:
        return None
    divided, left = [], warps
    for dim in dict.fromkeys((own, *range(len(shape)))):
        f = rest[dim]
        n = gcd(f.size, left)
        divided.append(Factor(dim, n, f.stride))
        rest[dim], left = Factor(dim, f.size // n, f.stride * n), left // n
    if left > 1:
        return None
    slow = [rest[d] for d in range(len(shape)) if d != other] + [rest[other]]
    lanes = [*reversed(lane_rows), *reversed(needed[word:])]
    bits = needed[:word]
    pairs = list(taken[:halves])
    loaded = [*reversed(bits[1:]), bits[0], *reversed(pairs)]
    stored = [*reversed(pairs), *reversed(bits)]
    first, second = (
        DistributedLayout.of(shape, warps=divided, lanes=lanes, registers=[*slow, *fast])
        for fast in (loaded, stored)
    )
    return first, second


def _rest(shape: tuple[int, ...], bits: Sequence[Factor]) -> dict[int, Factor] | None:
    """Return the digit of each dimension above these bits; `None` if these are not its lowest."""
    found = {}
    for dim, n in enumerate(shape):
        strides = sorted(f.stride for f in bits if f.dim == dim)
        if strides != [1 << k for k in range(len(strides))] or n % (1 << len(strides)):
            return None
        found[dim] = Factor(dim, n >> len(strides), 1 << len(strides))
    return found


def _split_rows(rest: dict[int, Factor], own: int) -> tuple[list[Factor], dict[int, Factor]]:
    """Return the bits of the rows that a matrix has, and what is left above them."""
    for dim, f in rest.items():
        if dim != own and f.size % (1 << _LANE_ROWS) == 0:
            rows = [Factor(dim, 2, f.stride << k) for k in range(_LANE_ROWS)]
            above = Factor(dim, f.size >> _LANE_ROWS, f.stride << _LANE_ROWS)
            return rows, rest | {dim: above}
    return [], rest
