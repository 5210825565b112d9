"""Checks of machine code in strict mode, which the library's own kernels are compiled in.

Messages C75xx and C76xx of the assembler report an instruction that it does not carry out as
written: serialized `wgmma`, an ignored `setmaxnreg`. Spilled registers and other local memory go
through the caches. The code is correct in all cases, but slow.
"""

from __future__ import annotations

import re

from lego_mlir.compiler.backend.assembly import Cubin, Resources
from lego_mlir.diagnostics import LegoError

_LOSS = re.compile(r"\(C7[56]\d\d\)")

_CALL = re.compile("extern calls", re.IGNORECASE)

_CONFIGURATION = "use another config; legoc --emit=cubin only warns of this"
_ROUTINES = (
    "exact '/' of f32, '/' of f64, and '//' of 64-bit integers by what is no constant call a "
    "routine: divide as f32, without exact_math, or in a kernel of its own"
)


def check_strict(cubin: Cubin) -> None:
    """Raise LegoError for machine code that spills registers or that was slowed down.

    Raises:
        LegoError: names kernel and fault.
    """
    for message in cubin.warnings:
        if _LOSS.match(message):
            raise LegoError(
                f"the assembler slows {_kernels_of(message, cubin)} down: {message}",
                hint=_ROUTINES if _CALL.search(message) else _CONFIGURATION,
            )
    for kernel in cubin.resources:
        if fault := _local_memory(kernel):
            raise LegoError(
                f"kernel '{kernel.kernel}' {fault}",
                hint="a smaller tile or more threads; legoc --emit=cubin only warns of this",
            )


def _kernels_of(message: str, cubin: Cubin) -> str:
    """Return the kernels that a message names, or all of the module if it names none."""
    names = [kernel.kernel for kernel in cubin.resources]
    named = [name for name in names if f"'{name}'" in message] or names
    return f"kernel{'s' if len(named) > 1 else ''} " + ", ".join(f"'{name}'" for name in named)


def _local_memory(kernel: Resources) -> str | None:
    spilled = max(kernel.spill_store_bytes, kernel.spill_load_bytes)
    if spilled:
        return f"spills {spilled} bytes of registers per thread; it has {kernel.registers} of them"
    return (
        f"has {kernel.stack_bytes} bytes of local memory per thread" if kernel.stack_bytes else None
    )
