"""Operands of instructions that a whole warp executes: its lanes and their registers.

Source: PTX ISA 9.7.14 (`.sync.aligned`: all threads of the warp execute the same instruction).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.form import Form, uniform
from lego_mlir.sim.ptx.syntax import Operand, Vector
from lego_mlir.sim.ptx.types import Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_ALL = uniform(-1)
WarpReader = Callable[["Wave", Array | None], Array]
WarpWriter = Callable[["Wave", Array | None, Array], None]


def everyone(w: Wave) -> Array:
    """Return the member mask of an instruction that all lanes of a warp execute."""
    return _ALL


def whole_warps(w: Wave, opcode: str) -> Array | None:
    """Return the active lanes, 32 of each warp in order; None if all lanes are active.

    Raises:
        Fault: a lane of some warp is missing.
    """
    if w.mask is None and w.threads % WARP_THREADS == 0:
        return None
    lanes = np.arange(w.lanes) if w.mask is None else np.flatnonzero(w.mask)
    present = np.bincount(w.warp_of_lane[lanes], minlength=w.warps)
    partial = (present != 0) & (present != WARP_THREADS)
    if partial.any():
        warp = int(np.argmax(partial))
        lane = int(lanes[np.argmax(w.warp_of_lane[lanes] == warp)])
        raise Fault(
            f"{opcode} is executed by {int(present[warp])} of a warp's {WARP_THREADS} lanes, "
            f"all of which it needs",
            lane,
        )
    return lanes


def source(form: Form, operand: Operand, count: int, kind: Type) -> WarpReader:
    """Return a reader of `count` registers `{a, b, …}` of whole warps: (warps, 32, count)."""
    readers = [form.read(element, kind) for element in elements(form, operand, count, kind)]

    def read(w: Wave, lanes: Array | None) -> Array:
        values = np.empty((w.lanes, count), kind.dtype)
        for k, column in enumerate(readers):
            values[:, k] = column(w)
        chosen = values if lanes is None else values[lanes]
        return chosen.reshape(-1, WARP_THREADS, count)

    return read


def target(form: Form, operand: Operand, count: int, kind: Type) -> WarpWriter:
    """Return a writer of registers in whole warps, the inverse of `source`."""
    writers = [form.write(element, kind) for element in elements(form, operand, count, kind)]

    def write(w: Wave, lanes: Array | None, values: Array) -> None:
        columns = np.ascontiguousarray(values.reshape(-1, count).T)
        if lanes is not None:
            some, columns = columns, np.zeros((count, w.lanes), kind.dtype)
            columns[:, lanes] = some
        for column, put in zip(columns, writers, strict=True):
            put(w, column)

    return write


def elements(form: Form, operand: Operand, count: int, kind: Type) -> tuple[Operand, ...]:
    """Return the elements of an operand that must be `count` registers."""
    found = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(found) != count:
        form.fail(f"the operand {operand} where {count} {kind} registers should stand", operand)
    return found
