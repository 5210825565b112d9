"""Fragments: which element of a matrix each register of a warp's lanes holds.

All matrix instructions of a warp distribute their matrices by one rule. Lanes form 8 groups of 4.
For an operand, the group and the position in it select a row of A (a column of B) and adjacent
elements along k, as many as a register holds:

    A, 16 × k     register 0 of lane l: row l/4, k from (l%4)·P; register 1: 8 rows below;
                  registers 2 and 3: the same, 4·P further along k; and so on
    B, k × 8      register r of lane l: column l/4, k from (l%4)·P + 4·P·r

with P elements in a register. Accumulators are distributed by pairs, for every type:

    D, 16 × n     pair 0 of lane l: row l/4, columns 2·(l%4) and the next; pair 1: 8 rows below;
                  pairs 2 and 3: the same, 8 columns further; and so on

Matrices of 8 rows lack the registers "8 rows below". A warp's tile of a `wgmma` has 16 rows
and n up to 256.

Source: PTX ISA 9.7.14.5.1-13 (fragments of mma), 9.7.15.5.1.1 (register fragments of wgmma).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.sim.ptx.types import Array


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A matrix distributed over the registers of a warp.

    Attributes:
        rows, columns: of the matrix.
        registers: of each lane.
        source: for each element, in row-major order, its position among all lanes' elements: those
            of lane 0 come first, register by register, lowest bits first.
        target: the inverse: for each position its element.
    """

    rows: int
    columns: int
    registers: int
    source: Array
    target: Array

    def gather(self, held: Array) -> Array:
        """Convert elements (warps, 32, elements of a lane) to matrices (warps, rows, columns)."""
        flat = held.reshape(len(held), -1)
        return flat[:, self.source].reshape(len(held), self.rows, self.columns)

    def scatter(self, matrices: Array) -> Array:
        """Convert matrices to the lanes' elements, the inverse of `gather`."""
        flat = matrices.reshape(len(matrices), -1)
        return flat[:, self.target].reshape(len(matrices), WARP_THREADS, -1)


def _fragment(rows: int, columns: int, packed: int, row: Array, column: Array) -> Fragment:
    """Return the fragment with these rows and columns of the element at each position."""
    target = row * columns + column
    registers = rows * columns // (WARP_THREADS * packed)
    return Fragment(rows, columns, registers, np.argsort(target), target)


def _positions(elements: int, packed: int) -> tuple[Array, Array, Array]:
    """Return the lane, the register and the position in it of each position of the elements."""
    position = np.arange(elements)
    a_lane = elements // WARP_THREADS
    return position // a_lane, position % a_lane // packed, position % packed


@lru_cache
def operand_a(rows: int, depth: int, packed: int) -> Fragment:
    """Return the fragment of operand A, `rows` × `depth`."""
    lane, register, i = _positions(rows * depth, packed)
    halves = rows // 8
    row = lane // 4 + 8 * (register % halves)
    k = lane % 4 * packed + i + 4 * packed * (register // halves)
    return _fragment(rows, depth, packed, row, k)


@lru_cache
def operand_b(depth: int, packed: int) -> Fragment:
    """Return the fragment of operand B, `depth` × 8."""
    lane, register, i = _positions(8 * depth, packed)
    k = lane % 4 * packed + i + 4 * packed * register
    return _fragment(depth, 8, packed, k, lane // 4)


@lru_cache
def accumulator(rows: int, columns: int, packed: int) -> Fragment:
    """Return the fragment of the accumulators C and D, `rows` × `columns`."""
    lane, register, i = _positions(rows * columns, packed)
    halves = rows // 8
    position = register * packed + i
    pair = position // 2
    row = lane // 4 + 8 * (pair % halves)
    column = lane % 4 * 2 + position % 2 + 8 * (pair // halves)
    return _fragment(rows, columns, packed, row, column)
