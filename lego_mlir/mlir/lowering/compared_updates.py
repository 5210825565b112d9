"""Atomic updates of 16 bits by compare-and-swap, where a GPU has no instruction for the update.

    %first = llvm.inline_asm "ld.relaxed.gpu.global.b16 $0, [$1];" %address
    %old = scf.while (%seen = %first) : (i16) -> i16 {
      %new = arith.maxsi %seen, %value : i16
      %now = llvm.inline_asm "atom.relaxed.gpu.global.cas.b16 $0, [$1], $2, $3;" ...
      %differs = arith.cmpi ne, %now, %seen : i16
      scf.condition(%differs) %now : i16
    } do { ... }

LLVM would compare the 32 bits around the element: beyond a tensor of an odd number of elements, and
failing wherever a neighbour changes too.

Source: PTX ISA 8.5, 9.7.13.5 (atom; cas.b16 from sm_70 on).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import arith, ir, memref, scf
from lego_mlir.mlir.emit.operations import make

BITS = 16

_OF_FLOATS = {"add": arith.AddFOp, "max": arith.MaximumFOp, "min": arith.MinimumFOp}
_OF_INTEGERS = {
    "add": arith.AddIOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
}


def needs_comparison(kind: str, element: Any, target: Target) -> bool:
    """Return whether an element type has no instruction for an update, but one that compares it.

    Args:
        kind: one of `atomics.KINDS`.
        element: the type, of 16, 32 or 64 bits.
        target: the GPU architecture; bf16 are added by one instruction from sm_90 on.
    """
    if element.width != BITS:
        return False
    if kind != "add" or isinstance(element, ir.IntegerType):
        return True
    return isinstance(element, ir.BF16Type) and target.capability < (9, 0)


def build(kind: str, value: Any, flat: Any, offset: Any, order: str) -> Any:
    """Build the update of the element at an offset of a buffer; return the value before.

    Args:
        kind: one of `atomics.KINDS`.
        value: the number, of 16 bits.
        flat: the buffer, of one dimension, in global or shared memory.
        offset: in elements, an index.
        order: the memory order, "relaxed" or "acq_rel".
    """
    bits = ir.IntegerType.get_signless(BITS)
    is_global = ir.MemRefType(flat.type).memory_space is None
    space, scope = ("global", "gpu") if is_global else ("shared", "cta")
    address, letter = _address(flat, offset, is_global)
    first = _asm(f"ld.relaxed.{scope}.{space}.b16 $0, [$1];", f"=h,{letter}", [address])
    loop = scf.WhileOp([bits], [first])
    with ir.InsertionPoint(loop.before.blocks.append(bits)) as start:
        seen = start.block.arguments[0]
        text = f"atom.{order}.{scope}.{space}.cas.b16 $0, [$1], $2, $3;"
        operands = [address, seen, _cast(bits, _combined(kind, seen, value))]
        now = _asm(text, f"=h,{letter},h,h,~{{memory}}", operands)
        differs = arith.CmpIOp(arith.CmpIPredicate.ne, now, seen).result
        scf.ConditionOp(differs, [now])
    with ir.InsertionPoint(loop.after.blocks.append(bits)) as again:
        scf.YieldOp([again.block.arguments[0]])
    return _cast(value.type, loop.results[0])


def _combined(kind: str, seen: Any, value: Any) -> Any:
    """Build the number to store, of what is in memory and the value of the update."""
    if kind == "exchange":
        return value
    operations = _OF_FLOATS if isinstance(value.type, ir.FloatType) else _OF_INTEGERS
    return operations[kind](_cast(value.type, seen), value).result


def _address(flat: Any, offset: Any, is_global: bool) -> tuple[Any, str]:
    """Build the address of an element; return it and its letter of inline PTX."""
    kind = ir.IntegerType.get_signless(64 if is_global else 32)
    start = memref.ExtractAlignedPointerAsIndexOp(flat).result
    size = arith.ConstantOp(ir.IndexType.get(), BITS // 8).result
    address = arith.AddIOp(start, arith.MulIOp(offset, size).result).result
    return arith.IndexCastOp(kind, address).result, "l" if is_global else "r"


def _cast(kind: Any, value: Any) -> Any:
    return value if value.type == kind else arith.BitcastOp(kind, value).result


def _asm(text: str, constraints: str, operands: Sequence[Any]) -> Any:
    """Build an instruction of PTX with a result of 16 bits."""
    return make(
        "llvm.inline_asm",
        ir.IntegerType.get_signless(BITS),
        *operands,
        asm_string=ir.StringAttr.get(text),
        constraints=ir.StringAttr.get(constraints),
        has_side_effects=ir.UnitAttr.get(),
    )
