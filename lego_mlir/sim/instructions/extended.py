"""Extended-precision integer arithmetic with a carry. Source: PTX ISA 9.7.2.

The carry flag is a register of its own, one bit a thread, and follows the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.integer import high_product
from lego_mlir.sim.ptx.form import Form, Handler
from lego_mlir.sim.ptx.syntax import Register
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import PRED, TYPES, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

CARRY = Register("CC.CF")
_INT = "u32|s32|u64|s64"


def _add(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """a + b + carry and its carry out."""
    total = a + b
    result = total + carry.astype(a.dtype)
    return result, (total < a) | (result < total)


def _subtract(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """a - b - borrow and its borrow out."""
    rest = a - b
    result = rest - borrow.astype(a.dtype)
    return result, (a < b) | (rest < result)


def _with_carry(form: Form, carry_in: bool, carry_out: bool) -> Handler:
    """The sum, difference or product-sum of the operands; all are taken as unsigned."""
    kind = TYPES[f"u{form.types[0].bits}"]
    product = form.opcode in ("mad", "madc")
    form.expect(4 if product else 3)
    reads = [form.read(operand, kind) for operand in form.operands[1:]]
    signed = form.types[0].dtype
    flag = form.read(CARRY, PRED) if carry_in else None
    write = form.write(form.operands[0], kind)
    write_flag = form.write(CARRY, PRED) if carry_out else None
    combine = _subtract if form.opcode.startswith("sub") else _add
    none = np.zeros(1, np.bool_)

    def execute(w: Wave) -> None:
        values = [read(w) for read in reads]
        if product:
            a, b, c = values
            low = not form.has("hi")
            p = a * b if low else high_product(a.view(signed), b.view(signed)).view(kind.dtype)
            values = [p, c]
        result, carry = combine(values[0], values[1], none if flag is None else flag(w))
        write(w, result)
        if write_flag is not None:
            write_flag(w, carry)

    return execute


@instruction("9.7.2.1", f"add cc {_INT}")
@instruction("9.7.2.3", f"sub cc {_INT}")
@instruction("9.7.2.5", f"mad hi|lo cc {_INT}")
def first(form: Form) -> Handler:
    """d = a + b (a - b, a * b + c), and the carry out of it."""
    return _with_carry(form, False, True)


@instruction("9.7.2.2", f"addc [cc] {_INT}")
@instruction("9.7.2.4", f"subc [cc] {_INT}")
@instruction("9.7.2.6", f"madc hi|lo [cc] {_INT}")
def following(form: Form) -> Handler:
    """Add or subtract with the carry in; `.cc` keeps the carry out."""
    return _with_carry(form, True, form.has("cc"))
