"""The groups of mma instructions in a loop's body, by their number in a chain of accumulations.

The instructions of one accumulator fragment form a chain. Group 0 consists of the first of every
chain, which are independent, group 1 of the second, and so on: the tile's steps along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def is_mma(op: Any) -> bool:
    """Return whether an operation is an `mma.sync`."""
    if op.name == "llvm.inline_asm":
        return "mma.sync" in str(op.attributes["asm_string"])
    return op.name in ("nvvm.mma.sync", "nvgpu.mma.sync")


def is_wgmma(op: Any) -> bool:
    """Return whether an operation begins `wgmma`."""
    return op.name == "llvm.inline_asm" and "wgmma.mma_async" in str(op.attributes["asm_string"])


def mma_groups(operations: Sequence[Any]) -> list[list[int]]:
    """Return the positions of the mma instructions in each group.

    Args:
        operations: the operations of a block, in order.
    """
    through: dict[Any, int] = {}
    groups: list[list[int]] = []
    for position, op in enumerate(operations):
        number = 0
        for operand in op.operands if through else ():
            number = max(number, through.get(operand, 0))
        if is_mma(op):
            if number == len(groups):
                groups.append([])
            groups[number].append(position)
            number += 1
        if number:
            through.update((result, number) for result in op.results)
    return groups
