"""The elements of vector loads that a kernel uses.

A compiler may widen a load: of `ld.shared.v4.b32 {%r1, %r2, %r3, %r4}` the kernel may use three
registers only. What lies at the fourth element then matters to nobody.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.ptx.dataflow import live
from lego_mlir.sim.ptx.syntax import Register, Vector
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.ptx.program import Program


@lru_cache(maxsize=64)
def used_elements(program: Program) -> dict[int, Array]:
    """Return the elements whose registers are used, by the `id` of each load with unused ones.

    If no element is used, the first one stands for all.
    """
    loads = [
        instruction
        for block in program.basic_blocks
        for instruction in block.instructions
        if instruction.opcode.startswith("ld.") and isinstance(instruction.operands[0], Vector)
    ]
    if not loads:
        return {}
    index_of = {name: index for index, name in enumerate(program.kernel.registers)}
    found = {}
    for block, points in zip(program.basic_blocks, live(program.basic_blocks), strict=True):
        for at, instruction in enumerate(block.instructions[: block.length]):
            target = instruction.operands[0] if instruction.operands else None
            if not (instruction.opcode.startswith("ld.") and isinstance(target, Vector)):
                continue
            after = points[at + 1]
            used = [
                k
                for k, element in enumerate(target.elements)
                if isinstance(element, Register) and after >> index_of[element.name] & 1
            ]
            if len(used) < len(target.elements):
                found[id(instruction)] = np.array(used or [0])
    return found
