"""8×8 matrices of 16-bit elements between shared memory and a warp's registers.

Source: PTX ISA 9.7.14.5.15 (ldmatrix), 9.7.14.5.16 (stmatrix), 9.7.14.5.17 (movmatrix).

Of matrix j, lane 8·j + r gives the address of row r: 16 bytes, one access to memory. In registers
lane 4·r + c holds elements 2·c and 2·c + 1 of row r; with `.trans` of column r.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.sim.instructions.matrix.warpwide import everyone, source, target, whole_warps
from lego_mlir.sim.instructions.memory.addresses import address_of, space_of
from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.ptx.decoded import WarpCollective
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_B32 = TYPES["b32"]


def _halves(words: Array) -> Array:
    """Matrices as words (warps, matrix, row, 4 words) to elements (warps, matrix, row, column)."""
    return np.ascontiguousarray(words).view(np.uint16)


def _words(halves: Array) -> Array:
    return np.ascontiguousarray(halves).view(np.uint32)


def _transposed(words: Array) -> Array:
    return _words(_halves(words).swapaxes(-1, -2))


def _dealt(words: Array) -> Array:
    """Matrices as the registers of lanes, (warps, 32, matrices)."""
    count = words.shape[1]
    return words.reshape(-1, count, WARP_THREADS).swapaxes(1, 2)


def _collected(held: Array) -> Array:
    """The reverse of `_dealt`."""
    count = held.shape[2]
    return held.swapaxes(1, 2).reshape(-1, count, 8, 4)


@instruction("9.7.14.5.15", "ldmatrix sync aligned m8n8 x1|x2|x4 [trans] [shared|shared::cta] b16")
def ldmatrix(form: Form) -> WarpCollective:
    """Load one, two or four matrices; register j of all lanes holds matrix j."""
    form.expect(2)
    count, access = _count(form), _access(form, writes=False)
    address = address_of(form, form.operands[1], access.space)
    write = target(form, form.operands[0], count, _B32)
    trans = form.has("trans")

    def execute(w: Wave) -> None:
        lanes = whole_warps(w, form.instruction.opcode)
        rows = w.memory.load(access, address(w), _row_lanes(w, count), w.lanes)
        words = np.stack([np.broadcast_to(row, w.lanes) for row in rows], axis=-1)
        if lanes is not None:
            words = words[lanes]
        words = words.reshape(-1, 4, 8, 4)[:, :count]
        write(w, lanes, _dealt(_transposed(words) if trans else words))

    return WarpCollective(everyone, execute)


@instruction("9.7.14.5.16", "stmatrix sync aligned m8n8 x1|x2|x4 [trans] [shared|shared::cta] b16")
def stmatrix(form: Form) -> WarpCollective:
    """Store one, two or four matrices, the reverse of `ldmatrix`."""
    form.expect(2)
    count, access = _count(form), _access(form, writes=True)
    address = address_of(form, form.operands[0], access.space)
    read = source(form, form.operands[1], count, _B32)
    trans = form.has("trans")

    def execute(w: Wave) -> None:
        lanes = whole_warps(w, form.instruction.opcode)
        words = _collected(read(w, lanes))
        if trans:
            words = _transposed(words)
        rows = np.zeros((w.lanes, 4), np.uint32)
        here = np.arange(w.lanes) if lanes is None else lanes
        here = here.reshape(-1, WARP_THREADS)[:, : 8 * count].reshape(-1)
        rows[here] = words.reshape(-1, 4)
        w.memory.store(access, address(w), list(rows.T), _row_lanes(w, count))

    return WarpCollective(everyone, execute)


@instruction("9.7.14.5.17", "movmatrix sync aligned m8n8 trans b16")
def movmatrix(form: Form) -> WarpCollective:
    """Transpose a matrix held in registers."""
    form.expect(2)
    write = target(form, form.operands[0], 1, _B32)
    read = source(form, form.operands[1], 1, _B32)

    def execute(w: Wave) -> None:
        lanes = whole_warps(w, form.instruction.opcode)
        write(w, lanes, _dealt(_transposed(_collected(read(w, lanes)))))

    return WarpCollective(everyone, execute)


def _count(form: Form) -> int:
    return int(form.one_of("x1", "x2", "x4")[1:])


def _access(form: Form, writes: bool) -> MemoryAccess:
    """A row of a matrix, as four words."""
    return MemoryAccess(form.instruction, space_of(form), 4, 4, writes)


def _row_lanes(w: Wave, count: int) -> Array | None:
    """The active lanes that give the address of a row; None for all."""
    if count == 4:
        return w.mask
    giving = w.lane_in_warp < 8 * count
    return giving if w.mask is None else giving & w.mask
