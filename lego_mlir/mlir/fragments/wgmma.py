"""The `wgmma` instructions of one contraction: a sequence along K on the same registers.

They are one inline PTX operation. With one operation each, the lowering would extract the whole
accumulator from the struct and insert it again between instructions, 128 elements and more.

Source: PTX ISA 9.7.15.5.2 (wgmma.mma_async).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.analysis.instructions.wgmma_operands import Major
from lego_mlir.hardware.limits import WGMMA_K_BYTES, WGMMA_ROWS
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.emit.mma import Instruction
from lego_mlir.mlir.fragments.registers import AccumulatorRegisters
from lego_mlir.mlir.tiles.pointers import i32_constant

_KINDS = {"f32": ("f32", "f"), "i32": ("s32", "r")}
"""The PTX type of each accumulator type, and its register constraint in inline PTX."""


@dataclass(frozen=True, slots=True)
class WgmmaChain:
    """The instructions that add a matmul to the accumulator of 64 rows.

    Attributes:
        instruction: the element types.
        registers: the accumulator's registers.
        columns: the tile's columns.
        majors: whether A and B are K-major or MN-major, for each step along K.
    """

    instruction: Instruction
    registers: AccumulatorRegisters
    columns: int
    majors: Sequence[tuple[Major, Major]]

    def __call__(
        self, accumulator: Any, descriptors: Sequence[tuple[Any, Any]], begins: Any = None
    ) -> Any:
        """Make the instructions, and return the new accumulator, a struct.

        Args:
            accumulator: the old one, a struct; `None` to start at zero.
            descriptors: the matrix descriptors of A and B, for each step along K.
            begins: an i1, whether to start at zero; `None` if that is known statically.
        """
        count = self.columns // 2
        numbers = self.registers.numbers(accumulator) if accumulator is not None else []
        words = [word for pair in descriptors for word in pair]
        _, letter = _KINDS[self.instruction.accumulator]
        constraints = [f"={letter}"] * count
        constraints += [*map(str, range(len(numbers))), *["l"] * len(words)]
        adds = "0" if accumulator is None else "1"
        if accumulator is not None and begins is not None:
            words.append(_word_of_not(begins))
            constraints.append("r")
            adds = f"${len(constraints) - 1}"
        text = self._text(count, count + len(numbers), adds)
        return ir.Operation.create(
            "llvm.inline_asm",
            results=[self.registers.struct],
            operands=[*numbers, *words],
            attributes={
                "asm_string": ir.StringAttr.get(text),
                "constraints": ir.StringAttr.get(",".join(constraints)),
                "has_side_effects": ir.UnitAttr.get(),
            },
        ).results[0]

    def _text(self, count: int, first: int, adds: str) -> str:
        """Return the PTX of the instructions.

        Args:
            count: the elements of the accumulator, which are the operands from 0 on.
            first: the operand that is the first descriptor.
            adds: the operand or number that is 0 if the accumulator starts at zero.
        """
        kind, _ = _KINDS[self.instruction.accumulator]
        depth = WGMMA_K_BYTES * 8 // self.instruction.bits
        shape = f"m{WGMMA_ROWS}n{self.columns}k{depth}"
        types = f"{kind}.{self.instruction.ptx}.{self.instruction.ptx}"
        accumulator = ", ".join(f"${k}" for k in range(count))
        lines = [
            f"wgmma.mma_async.sync.aligned.{shape}.{types} {{{accumulator}}}, "
            f"${first + 2 * k}, ${first + 2 * k + 1}, "
            f"{'begin' if adds != '1' and k == 0 else 'add'}{self._modifiers(*majors)};"
            for k, majors in enumerate(self.majors)
        ]
        predicates = [".reg .pred add;", "setp.ne.b32 add, 1, 0;"]
        if adds != "1":
            predicates += [".reg .pred begin;", f"setp.ne.b32 begin, {adds}, 0;"]
        return "\n".join(["{", *predicates, *lines, "}"])

    def _modifiers(self, *majors: Major) -> str:
        """Return the operands after the predicate: signs of floats, and majors of 16-bit types."""
        if self.instruction.accumulator == "i32":
            return ""
        if self.instruction.bits != 16:
            return ", 1, 1"
        return "".join([", 1, 1", *(f", {int(major == 'mn')}" for major in majors)])


def _word_of_not(condition: Any) -> Any:
    """Return an i32 that is 0 if a condition holds, else 1."""
    one, zero = i32_constant(1), i32_constant(0)
    return arith.SelectOp(condition, zero, one).result
