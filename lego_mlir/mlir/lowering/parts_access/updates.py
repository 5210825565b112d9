"""Atomic updates of the elements that a thread holds, with as few instructions as a GPU has.

From sm_90 on one instruction adds up to 16 bytes of f32 to global memory. Nothing else is updated
by vectors. Threads do not wait for what was there before.

Source: PTX ISA 8.5, 9.7.13.6 (red, with vectors from sm_90 on).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import arith, ir, memref, vector
from lego_mlir.mlir.lowering import atomics
from lego_mlir.mlir.lowering.parts_access.accesses import Access
from lego_mlir.mlir.lowering.parts_access.plan import Plan, bytes_of


class Updates:
    """The updates of memory by the values of accesses.

    Args:
        kind: one of `atomics.KINDS`.
        target: the GPU architecture.
    """

    def __init__(self, kind: str, target: Target) -> None:
        self._kind = kind
        self._target = target

    def __call__(self, plan: Plan, access: Access, value: Any) -> None:
        """Build the update of the elements of one access.

        Args:
            plan: the accesses, with their memory.
            access: the access.
            value: an element, or a vector of as many as the access has.
        """
        count, flat, at = len(access.lanes), plan.memory.flat, plan.offset(access)
        if count > 1 and self._is_vector(flat):
            _add(flat, at, [_element(value, k) for k in range(count)])
            return
        for k in range(count):
            one = _element(value, k) if count > 1 else value
            offset = at if k == 0 else arith.AddIOp(at, _index(k)).result
            atomics.build_update(self._kind, one, flat, offset, self._target)

    def _is_vector(self, flat: Any) -> bool:
        """Return whether an instruction updates several elements of a buffer."""
        kind = ir.MemRefType(flat.type)
        is_global = kind.memory_space is None
        is_f32 = isinstance(kind.element_type, ir.F32Type)
        return self._kind == "add" and self._target.has_clusters and is_global and is_f32


def _add(flat: Any, at: Any, values: Sequence[Any]) -> None:
    """Build one instruction that adds two or four f32, from the offset `at` on."""
    i64 = ir.IntegerType.get_signless(64)
    size = bytes_of(ir.MemRefType(flat.type).element_type)
    start = memref.ExtractAlignedPointerAsIndexOp(flat).result
    address = arith.AddIOp(start, arith.MulIOp(at, _index(size)).result).result
    names = ", ".join(f"${k + 1}" for k in range(len(values)))
    text = f"red.relaxed.gpu.global.add.v{len(values)}.f32 [$0], {{{names}}};"
    ir.Operation.create(
        "llvm.inline_asm",
        results=[],
        operands=[arith.IndexCastOp(i64, address).result, *values],
        attributes={
            "asm_string": ir.StringAttr.get(text),
            "constraints": ir.StringAttr.get(",".join(["l", *"f" * len(values), "~{memory}"])),
            "has_side_effects": ir.UnitAttr.get(),
        },
    )


def _element(value: Any, number: int) -> Any:
    return vector.ExtractOp(value, [], [number]).result


def _index(number: int) -> Any:
    return arith.ConstantOp(ir.IndexType.get(), number).result
