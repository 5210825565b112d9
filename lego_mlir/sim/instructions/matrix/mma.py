"""Matrix multiply-accumulate by a warp: `mma.sync`. Source: PTX ISA 9.7.14.5.

All warps that execute it together are computed as one batch of matrices. Numerics are those
of `elements`: sums in float64, rounded once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lego_mlir.sim.instructions.matrix.warpwide import everyone, source, target, whole_warps
from lego_mlir.sim.numerics import fragments
from lego_mlir.sim.numerics.elements import ELEMENTS, accumulated, multiplied, pack
from lego_mlir.sim.ptx.decoded import WarpCollective
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@instruction(
    "9.7.14.5.14",
    "mma sync aligned m16n8k8|m16n8k16 row col f16 f16 f16 f16",
    "mma sync aligned m16n8k8|m16n8k16 row col f32 f16 f16 f32",
    "mma sync aligned m16n8k8|m16n8k16 row col f32 bf16 bf16 f32",
    "mma sync aligned m16n8k4|m16n8k8 row col f32 tf32 tf32 f32",
    "mma sync aligned m16n8k16|m16n8k32 row col f32 e4m3|e5m2 e4m3|e5m2 f32",
    "mma sync aligned m16n8k16|m16n8k32 row col f16 e4m3|e5m2 e4m3|e5m2 f16",
    "mma sync aligned m8n8k4|m16n8k4|m16n8k8|m16n8k16 row col f64 f64 f64 f64",
    "mma sync aligned m8n8k16|m16n8k16|m16n8k32 row col [satfinite] s32 s8|u8 s8|u8 s32",
    "mma sync aligned m8n8k32|m16n8k32|m16n8k64 row col [satfinite] s32 s4|u4 s4|u4 s32",
    "mma sync aligned m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 xor|and popc",
)
def mma(form: Form) -> WarpCollective:
    """Compute D = A·B + C of matrices in the registers of the warp's lanes (see `fragments`).

    For single bits, the dot product is the number of ones in the `and` or `xor` of row and column.
    """
    form.expect(4)
    rows, _, depth = shape_of(form)
    words = [word for word in form.modifiers[5:] if word in ELEMENTS]
    _, a_type, b_type, c_type = (ELEMENTS[word] for word in words)
    a_fragment = fragments.operand_a(rows, depth, a_type.packed)
    b_fragment = fragments.operand_b(depth, b_type.packed)
    c_fragment = fragments.accumulator(rows, 8, c_type.packed)
    d_operand, a_operand, b_operand, c_operand = form.operands
    write = target(form, d_operand, c_fragment.registers, c_type.register)
    a = source(form, a_operand, a_fragment.registers, a_type.register)
    b = source(form, b_operand, b_fragment.registers, b_type.register)
    c = source(form, c_operand, c_fragment.registers, c_type.register)
    multiply = differing_bits if form.has("xor") else multiplied
    saturate = form.has("satfinite")
    opcode = form.instruction.opcode

    def execute(w: Wave) -> None:
        lanes = whole_warps(w, opcode)
        a_values = a_fragment.gather(a_type.unpack(a(w, lanes)))
        b_values = b_fragment.gather(b_type.unpack(b(w, lanes)))
        old = c_fragment.gather(c_type.unpack(c(w, lanes)))
        new = accumulated(multiply(a_values, b_values), old, c_type, saturate)
        write(w, lanes, pack(c_fragment.scatter(new), c_type))

    return WarpCollective(everyone, execute)


def shape_of(form: Form) -> tuple[int, int, int]:
    """Return m, n and k of a matrix instruction."""
    found = next(filter(None, map(_SHAPE.fullmatch, form.modifiers)))
    m, n, k = map(int, found.groups())
    return m, n, k


def differing_bits(a: Array, b: Array) -> Array:
    """Return the number of ones in the `xor` of the rows of a and the columns of b."""
    ones = a.sum(axis=-1, keepdims=True, dtype=float) + b.sum(axis=-2, keepdims=True, dtype=float)
    value: Array = ones - 2 * multiplied(a, b)
    return value
