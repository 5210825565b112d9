"""The error of a trap, with the message of a compiled-in check from its comment.

    trap; // lego.check: index 1 of 'a' is %rd5, it is to be from 0 to 3

The registers in it are shown as the numbers they hold.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.artifact import CHECK_MARK
from lego_mlir.diagnostics import LegoError
from lego_mlir.sim.ptx.syntax import Instruction

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_REGISTER = re.compile(r"%\w+")


def trapped(w: Wave, instruction: Instruction, lane: int) -> LegoError:
    """Return the error of a trap that a lane of the wave executed."""
    line = w.module.text.splitlines()[instruction.line - 1]
    _, found, message = line.partition(f"// {CHECK_MARK}")
    if not found:
        return w.error(f"the kernel trapped in {w.lane_name(lane)}", instruction)

    names = list(w.kernel.registers)

    def shown(register: re.Match[str]) -> str:
        if register[0] not in names:
            return register[0]
        held = w.regs[names.index(register[0])]
        bits = held[lane if len(held) > 1 else 0]
        return str(int(bits.view(np.dtype(f"i{bits.dtype.itemsize}"))))

    text = _REGISTER.sub(shown, message.strip())
    return w.error(f"{text}, in {w.lane_name(lane)}", instruction)
