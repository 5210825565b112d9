"""Reads of uninitialized registers, found while a kernel runs.

If every register is written on every path to its reads, which liveness analysis finds when the
kernel is decoded, nothing is checked at run time. Otherwise each register that may carry an
unwritten value to a need (see `uninitialized_effects`) gets a *shadow*: an additional register that
holds, in each lane, which of its bytes are unwritten. Instructions that write such registers write
their shadows; those that need one check its shadow in the active lanes.

Source: PTX ISA 5.1.1 (registers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lego_mlir.sim.checks.uninitialized_effects import Effect, Flow, Need, effect, whole
from lego_mlir.sim.machine.basic_block_ends import BasicBlockEnd, StallCondition
from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.dataflow import Registers, fixpoint, live, members, registers, replaced_by
from lego_mlir.sim.ptx.syntax import Instruction
from lego_mlir.sim.ptx.types import TYPES, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave
    from lego_mlir.sim.ptx.form import Handler, Uses
    from lego_mlir.sim.ptx.program import BasicBlock, Program

Result = TypeVar("Result")
_SHADOW = TYPES["b8"]
_WRITTEN = np.zeros(1, np.uint8)


def checked(program: Program) -> Program:
    """Return a program with a check before each instruction that may need an unwritten register."""
    start = live(program.basic_blocks)[0][0]
    if not start:
        return program
    index = {name: i for i, name in enumerate(program.kernel.registers)}
    effects = [
        [
            effect(program, index, instruction, uses)
            for instruction, uses in zip(block.instructions, block.uses, strict=False)
        ]
        for block in program.basic_blocks
    ]
    watching = _Watching(program, index, effects, start)
    if not watching.shadows:
        return program
    return replace(
        program,
        basic_blocks=tuple(
            _watched(block, watching.steps(at)) for at, block in enumerate(program.basic_blocks)
        ),
        registers=(*program.registers, *[_SHADOW] * len(watching.shadows)),
    )


# --- which registers may be unwritten, and where that matters ---


def _unwritten(
    blocks: Sequence[BasicBlock], effects: Sequence[Sequence[Effect]], start: Registers
) -> list[list[Registers]]:
    """Return the registers that may be unwritten at each instruction of each basic block."""
    steps = [
        [
            (
                ~registers(uses.undefined),
                ~replaced_by(uses),
                [(f.target, registers(f.sources)) for f in found.flows],
            )
            for uses, found in zip(block.uses, of_block, strict=True)
        ]
        for block, of_block in zip(blocks, effects, strict=True)
    ]

    def points(at: int, found: Registers) -> list[Registers]:
        listed = []
        for undefined, kept, flows in steps[at]:
            found &= undefined
            listed.append(found)
            spread = registers(target for target, sources in flows if found & sources)
            found = found & kept | spread
        return [*listed, found]

    before = fixpoint(
        [block.successors for block in blocks],
        [start, *[0] * (len(blocks) - 1)],
        lambda at, found: points(at, found)[-1],
        range(len(blocks)),
    )
    return [points(at, found)[:-1] for at, found in enumerate(before)]


class _Watching:
    """The checks of a program at run time.

    Attributes:
        start: the registers that may be needed without ever having been written.
        unwritten: what may be unwritten at each instruction, by block.
        sources: register → those from which it may take over that it is unwritten.
        writers: register → the instructions that write it.
        shadows: register → its shadow, both by their index.
    """

    def __init__(
        self,
        program: Program,
        index: dict[str, int],
        effects: Sequence[Sequence[Effect]],
        start: Registers,
    ) -> None:
        self.program = program
        self.effects = effects
        self.start = start
        self.unwritten = unwritten = _unwritten(program.basic_blocks, effects, start)
        self.names = [*index, "the carry flag"]
        self.sources: dict[int, set[int]] = {}
        self.writers: dict[int, list[Instruction]] = {}
        needed = 0
        for block, of_block, points in zip(program.basic_blocks, effects, unwritten, strict=True):
            for i, (found, lost) in enumerate(zip(of_block, points, strict=True)):
                uses = block.uses[i]
                for register in uses.writes:
                    self.writers.setdefault(register, []).append(block.instructions[i])
                needed |= lost & registers(uses.decides)
                for need in self.open(found, lost):
                    needed |= registers(need.registers)
                for flow in found.flows:
                    held = members(lost & registers(flow.sources))
                    self.sources.setdefault(flow.target, set()).update(held)
        first = len(program.registers)
        self.shadows = {r: first + k for k, r in enumerate(self._behind(needed))}

    def open(self, found: Effect, lost: Registers) -> list[Need]:
        """Return the needs that may not be met if some registers are unwritten."""
        return [n for n in found.needs if not registers(n.registers) & ~lost]

    def _behind(self, needed: Registers) -> list[int]:
        """Return these registers and their sources of unwritten bytes, the nearest first."""
        found = members(needed)
        for register in found:
            found += sorted(self.sources.get(register, set()).difference(found))
        return found

    def steps(self, at: int) -> dict[int, Handler]:
        """Return the handlers to run before instructions of a basic block, by index."""
        block = self.program.basic_blocks[at]
        found = {}
        for i, uses in enumerate(block.uses):
            step = self._step(
                block.instructions[i], uses, self.effects[at][i], self.unwritten[at][i]
            )
            if step is not None:
                found[i] = step
        return found

    def _step(
        self, instruction: Instruction, uses: Uses, found: Effect, lost: Registers
    ) -> Handler | None:
        decides = [Need((r,)) for r in uses.decides if lost >> r & 1]
        needs = self.open(found, lost)
        forgotten = [self.shadows[r] for r in uses.undefined if r in self.shadows]
        flows = {flow.target: flow for flow in found.flows if registers(flow.sources) & lost}
        writes = [
            (self.shadows[r], self._mask(flows.get(r)))
            for r in dict.fromkeys(uses.writes)
            if r in self.shadows
        ]
        if not (decides or needs or forgotten or writes):
            return None
        guard = uses.guard

        def step(w: Wave) -> None:
            active = w.active()
            for shadow in forgotten:
                _put(w, shadow, _WRITTEN, active)
            for need in decides:
                self._check(w, instruction, need, active)
            if guard is not None:
                active = active & guard(w)
            for need in needs:
                self._check(w, instruction, need, active)
            masks = [mask(w) for _, mask in writes]
            for (shadow, _), value in zip(writes, masks, strict=True):
                _put(w, shadow, value, active)

        return step

    def _mask(self, flow: Flow | None) -> Callable[[Wave], Array]:
        """Return the mask of a register after it has been written."""
        if flow is None:
            return lambda w: _WRITTEN
        sources, rule = flow.sources, flow.rule
        return lambda w: rule(w, [self._missing(w, r) for r in sources])

    # --- errors ---

    def _missing(self, w: Wave, register: int) -> Array:
        """Return the unwritten bytes of a register in each lane, one bit for each byte."""
        if register not in self.shadows:
            return _WRITTEN
        missing: Array = w.regs[self.shadows[register]] & whole(self.program.registers[register])
        return missing

    def _lost(self, w: Wave, register: int) -> Array:
        """Return the lanes in which no byte of a register has been written."""
        lost: Array = self._missing(w, register) == whole(self.program.registers[register])
        return lost

    def _check(self, w: Wave, instruction: Instruction, need: Need, active: Array) -> None:
        missing = np.ones(1, np.bool_)
        for register in need.registers:
            missing = missing & self._lost(w, register)
        if not missing.any():
            return
        missing = missing & active
        if need.where is not None:
            missing = missing & need.where(w)
        if missing.any():
            lane = int(np.argmax(missing))
            raise Fault(self._message(w, instruction, need.registers[0], lane), lane)

    def _message(self, w: Wave, instruction: Instruction, register: int, lane: int) -> str:
        origin = self._origin(w, register, lane)
        derived = "" if origin == register else f"{self.names[register]}, computed from "
        lines = [str(i.line) for i in self.writers.get(origin, ())]
        listed = " and ".join([", ".join(lines[:-1]), lines[-1]] if len(lines) > 1 else lines)
        match len(lines):
            case 0:
                written = "nothing writes it"
            case 1:
                written = f"line {listed} writes it"
            case _:
                written = f"lines {listed} write it"
        return (
            f"{instruction.opcode} reads {derived}{self.names[origin]}, which has not been "
            f"written ({written})"
        )

    def _origin(self, w: Wave, register: int, lane: int) -> int:
        """Return the origin of an unwritten value, if possible one that is still unwritten."""
        first = [r for r in self._behind(1 << register) if self.start >> r & 1]
        lost = (r for r in first if np.broadcast_to(self._lost(w, r), w.lanes)[lane])
        return next(lost, first[0])


def _put(w: Wave, shadow: int, value: Array, active: Array) -> None:
    """Write a shadow register in some lanes."""
    old = w.regs[shadow]
    if len(old) == len(value) == 1 and old[0] == value[0]:
        return
    w.regs[shadow] = value if active.all() else np.where(active, value, old)


def _before(first: Handler, then: Callable[[Wave], Result]) -> Callable[[Wave], Result]:
    def both(w: Wave) -> Result:
        first(w)
        return then(w)

    return both


# --- the checks in the program ---


def _watched(block: BasicBlock, steps: dict[int, Handler]) -> BasicBlock:
    """Return a basic block with handlers before some of its instructions."""
    if not steps:
        return block
    entry, end = block.entry, block.end
    done = list(block.handlers)
    for i, before in steps.items():
        if i == 0 and isinstance(entry, StallCondition):
            # Checked first when lanes come there.
            if entry.guard is None:
                entry = replace(entry, holds=_before(before, entry.holds))
            else:
                entry = replace(entry, guard=_before(before, entry.guard))
        elif i < len(done):
            done[i] = _before(before, done[i])
        else:
            end = BasicBlockEnd(_before(before, end.run))
    return replace(block, handlers=tuple(done), end=end, entry=entry)
