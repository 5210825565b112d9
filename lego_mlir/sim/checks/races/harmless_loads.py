"""Loads of global memory that race with a write, but whose value does no harm.

A compiler that works on tiles lets every thread load a scalar, compute with it, and lets one thread
store the result where it was:

    ld.global.b32 %r1, [%rd1];    // all threads
    add.s32 %r2, %r1, 1;
    @%p st.global.b32 [%rd1], %r2;    // thread 0

The loads of the other threads race with the store, but their values go nowhere.

A loop around `atom.cas` begins with a plain load. Whatever that finds, the `cas` compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.checks.races.access_log import READ, SYNC_WRITE, WRITE, AccessEvent, Records
from lego_mlir.sim.machine.memory import MemoryAccess
from lego_mlir.sim.ptx.syntax import Address, Instruction, Register, Vector
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.decoded import Uses
    from lego_mlir.sim.ptx.program import Program

_WORDS = """
abs add and bfe bfi brev clz copysign cos cvt div ex2 fma lg2 lop3 mad mad24 max min mov mul mul24
neg not or popc prmt rcp rem rsqrt sad selp shf shl shr sin sqrt sub tanh xor
"""
_PURE = frozenset(_WORDS.split())
"""Instructions whose only effect is their result."""


@dataclass(frozen=True, slots=True)
class HarmlessLoads:
    """Decides which loads of a kernel need no order with a write.

    Attributes:
        program: the kernel.
        threads: of a CTA.
    """

    program: Program
    threads: int

    def before_write(
        self,
        event: AccessEvent,
        elements: Array,
        found: Records,
        accesses: Sequence[MemoryAccess | None],
    ) -> Array:
        """Return which earlier accesses need no order with a new one.

        Args:
            event: the new access.
            elements: for each earlier access, the element of the event at the same place.
            found: all earlier accesses at these places that conflict with it.
            accesses: the accesses of all events, by id.
        """
        if event.kind == WRITE:
            return self._before_store(event, elements, found, accesses)
        if event.kind == SYNC_WRITE:
            return np.where(_is_cas(event.access.instruction), found.kind == READ, False)
        if event.kind != READ:
            return np.zeros(len(elements), np.bool_)
        cas = [_is_cas(_instruction(accesses, n)) for n in found.access_id.tolist()]
        return np.where(np.array(cas, np.bool_), found.kind == SYNC_WRITE, False)

    def _before_store(
        self,
        event: AccessEvent,
        elements: Array,
        found: Records,
        accesses: Sequence[MemoryAccess | None],
    ) -> Array:
        """Return which accesses before a store are loads whose values go nowhere."""
        # The thread that stores has loaded the same place, by the same instruction.
        size = int(found.granule.max(initial=0)) + 1
        numbers, which = np.unique(found.access_id, return_inverse=True)
        instructions = {id(_instruction(accesses, n)): n for n in numbers.tolist()}
        first = [instructions[id(_instruction(accesses, n))] for n in numbers.tolist()]
        loads = np.array(first)[which]
        keys = loads * size + found.granule
        storing = event.threads[elements]
        result: Array = np.isin(keys, keys[found.thread == storing])
        result &= found.thread // self.threads == storing // self.threads
        result &= ~np.isin(found.thread, event.threads)
        for number in np.unique(loads[result]).tolist():
            if not self._feeds(_instruction(accesses, number), event.access.instruction):
                result &= loads != number
        return result

    def after_store(
        self,
        event: AccessEvent,
        threads: Array,
        stores: Array,
        accesses: Sequence[MemoryAccess | None],
    ) -> Array:
        """Return which elements of a load need no order with the last store at their places.

        Args:
            event: some elements of a load.
            threads: for each, the thread that stored.
            stores: for each, the id of the store.
            accesses: the accesses of all events, by id.
        """
        result: Array = event.threads // self.threads == threads // self.threads
        for number in np.unique(stores[result]).tolist():
            if not self._feeds(event.access.instruction, _instruction(accesses, number)):
                result &= stores != number
        return result

    def _feeds(self, load: Instruction, store: Instruction) -> bool:
        return store.guard is not None and _feeds_only(self.program, id(load), id(store))


def _is_cas(instruction: Instruction) -> bool:
    head, *words = instruction.opcode.split(".")
    return head == "atom" and "cas" in words


def _instruction(accesses: Sequence[MemoryAccess | None], number: int) -> Instruction:
    access = accesses[number]
    assert access is not None
    return access.instruction


@lru_cache(maxsize=1024)
def _feeds_only(program: Program, load: int, store: int) -> bool:
    """Return whether the value of a load goes nowhere but into the value of a store.

    Args:
        program: the kernel.
        load: the `id` of the load.
        store: the `id` of the store.
    """
    steps = list(_steps(program))
    if not any(id(i) == load and i.opcode.startswith("ld.") for i, _ in steps):
        return False
    tainted = {r for i, uses in steps if id(i) == load for r in uses.writes}
    before, reached = 0, False
    while len(tainted) != before:
        before = len(tainted)
        for instruction, uses in steps:
            reads = tainted & {*uses.reads, *uses.decides}
            if not reads:
                continue
            if id(instruction) == store:
                if reads & set(uses.decides) or not _is_value(program, instruction, reads):
                    return False
                reached = True
            elif instruction.opcode.split(".")[0] in _PURE and not reads & set(uses.decides):
                tainted.update(uses.writes)
            else:
                return False
    return reached


def _steps(program: Program) -> Iterator[tuple[Instruction, Uses]]:
    """Yield the instructions of a kernel with the registers that they access."""
    for block in program.basic_blocks:
        yield from zip(block.instructions, block.uses, strict=False)


def _is_value(program: Program, store: Instruction, registers: set[int]) -> bool:
    """Return whether registers are only the value of a store, not its address."""
    names = list(program.kernel.registers)
    address, value = store.operands[0], store.operands[1]
    parts = value.elements if isinstance(value, Vector) else (value,)
    values = {part.name for part in parts if isinstance(part, Register)}
    base = (
        address.base.name
        if isinstance(address, Address) and isinstance(address.base, Register)
        else None
    )
    return all(names[r] in values and names[r] != base for r in registers)
