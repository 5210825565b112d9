"""The `mma.sync` instructions, and the operations that represent them.

Source: PTX ISA, "Multiply-and-Accumulate Instruction: mma".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_ROWS
from lego_mlir.mlir.bindings import ir


@dataclass(frozen=True, slots=True)
class Instruction:
    """An `mma.sync.aligned.m16n8kK.row.col`.

    Attributes:
        element: the operands' element type in MLIR.
        ptx: the same type in PTX.
        accumulator: the accumulator's element type in MLIR.
        bits: the size of an operand's element.
        capability: the first compute capability that has it.
    """

    element: str
    ptx: str
    accumulator: str
    bits: int
    capability: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and K."""
        return MMA_ROWS, MMA_COLUMNS, 256 // self.bits

    def __str__(self) -> str:
        m, n, k = self.shape
        return f"{self.element} to {self.accumulator} (m{m}n{n}k{k})"


INSTRUCTIONS = (
    Instruction("f16", "f16", "f32", 16, (8, 0)),
    Instruction("bf16", "bf16", "f32", 16, (8, 0)),
    Instruction("i8", "s8", "i32", 8, (8, 0)),
    Instruction("f8E4M3FN", "e4m3", "f32", 8, (8, 9)),
    Instruction("f8E5M2", "e5m2", "f32", 8, (8, 9)),
)


class MmaBuilder:
    """Builds `mma.sync` operations of one kind in the current context."""

    def __init__(self, instruction: Instruction) -> None:
        self._element_type = ir.Type.parse(instruction.accumulator)
        self._operand_type = None
        if instruction.element == "f16":
            self._operand_type = ir.VectorType.get([2], ir.F16Type.get())
        self._accumulator_type = ir.Type.parse(
            f"!llvm.struct<({', '.join([instruction.accumulator] * 4)})>"
        )
        self._positions = [ir.DenseI64ArrayAttr.get([k]) for k in range(4)]
        if instruction.element.startswith("f8"):
            self._name, self._attributes = "llvm.inline_asm", _as_text(instruction)
        else:
            self._name, self._attributes = "nvvm.mma.sync", _as_operation(instruction)

    def operands(self, registers: Sequence[Any]) -> list[Any]:
        """Cast 32-bit registers to the operand type of the instruction."""
        if self._operand_type is None:
            return list(registers)
        return [
            ir.Operation.create("llvm.bitcast", results=[self._operand_type], operands=[r]).results[
                0
            ]
            for r in registers
        ]

    def __call__(self, a: Sequence[Any], b: Sequence[Any], accumulator: Sequence[Any]) -> list[Any]:
        """Make an instruction, and return the four accumulator elements of a lane."""
        made = ir.Operation.create(
            self._name,
            results=[self._accumulator_type],
            operands=[*a, *b, *accumulator],
            attributes=self._attributes,
        ).results[0]
        return [
            ir.Operation.create(
                "llvm.extractvalue",
                results=[self._element_type],
                operands=[made],
                attributes={"position": position},
            ).results[0]
            for position in self._positions
        ]


def _as_operation(instruction: Instruction) -> dict[str, Any]:
    """Return the attributes of an nvvm.mma.sync."""
    m, n, k = instruction.shape
    kind = ir.Attribute.parse(f"#nvvm.mma_type<{instruction.ptx}>")
    attributes = {
        "shape": ir.Attribute.parse(f"#nvvm.shape<m = {m}, n = {n}, k = {k}>"),
        "layoutA": ir.Attribute.parse("#nvvm.mma_layout<row>"),
        "layoutB": ir.Attribute.parse("#nvvm.mma_layout<col>"),
        "multiplicandAPtxType": kind,
        "multiplicandBPtxType": kind,
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([4, 2, 4]),
    }
    if instruction.accumulator == "i32":
        attributes["intOverflowBehavior"] = ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>")
    return attributes


def _as_text(instruction: Instruction) -> dict[str, Any]:
    """Return the attributes of the instruction as inline PTX, if nvvm.mma.sync does not have it.

    It is marked as having side effects, since LLVM could otherwise move it under a condition that
    is false for some lanes of the warp.
    """
    m, n, k = instruction.shape
    kind = instruction.ptx
    text = (
        f"mma.sync.aligned.m{m}n{n}k{k}.row.col.f32.{kind}.{kind}.f32 "
        "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"
    )
    return {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(",".join(["=f"] * 4 + ["r"] * 6 + ["f"] * 4)),
        "has_side_effects": ir.UnitAttr.get(),
    }
