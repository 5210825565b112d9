"""What the lanes of a warp compute together, each with its elements of the operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lego_mlir.frontend.casts import element_type
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from lego_mlir.mlir.emit.mma import Instruction

_REGISTERS = {"A": 4, "B": 2, "the accumulator": 4}
"""32-bit registers of a lane by operand of `mma.m16n8`."""


def mma(a: Value, b: Value, total: Value) -> Value:
    """Multiply two matrices that a warp holds by one `mma.sync`, and add them to an accumulator.

    Every lane passes its elements of the operands, in the order of registers; the layouts
    `operand_a(bits).layout`, `operand_b(bits).layout` and `accumulator().layout` of
    `lego_mlir.analysis.instructions.mma_fragments` say which those are. All lanes of the warp
    call it together. (PTX ISA, "Matrix fragments for mma.m16n8k16" and "k32".)

    Args:
        a: a vector of 16 bytes, of a 16×K matrix with K = 32 / element bytes.
        b: a vector of 8 bytes, of a K×8 matrix of the same element type.
        total: a vector of 4 elements, f32 or i32, of a 16×8 matrix.

    Returns:
        A vector as `total`.

    Raises:
        LegoError: no instruction multiplies these types.
    """
    from lego_mlir.mlir.emit.mma import MmaBuilder

    trace = current("mma")
    instruction = _instruction(a, b, total, trace)
    builder = MmaBuilder(instruction)
    with trace.here():
        left, right = (_registers(x, what, instruction, trace) for x, what in ((a, "A"), (b, "B")))
        sums = [total[k].ssa for k in range(_REGISTERS["the accumulator"])]
        found = builder(builder.operands(left), builder.operands(right), sums)
    (result,) = trace.create("vector.from_elements", [total.ssa.type], found)
    return Value(result, trace)


def _instruction(a: Any, b: Any, total: Any, trace: Trace) -> Instruction:
    """Return the instruction for these operands."""
    from lego_mlir.mlir.emit.mma import INSTRUCTIONS

    kinds = [x.ssa.type if isinstance(x, Value) else None for x in (a, b, total)]
    if not all(isinstance(kind, ir.VectorType) and kind.rank == 1 for kind in kinds):
        names = ", ".join(str(k or repr(x)) for k, x in zip(kinds, (a, b, total), strict=True))
        raise trace.error(f"'mma' takes three vectors, not {names}")
    elements = [str(element_type(kind)) for kind in kinds]
    for found in INSTRUCTIONS:
        if [found.element, found.element, found.accumulator] == elements:
            if tuple(kinds[2].shape) != (_REGISTERS["the accumulator"],):  # type: ignore[union-attr]
                raise trace.error(f"a lane has 4 elements of the accumulator, not {kinds[2]}")
            return found
    raise trace.error(
        f"no mma.sync multiplies {elements[0]} by {elements[1]} and adds {elements[2]}",
        hint="; ".join(map(str, INSTRUCTIONS)),
    )


def _registers(value: Value, what: str, instruction: Instruction, trace: Trace) -> Sequence[Any]:
    """Return a lane's elements of an operand as 32-bit registers."""
    count = _REGISTERS[what]
    needed = count * 32 // instruction.bits
    if tuple(value.ssa.type.shape) != (needed,):
        raise trace.error(f"a lane has {needed} elements of operand {what}, not {value.dtype}")
    words = value.bitcast("i32")
    return [words[k].ssa for k in range(count)]
