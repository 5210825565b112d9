"""Groups of `wgmma` as inline PTX.

A group is one operation: the fence, the instructions of all accumulators of a warpgroup along K,
the commit, and the wait where it is wanted. So nothing comes between them, and the accumulators
are registers of one operation: of single ones LLVM would extract the sums of each from a struct and
insert them again, 128 and more.

A wait of its own passes the accumulators on, so that no use of them moves before it.

Descriptors lie some bytes behind others, which PTX of the group adds: sums before the group would
be invariant in loops, and 16 of them more than there are uniform registers, from which the
instructions take them.

Source: PTX ISA 9.7.15.5.2 (wgmma.mma_async), 9.7.15.7 (fence, commit_group, wait_group).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.analysis.instructions.wgmma_operands import Major
from lego_mlir.hardware.limits import WGMMA_K_BYTES, WGMMA_ROWS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit.mma import Instruction

KINDS = {"f32": ("f32", "f"), "i32": ("s32", "r")}
"""The PTX type of each accumulator type, and its register constraint in inline PTX."""

A_WORDS = 4
"""32-bit registers of operand A for one instruction (PTX ISA 9.7.15.5.1.1)."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The matrix descriptor of a part of a tile in shared memory.

    Attributes:
        base: that of the tile, an i64.
        distance: what the part's is larger by.
    """

    base: Any
    distance: int


@dataclass(frozen=True, slots=True)
class Step:
    """One `wgmma` of an accumulator.

    Attributes:
        a: operand A in shared memory, or `A_WORDS` words, i32, in registers.
        b: operand B.
        majors: whether A and B in shared memory are K-major or MN-major.
    """

    a: Descriptor | Sequence[Any]
    b: Descriptor
    majors: tuple[Major, Major]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of `wgmma` on accumulators of 64 rows.

    Attributes:
        instruction: the element types.
        columns: of an accumulator.
    """

    instruction: Instruction
    columns: int

    def __call__(
        self,
        accumulators: Sequence[Sequence[Step]],
        sums: Sequence[Any] | None,
        pending: int | None = None,
    ) -> list[Any]:
        """Build the group; return the elements of the accumulators, one accumulator after another.

        Args:
            accumulators: for each one its instructions, in order.
            sums: the elements before; `None` to start at zero.
            pending: wait until no more groups than this are in flight; `None` for no wait.
        """
        kind, letter = KINDS[self.instruction.accumulator]
        count = self.columns // 2
        total = count * len(accumulators)
        asm = _Asm(ir.Type.parse(self.instruction.accumulator), letter, total, sums)
        zero = "zero" if sums is None else "add"
        lines = [".reg .pred add, zero;", "setp.ne.b32 add, 1, 0;", "setp.ne.b32 zero, 0, 0;"]
        lines += ["wgmma.fence.sync.aligned;"]
        for number, steps in enumerate(accumulators):
            d = ", ".join(f"${number * count + k}" for k in range(count))
            for k, step in enumerate(steps):
                a = asm.operand(step.a, lines)
                b = asm.operand(step.b, lines)
                scale = "add" if k else zero
                lines.append(
                    f"{self._name(kind)} {{{d}}}, {a}, {b}, {scale}{self._modifiers(step)};"
                )
        lines.append("wgmma.commit_group.sync.aligned;")
        if pending is not None:
            lines.append(f"wgmma.wait_group.sync.aligned {pending};")
        return asm.build(["{", *lines, "}"])

    def _name(self, kind: str) -> str:
        depth = WGMMA_K_BYTES * 8 // self.instruction.bits
        ptx = self.instruction.ptx
        shape = f"m{WGMMA_ROWS}n{self.columns}k{depth}"
        return f"wgmma.mma_async.sync.aligned.{shape}.{kind}.{ptx}.{ptx}"

    def _modifiers(self, step: Step) -> str:
        """Return the operands after the predicate: signs of floats, and majors of 16-bit types."""
        if self.instruction.accumulator == "i32":
            return ""
        if self.instruction.bits != 16:
            return ", 1, 1"
        majors = step.majors if isinstance(step.a, Descriptor) else step.majors[1:]
        return "".join([", 1, 1", *(f", {int(major == 'mn')}" for major in majors)])


def wait(
    accumulator: str,
    sums: Sequence[Any],
    pending: int,
    *,
    is_copied: bool = False,
    operands: Sequence[Any] = (),
) -> list[Any]:
    """Build a wait until no more than `pending` groups are in flight; return the finished sums.

    Args:
        accumulator: the element type of the accumulators.
        sums: their elements.
        pending: the groups that may be in flight.
        is_copied: the sums get registers of their own, behind the wait. Else LLVM copies them
            before it, while they are still computed, if the accumulator is needed anew before they
            have been used.
        operands: words of operand A that are read until then; LLVM writes others over registers
            that nothing uses any more.
    """
    _, letter = KINDS[accumulator]
    kind, count = ir.Type.parse(accumulator), len(sums)
    text = f"wgmma.wait_group.sync.aligned {pending};"
    asm = _Asm(kind, letter, count, None if is_copied else sums)
    for word in operands:
        asm.register(word)
    if not is_copied:
        return asm.build([text])
    copies = [f"mov.b32 ${k}, {asm.register(x, letter)};" for k, x in enumerate(sums)]
    return asm.build([text, *copies])


class _Asm:
    """Inline PTX whose results are the elements of accumulators.

    Args:
        kind: the type of an element.
        letter: its register constraint.
        count: the elements.
        sums: what the registers hold before; `None` if that does not matter.
    """

    def __init__(self, kind: Any, letter: str, count: int, sums: Sequence[Any] | None) -> None:
        self._kind = kind
        self._count = count
        self._inputs = list(sums or ())
        # Results are written while operands are still read: they share no registers.
        self._constraints = [f"=&{letter}"] * count + [str(k) for k in range(len(self._inputs))]
        self._numbers: dict[Any, int] = {}
        self._sums: dict[Descriptor, str] = {}

    def operand(self, operand: Descriptor | Sequence[Any], lines: list[str]) -> str:
        """Return the text of an operand; `lines` get what computes it."""
        if not isinstance(operand, Descriptor):
            return f"{{{', '.join(map(self.register, operand))}}}"
        base = self.register(operand.base)
        if not operand.distance:
            return base
        if operand not in self._sums:
            self._sums[operand] = name = f"at{len(self._sums)}"
            lines.append(f".reg .b64 {name};")
            lines.append(f"add.s64 {name}, {base}, {operand.distance};")
        return self._sums[operand]

    def register(self, value: Any, letter: str | None = None) -> str:
        """Return the text of a register, by default of one of an integer."""
        if value not in self._numbers:
            self._numbers[value] = len(self._constraints)
            self._constraints.append(letter or ("l" if value.type.width == 64 else "r"))
            self._inputs.append(value)
        return f"${self._numbers[value]}"

    def build(self, lines: Sequence[str]) -> list[Any]:
        """Build the operation; return its results."""
        listed = ", ".join([str(self._kind)] * self._count)
        struct = ir.Operation.create(
            "llvm.inline_asm",
            results=[ir.Type.parse(f"!llvm.struct<({listed})>")],
            operands=self._inputs,
            attributes={
                "asm_string": ir.StringAttr.get("\n".join(lines)),
                "constraints": ir.StringAttr.get(",".join(self._constraints)),
                "has_side_effects": ir.UnitAttr.get(),
            },
        ).results[0]
        return [
            ir.Operation.create(
                "llvm.extractvalue",
                results=[self._kind],
                operands=[struct],
                attributes={"position": ir.DenseI64ArrayAttr.get([k])},
            ).results[0]
            for k in range(self._count)
        ]
