"""Logic and shifts. Source: PTX ISA 9.7.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.ptx.decoded import Handler
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Pair, Sink
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import PRED, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

BITS = "pred|b16|b32|b64"
_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


@instruction("9.7.8.1", f"and {BITS}")
def and_(form: Form) -> Handler:
    """d = a & b."""
    t = form.types[0]
    return form.compute(np.bitwise_and, [t, t], t)


@instruction("9.7.8.2", f"or {BITS}")
def or_(form: Form) -> Handler:
    """d = a | b."""
    t = form.types[0]
    return form.compute(np.bitwise_or, [t, t], t)


@instruction("9.7.8.3", f"xor {BITS}")
def xor(form: Form) -> Handler:
    """d = a ^ b."""
    t = form.types[0]
    return form.compute(np.bitwise_xor, [t, t], t)


@instruction("9.7.8.4", f"not {BITS}")
def not_(form: Form) -> Handler:
    """d = ~a."""
    t = form.types[0]
    return form.compute(np.invert, [t], t)


@instruction("9.7.8.5", "cnot b16|b32|b64")
def cnot(form: Form) -> Handler:
    """d = 1 where a is 0, else 0."""
    t = form.types[0]
    return form.compute(lambda a: (a == 0).astype(a.dtype), [t], t)


@instruction("9.7.8.6", "lop3 b32", "lop3 and|or b32")
def lop3(form: Form) -> Handler:
    """Any bitwise function of three operands, given by its truth table.

    Bit 4a + 2b + c of the table is the result for the bits a, b, c. With a boolean operator, p is
    whether the result is not zero, combined with the predicate q.
    """
    combine = _COMBINE.get(form.one_of("and", "or"))
    form.expect(5 if combine is None else 6)
    table = form.constant(form.operands[4], 0, 255)
    t = form.types[0]
    reads = [form.read(operand, t) for operand in form.operands[1:4]]
    target, other = form.operands[0], form.predicate(form.operands[-1]) if combine else None
    write_holds = form.write(Sink(), PRED)
    if combine is not None:
        if not isinstance(target, Pair):
            form.fail(f"the operand {target} where d|p should stand", target)
        write_holds = form.write(target.second, PRED)
        target = target.first
    write = form.write(target, t)

    def execute(w: Wave) -> None:
        operands = [read(w) for read in reads]
        result = np.zeros(1, np.uint32)
        for row in range(8):
            if table >> row & 1:
                a, b, c = (
                    x if row >> bit & 1 else ~x for x, bit in zip(operands, (2, 1, 0), strict=True)
                )
                result = result | (a & b & c)
        write(w, result)
        if combine is not None and other is not None:
            write_holds(w, combine(result != 0, other(w)))

    return execute


@instruction("9.7.8.7", "shf l|r clamp|wrap b32")
def shf(form: Form) -> Handler:
    """Funnel shift: shift the 64 bits with b above a; d = the upper word (left) or the lower.

    The amount is clamped to 32 or taken modulo 32.
    """
    wrap, left = form.has("wrap"), form.has("l")

    def shift(a: Array, b: Array, c: Array) -> Array:
        n = (c & np.uint32(31) if wrap else np.minimum(c, np.uint32(32))).astype(np.uint64)
        both = b.astype(np.uint64) << np.uint64(32) | a
        # The left shift's upper word is a right shift by what is left of 32.
        return (both >> (np.uint64(32) - n if left else n)).astype(np.uint32)

    return form.compute(shift, [form.types[0], form.types[0], U32], form.types[0])


@instruction("9.7.8.8", "shl b16|b32|b64")
def shl(form: Form) -> Handler:
    """d = a << b; an amount beyond the size gives 0."""
    t = form.types[0]
    size, most = np.uint32(t.bits), np.uint32(t.bits - 1)

    def shift(a: Array, b: Array) -> Array:
        shifted: Array = a << np.minimum(b, most).astype(a.dtype)
        return np.where(b < size, shifted, a.dtype.type(0)) if (b >= size).any() else shifted

    return form.compute(shift, [t, U32], t)


@instruction("9.7.8.9", "shr b16|b32|b64|u16|u32|u64|s16|s32|s64")
def shr(form: Form) -> Handler:
    """d = a >> b, filled with the sign for signed types.

    An amount beyond the size gives what the size gives: 0, or the sign.
    """
    t = form.types[0]
    size, most = np.uint32(t.bits), np.uint32(t.bits - 1)

    def shift(a: Array, b: Array) -> Array:
        shifted: Array = a >> np.minimum(b, most).astype(a.dtype)
        if t.is_signed or not (b >= size).any():
            return shifted
        return np.where(b < size, shifted, a.dtype.type(0))

    return form.compute(shift, [t, U32], t)
