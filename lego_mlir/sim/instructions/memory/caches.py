"""Cache hints: prefetches, priorities, policies. Source: PTX ISA 9.7.9.15–18."""

from __future__ import annotations

import numpy as np

from lego_mlir.sim.instructions.memory.addresses import address_of, space_of
from lego_mlir.sim.ptx.decoded import Handler
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B32, B64, TYPES


@instruction(
    "9.7.9.15",
    "prefetch [global|local] L1|L2",
    "prefetchu L1",
    "prefetch [param|param::entry|const] tensormap",
)
def prefetch(form: Form) -> Handler:
    """Bring a line, or a tensor map, into a cache: the simulator has none."""
    form.expect(1)
    address_of(form, form.operands[0], space_of(form))
    return lambda w: None


@instruction("9.7.9.16", "applypriority [global] L2::evict_normal")
@instruction("9.7.9.17", "discard [global] L2")
def discard(form: Form) -> Handler:
    """Change how long a line stays in the cache, or give it up, which keeps its bytes here."""
    form.expect(2)
    address_of(form, form.operands[0], space_of(form))
    form.constant(form.operands[1], 128, 128)
    return lambda w: None


_PRIORITY = "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"
_SECOND = "[L2::evict_first|L2::evict_unchanged]"


@instruction(
    "9.7.9.18",
    f"createpolicy fractional {_PRIORITY} {_SECOND} b64",
    f"createpolicy range [global] {_PRIORITY} {_SECOND} b64",
    "createpolicy cvt L2 b64",
)
def createpolicy(form: Form) -> Handler:
    """A cache policy for the hints of other instructions, which change nothing."""
    match form.modifiers[0]:
        case "range":
            form.expect(4)
            address_of(form, form.operands[1], space_of(form))
            for size in form.operands[2:]:
                form.read(size, B32)
        case "cvt":
            form.expect(2)
            form.read(form.operands[1], B64)
        case _:
            form.expect(1, 2)
            for fraction in form.operands[1:]:
                form.read(fraction, TYPES["f32"])
    write = form.write(form.operands[0], B64)
    return lambda w: write(w, np.zeros(1, np.uint64))
