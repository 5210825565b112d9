"""Data flow through the basic blocks of a kernel, on sets of registers.

A set of registers is an integer whose bit i stands for register i: union, difference and
comparison of sets with thousands of members are single operations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lego_mlir.sim.ptx.decoded import Uses

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.basic_blocks import BasicBlock

Registers = int
"""A set of registers, one bit for each."""


def registers(indices: Iterable[int]) -> Registers:
    """Return the set of these registers."""
    found = 0
    for index in indices:
        found |= 1 << index
    return found


def members(found: Registers) -> list[int]:
    """Return the registers of a set, in order."""
    listed = []
    while found:
        lowest = found & -found
        listed.append(lowest.bit_length() - 1)
        found ^= lowest
    return listed


def replaced_by(uses: Uses) -> Registers:
    """Return the registers that certainly get a new value; a guard may keep the old one."""
    return 0 if uses.guard is not None else registers(uses.writes)


def live(blocks: Sequence[BasicBlock]) -> list[list[Registers]]:
    """Return the live registers of each basic block: before each instruction, and at its end.

    A register that is live before the first instruction of a kernel may be read on some way
    without ever having been written.
    """
    steps = [[_read_and_kept(uses) for uses in block.uses] for block in blocks]

    def before(at: int, found: Registers) -> Registers:
        for read, kept in reversed(steps[at]):
            found = found & kept | read
        return found

    predecessors: list[list[int]] = [[] for _ in blocks]
    for at, block in enumerate(blocks):
        for successor in block.successors:
            predecessors[successor].append(at)
    # Blocks stand in running order, so that most of what follows a block is known when it is met.
    after = fixpoint(predecessors, [0] * len(blocks), before, reversed(range(len(blocks))))
    found = []
    for at, transfers in enumerate(steps):
        points = [after[at]]
        for read, kept in reversed(transfers):
            points.append(points[-1] & kept | read)
        found.append(points[::-1])
    return found


def _read_and_kept(uses: Uses) -> tuple[Registers, Registers]:
    """Return the registers that an instruction reads, and those that it does not overwrite."""
    undefined = registers(uses.undefined)
    read = registers(uses.reads) | registers(uses.decides)
    return read & ~undefined, ~(replaced_by(uses) | undefined)


def fixpoint(
    edges: Sequence[Sequence[int]],
    start: Sequence[int],
    transfer: Callable[[int, int], int],
    order: Iterable[int],
) -> list[int]:
    """Return the least fixpoint of a data-flow problem: one set for each node.

    Args:
        edges: for each node those that its result goes to.
        start: what each node holds from the beginning.
        transfer: the result of a node that holds a set; never smaller for a larger one.
        order: all nodes, in the order in which to look at them first.
    """
    state = list(start)
    waiting = deque(order)
    queued = set(waiting)
    while waiting:
        node = waiting.popleft()
        queued.discard(node)
        result = transfer(node, state[node])
        for target in edges[node]:
            if result & ~state[target]:
                state[target] |= result
                if target not in queued:
                    queued.add(target)
                    waiting.append(target)
    return state
