"""Calls: the return addresses, frames and saved registers of each lane.

Registers are numbered for the whole program, so a call saves none, except those of a function that
may be running already further up: these are saved at the call and restored behind it. Variables of
a function lie in the thread's local memory, from its *frame* on, which a call moves past the
caller's variables. Lanes at one call may be at different depths.

Source: PTX ISA 7.1 (functions), 9.7.12.5 (call), 9.7.12.6 (ret).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.limits import current, how_to_raise
from lego_mlir.sim.machine.memory import LOCAL, POISON, Fault
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Mask, Wave

_ALIGNMENT = 16


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    """A function that a call may reach: its first basic block, and its `Called.enter`, `leave`."""

    entry: int
    enter: Callable[[Wave], None]
    leave: Callable[[Wave], Callable[[Wave], None]]


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """A call.

    Attributes:
        after: the basic block behind it.
        frame: bytes of the caller's variables.
        saved: registers to restore behind the call.
        callees: by address; a single one, if the call names its function.
    """

    instruction: Instruction
    after: int | None
    frame: int
    saved: tuple[int, ...]
    callees: Mapping[int, Callee]


@dataclass(slots=True)
class _Level:
    """The calls at one depth: which call each lane made, and the registers that it saved."""

    call: Array
    saved: dict[int, Array] = field(default_factory=dict)


class CallStack:
    """The call stacks of the lanes of a wave.

    Attributes:
        frame: where each lane's frame begins in its local memory, or a single element for all.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.frame: Array = np.zeros(1, np.uint64)
        self.depth = np.zeros(0, np.int64)
        self.levels: list[_Level] = []
        self.calls: list[tuple[CallSite, Callee]] = []
        self.numbers: dict[tuple[int, int], int] = {}

    def call(self, site: CallSite, target: Array | None, mask: Mask) -> None:
        """Continue the lanes of a mask in the functions that they call."""
        w = self.wave
        if target is None:
            (callee,) = site.callees.values()
            self._enter(site, callee, mask)
            return
        active, target = w.active_in(mask), np.broadcast_to(target, w.lanes)
        for address in np.unique(target[active]):
            chosen = active & (target == address)
            found = site.callees.get(int(address))
            if found is None:
                raise Fault(
                    f"{site.instruction.opcode} calls address {int(address):#x}, where no function "
                    f"of this kind begins",
                    int(np.argmax(chosen)),
                )
            self._enter(site, found, chosen)

    def _enter(self, site: CallSite, callee: Callee, mask: Mask) -> None:
        w = self.wave
        w.mask = mask
        if not len(self.depth):
            self.depth = np.zeros(w.lanes, np.int64)
        lanes = w.active_in(mask)
        number = self.numbers.setdefault((id(site), id(callee)), len(self.calls))
        if number == len(self.calls):
            self.calls.append((site, callee))
        depths = np.unique(self.depth[lanes])
        while len(self.levels) <= depths[-1]:
            self.levels.append(_Level(np.zeros(w.lanes, np.int64)))
        for depth in depths:
            some = lanes & (self.depth == depth) if len(depths) > 1 else lanes
            level = self.levels[depth]
            level.call[some] = number
            for register in self._saved(site):
                value = w.regs[register]
                old = level.saved.get(register)
                level.saved[register] = value if old is None else np.where(some, value, old)
        self._reserve(site, lanes)
        callee.enter(w)
        self.depth[lanes] += 1
        self._move_frame(site.frame, mask)
        w.make_ready(callee.entry, mask)

    def _saved(self, site: CallSite) -> list[int]:
        """Return the registers that a call saves, with their shadows."""
        shadows = self.wave.program.shadows
        return [*site.saved, *(shadows[r] for r in site.saved if r in shadows)]

    def ret(self, mask: Mask) -> None:
        """Continue the lanes of a mask behind the calls that they return from."""
        w = self.wave
        lanes = w.active_in(mask)
        self.depth[lanes] -= 1
        for depth in np.unique(self.depth[lanes]):
            at_depth = lanes & (self.depth == depth)
            level = self.levels[depth]
            for number in np.unique(level.call[at_depth]):
                site, callee = self.calls[number]
                some = at_depth & (level.call == number)
                w.mask = None if some.all() else some
                self._move_frame(-site.frame, w.mask)
                write = callee.leave(w)
                for register in self._saved(site):
                    value = level.saved[register]
                    w.regs[register] = np.where(some, value, w.regs[register])
                write(w)
                w.continue_at(site.after, w.mask)

    def _move_frame(self, by: int, mask: Mask) -> None:
        if not by:
            return
        moved = self.frame + np.uint64(by % (1 << 64))
        self.frame = moved if mask is None else np.where(mask, moved, self.frame)

    def _reserve(self, site: CallSite, lanes: Array) -> None:
        """Grow the local memory until every lane has room for the frame of a callee."""
        w = self.wave
        frame = np.broadcast_to(self.frame, w.lanes)[lanes]
        needed = int(frame.max()) + site.frame + w.program.largest_frame
        local = w.memory.buffers[LOCAL]
        depth = int(self.depth[lanes].max()) + 1
        most = current().stack_bytes
        if w.program.recursive and needed + _ALIGNMENT * depth > most:
            deepest = int(np.flatnonzero(lanes)[np.argmax(self.depth[lanes])])
            raise Fault(
                f"{depth} calls inside one another take more than {most} bytes of the stack of a "
                f"thread, the limit stack_bytes",
                deepest,
                f"look for a recursion that never ends, or {how_to_raise('stack_bytes')}",
            )
        if needed <= local.size:
            return
        size = -(-2 * needed // _ALIGNMENT) * _ALIGNMENT
        if size * w.lanes > current().memory_bytes:
            raise Fault(
                f"the stacks of {w.lanes} threads take more than {current().memory_bytes} bytes, "
                f"the limit memory_bytes",
                int(np.argmax(lanes)),
                how_to_raise("memory_bytes"),
            )
        grown = np.full((w.lanes, size), POISON, np.uint8)
        stride = len(local.data) // w.lanes
        grown[:, :stride] = local.data.reshape(w.lanes, stride)
        local.replace(grown.reshape(-1), size, np.arange(w.lanes) * size)

    # --- variables of the caller, by their place behind its frame ---

    def read(self, at: int, size: int) -> Array:
        """Return `size` bytes of each lane from byte `at` behind its frame: (lanes, size)."""
        rows, start = self._rows()
        if len(start) == 1:
            first = int(start[0]) + at
            return rows[:, first : first + size].copy()
        columns = start.astype(np.int64)[:, None] + np.arange(at, at + size)
        columns = np.minimum(columns, rows.shape[1] - 1)  # of lanes that are not active
        taken: Array = np.take_along_axis(rows, columns, axis=1)
        return taken

    def write(self, at: int, values: Array) -> None:
        """Write bytes (lanes, size) of the active lanes from byte `at` behind their frames."""
        rows, start = self._rows()
        size = values.shape[1]
        if len(start) == 1:
            first = int(start[0]) + at
            if self.wave.mask is None:
                rows[:, first : first + size] = values
            else:
                rows[self.wave.mask, first : first + size] = values[self.wave.mask]
            return
        lanes = np.flatnonzero(self.wave.active())
        columns = start.astype(np.int64)[lanes, None] + np.arange(at, at + size)
        rows[lanes[:, None], columns] = values[lanes]

    def _rows(self) -> tuple[Array, Array]:
        """Return the local memory as (lanes, bytes), and where the frames begin."""
        local = self.wave.memory.buffers[LOCAL]
        return local.data.reshape(self.wave.lanes, -1), self.frame
