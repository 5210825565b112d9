"""The report of a deadlock: which threads of a CTA wait, where, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.diagnostics import LegoError

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave
    from lego_mlir.sim.ptx.syntax import Instruction
    from lego_mlir.sim.ptx.types import Array


def deadlock(w: Wave) -> LegoError:
    """Return the error that names a deadlocked CTA and what its threads wait for."""
    waits = _waits(w)
    stuck = w.first(np.logical_or.reduce([mask for mask, _, _ in waits]))
    cta_index = stuck // w.threads
    mine = slice(cta_index * w.threads, (cta_index + 1) * w.threads)
    lines: list[str] = []
    first: Instruction | None = None
    for mask, instruction, at in waits:
        if number := int(mask[mine].sum()):
            first = first or instruction
            line = f"{number} wait at `{instruction}` ({w.location_name(instruction)})"
            if at is not None:
                line += " " + w.stalls.gate(at).reason(
                    w, cta_index * w.threads + w.first(mask[mine])
                )
            lines.append(line)
    if gone := w.threads - int(w.alive[mine].sum()):
        lines.append(f"{gone} have exited")
    assert first is not None
    return w.error(
        f"deadlock in {w.cta_name(cta_index)}: of its {w.threads} threads {', '.join(lines)}",
        first,
        "every thread that a barrier waits for must reach it, and every byte that an mbarrier "
        "expects must come",
    )


def _waits(w: Wave) -> list[tuple[Array, Instruction, int | None]]:
    """Return waiting lanes, their instruction, and the basic block before which they stall."""
    waits: list[tuple[Array, Instruction, int | None]] = [
        (x.mask, x.instruction, None) for x in w.barriers.waiting if x.after is not None
    ]
    for at, mask in w.parked.items():
        entry = w.program.basic_blocks[at].entry
        assert entry is not None
        waits.append((mask, entry.instruction, None))
    for at, mask in w.stalls.lanes.items():
        waits.append((mask, w.stalls.gate(at).instruction, at))
    return waits
