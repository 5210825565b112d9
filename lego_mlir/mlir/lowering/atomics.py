"""Lower lego.atomic, and give atomics the weakest order that is right.

    %old = "lego.atomic"(%v, %h, %i) {layout = #H, kind = "add"}

becomes, under the layout's mask where tiles are partial,

    %old = memref.atomic_rmw addi %v, %flat[%at] : (i32, memref<256xi32>) -> i32

MLIR lowers this to an update that is ordered among all of a system. Elements that a kernel's
threads update together only need each update to be atomic among the threads that see the memory:
those of the device, or for shared memory those of the CTA. `relax` sets that order and scope.

One with `ordered` is a release and an acquire of the device, which orders what surrounds it.

Updates of 16 bits for which the GPU has no instruction compare and swap; see `compared_updates`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, memref, scf
from lego_mlir.mlir.lowering import compared_updates
from lego_mlir.mlir.lowering.accesses import LayoutAccess, constant, zero
from lego_mlir.mlir.modules import operations_in

KINDS = ("add", "max", "min", "and", "or", "xor", "exchange")

_OF_FLOATS = {"add": "addf", "max": "maximumf", "min": "minimumf", "exchange": "assign"}
_OF_INTEGERS = {
    "add": "addi",
    "max": "maxs",
    "min": "mins",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "exchange": "assign",
}
_WIDTHS = (16, 32, 64)


def why_not_atomic(kind: object, element: Any) -> tuple[str, str] | None:
    """Return why an element type has no such atomic update, and a hint; `None` if it has."""
    if kind not in KINDS:
        return f"there is no atomic update {kind!r}", f"there are: {', '.join(KINDS)}"
    is_float, is_integer = (isinstance(element, k) for k in (ir.FloatType, ir.IntegerType))
    if not (is_float or is_integer) or element.width not in _WIDTHS:
        return (
            f"an atomic update of {element}",
            "a GPU updates numbers of 16, 32 and 64 bits: use a tensor of i32 or f32",
        )
    if is_float and kind not in _OF_FLOATS:
        return (
            f"the atomic update '{kind}' of {element}, whose bits are no number of their own",
            f"of floating point there are: {', '.join(_OF_FLOATS)}",
        )
    return None


def update(
    access: LayoutAccess, value: Any, kind: str, target: Target, *, is_ordered: bool = False
) -> Any:
    """Build the update of an element; return the value before, 0 where there is no element."""
    _, runs = access.runs()
    (group,) = access.groups(runs)
    if group.condition is False:
        return constant(access.kind, zero(access.kind))
    if group.condition is True:
        return build_update(
            kind, value, access.flat, group.offsets[0], target, is_ordered=is_ordered
        )
    guard = scf.IfOp(group.condition, [access.kind], has_else=True)
    with ir.InsertionPoint(guard.then_block):
        old = build_update(
            kind, value, access.flat, group.offsets[0], target, is_ordered=is_ordered
        )
        scf.YieldOp([old])
    with ir.InsertionPoint(guard.else_block):
        scf.YieldOp([constant(access.kind, zero(access.kind))])
    return guard.results[0]


def build_update(
    kind: str, value: Any, flat: Any, offset: Any, target: Target, *, is_ordered: bool = False
) -> Any:
    """Build the update of the element at an offset of a buffer; return the value before.

    Args:
        kind: one of `KINDS`.
        value: the number.
        flat: the buffer, of one dimension.
        offset: in elements, an index.
        target: the GPU architecture, which has an instruction for the update or not.
        is_ordered: a release and an acquire of the device, of global memory.
    """
    if compared_updates.needs_comparison(kind, value.type, target):
        order = "acq_rel" if is_ordered else "relaxed"
        return compared_updates.build(kind, value, flat, offset, order)
    if is_ordered:
        return _build_ordered(kind, value, flat, offset)
    names = _OF_FLOATS if isinstance(value.type, ir.FloatType) else _OF_INTEGERS
    which = arith.AtomicRMWKind[names[kind]]
    return memref.AtomicRMWOp(which, value, flat, [offset]).result


def _build_ordered(kind: str, value: Any, flat: Any, offset: Any) -> Any:
    """Build an update that is a release and an acquire, as `build_update`.

    Two fences around a relaxed one would order the same, and take a fence longer.
    """
    i64 = ir.IntegerType.get_signless(64)
    index = ir.IndexType.get()
    start = memref.ExtractAlignedPointerAsIndexOp(flat).result
    size = arith.ConstantOp(index, value.type.width // 8).result
    address = arith.AddIOp(start, arith.MulIOp(offset, size).result).result
    pointer = ir.Operation.create(
        "llvm.inttoptr",
        results=[ir.Type.parse(_GLOBAL)],
        operands=[arith.IndexCastOp(i64, address).result],
    ).result
    of_floats = isinstance(value.type, ir.FloatType)
    operation = (_LLVM_OF_FLOATS if of_floats else _LLVM_OF_INTEGERS)[kind]
    return ir.Operation.create(
        "llvm.atomicrmw",
        results=[value.type],
        operands=[pointer, value],
        attributes={
            "bin_op": ir.IntegerAttr.get(i64, operation),
            "ordering": ir.IntegerAttr.get(i64, _ACQ_REL),
            "syncscope": ir.StringAttr.get("device"),
        },
    ).result


_LLVM_ATOMICS = ("llvm.atomicrmw", "llvm.cmpxchg")
_MEMREF_ATOMICS = ("memref.atomic_rmw", "memref.generic_atomic_rmw")
_MONOTONIC, _ACQ_REL = 2, 6  # LLVM::AtomicOrdering
_SHARED, _GLOBAL = "!llvm.ptr<3>", "!llvm.ptr<1>"

# LLVM::AtomicBinOp
_LLVM_OF_FLOATS = {"exchange": 0, "add": 11, "max": 13, "min": 14}
_LLVM_OF_INTEGERS = {"exchange": 0, "add": 1, "and": 3, "or": 5, "xor": 6, "max": 7, "min": 8}


def has_updates(operations: Iterable[Any]) -> bool:
    """Return whether there are atomics to relax; mark those that the user ordered.

    Args:
        operations: of a module before it is lowered to the llvm dialect.
    """
    found = False
    for op in operations:
        if op.name in _LLVM_ATOMICS:
            op.attributes[dialect.ORDERED_BY_USER] = ir.UnitAttr.get()
        found = found or op.name in _MEMREF_ATOMICS
    return found


def relax(module: Any) -> None:
    """Give atomics monotonic order and the scope of the threads that see their memory.

    Args:
        module: with kernels in the llvm dialect, changed in place; its context is the current one.
    """
    order = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _MONOTONIC)
    for op in operations_in(module.operation):
        if op.name not in _LLVM_ATOMICS:
            continue
        if dialect.ORDERED_BY_USER in op.attributes:
            del op.attributes[dialect.ORDERED_BY_USER]
            continue
        scope = "block" if str(op.operands[0].type) == _SHARED else "device"
        op.attributes["syncscope"] = ir.StringAttr.get(scope)
        name = "ordering" if op.name == "llvm.atomicrmw" else "success_ordering"
        op.attributes[name] = order
