"""The products of fragments in a loop's body, by how many of them a sum has gone through.

A tile's product is one instruction after another for each of its sums: the first of every sum, all
independent, are step 1, the second of every sum step 2. The steps are the tile's along k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def is_mma(op: Any) -> bool:
    """Whether an operation multiplies fragments on tensor cores."""
    if op.name == "llvm.inline_asm":
        return "mma.sync" in str(op.attributes["asm_string"])
    return op.name in ("nvvm.mma.sync", "nvgpu.mma.sync")


def mma_groups(operations: Sequence[Any]) -> list[list[int]]:
    """The products among the operations of a block, step by step.

    Args:
        operations: of one block, in order.

    Returns:
        For each step, from the first on, the places of its products among the operations.
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
