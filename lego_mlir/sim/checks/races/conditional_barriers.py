"""Barriers that stand between two racing accesses, but that a condition can skip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.program import Program
    from lego_mlir.sim.ptx.syntax import Instruction

Position = tuple[int, int]
"""A basic block, and an instruction in it."""


def conditional_barrier(
    program: Program, first: Instruction, second: Instruction
) -> Instruction | None:
    """Return a CTA barrier that some, but not all, paths between two instructions pass.

    Args:
        program: the kernel.
        first: an instruction of the kernel.
        second: another one; paths lead from either to the other, and pass neither in between.
    """
    graph = _Graph(program)
    for start, end in ((first, second), (second, first)):
        after_start = graph.reached(start, [end])
        if start is end or id(end) not in after_start:
            continue
        for barrier in filter(_is_cta_barrier, program.kernel.instructions):
            if id(barrier) not in after_start:
                continue
            leads_on = id(end) in graph.reached(barrier, [start, end])
            is_skipped = id(end) in graph.reached(start, [barrier, end])
            if leads_on and (is_skipped or barrier.guard is not None):
                return barrier
    return None


def _is_cta_barrier(instruction: Instruction) -> bool:
    word, *modifiers = instruction.opcode.split(".")
    others = {"warp", "cluster", "arrive"}
    return word in ("bar", "barrier") and others.isdisjoint(modifiers)


class _Graph:
    """The control flow graph of a kernel, instruction by instruction."""

    def __init__(self, program: Program) -> None:
        self.blocks = program.basic_blocks
        self.position_of = {
            id(block.instructions[i]): (at, i)
            for at, block in enumerate(self.blocks)
            for i in range(block.length)
        }

    def reached(self, start: Instruction, stops: Iterable[Instruction]) -> set[int]:
        """Return the ids of the instructions on paths from `start` that end at `stops`."""
        stopping = {self.position_of[id(instruction)] for instruction in stops}
        found: set[Position] = set()
        work = list(self._successors(self.position_of[id(start)]))
        while work:
            position = work.pop()
            if position not in found:
                found.add(position)
                if position not in stopping:
                    work += self._successors(position)
        return {id(self.blocks[at].instructions[i]) for at, i in found}

    def _successors(self, position: Position) -> list[Position]:
        at, i = position
        block = self.blocks[at]
        if i + 1 < block.length:
            return [(at, i + 1)]
        return [(target, 0) for target in block.successors if self.blocks[target].length]
