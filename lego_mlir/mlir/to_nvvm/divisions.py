"""Divisions of floating point: at most 2 units in the last place off, or exact.

    %q = llvm.fdiv %x, %y : f32

becomes

    %q = llvm.call_intrinsic "llvm.nvvm.div.full"(%x, %y) : (f32, f32) -> f32

which is `div.full.f32` (PTX ISA 9.7.3.8): a few instructions in line, for the whole range of
numbers. An exact division calls a routine where exponents are far apart, and a call within its
reach makes the assembler carry out `wgmma` one at a time (C7509). Elements of f16 and bf16 are
divided as f32, which leaves nothing of the error but, seldom, in the last place. Divisions by
constants whose reciprocal is exact are left to LLVM, which multiplies; those of f64 are exact.
"""

from __future__ import annotations

from math import frexp
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.emit.operations import make
from lego_mlir.mlir.modules import operations_in

DIVISIONS = ("arith.divf", "llvm.fdiv")

_INTRINSIC = "llvm.nvvm.div.full"


def is_exact(module: Any, source: Source) -> bool:
    """Return whether a module asks for exact divisions.

    Raises:
        LegoError: its attribute is no unit attribute.
    """
    if dialect.EXACT_MATH not in module.operation.attributes:
        return False
    attribute = module.operation.attributes[dialect.EXACT_MATH]
    if not isinstance(attribute, ir.UnitAttr):
        error: LegoError = source.error(
            f"{dialect.EXACT_MATH} is a unit attribute, not '{attribute}'",
            module.operation.location,
            hint=f"module attributes {{{dialect.EXACT_MATH}}}, or leave it out",
        )
        raise error
    return True


def divide_by_approximation(module: Any) -> None:
    """Replace divisions of f32, f16 and bf16, and of vectors of these.

    Those with the fast-math flag `afn` are left: they ask for less still.

    Args:
        module: with kernels in the llvm dialect, changed in place; its context is the current one.
    """
    for op in list(operations_in(module.operation)):
        if op.name != "llvm.fdiv" or not _is_short(op.results[0].type) or _has_flag(op, "afn"):
            continue
        if _has_exact_reciprocal(op.operands[1]):
            continue
        with ir.InsertionPoint(op), op.location:
            quotient = _divided(*op.operands)
        op.results[0].replace_all_uses_with(quotient)
        op.erase()


def _divided(a: Any, b: Any) -> Any:
    """Return the quotient of two numbers, or of the elements of two vectors."""
    kind = a.type
    if isinstance(kind, ir.VectorType):
        result = make("llvm.mlir.poison", kind)
        for k in range(kind.shape[0]):
            at = _constant(ir.IntegerType.get_signless(64), k)
            x, y = (make("llvm.extractelement", kind.element_type, v, at) for v in (a, b))
            result = make("llvm.insertelement", kind, result, _divided(x, y), at)
        return result
    f32 = ir.F32Type.get()
    if kind != f32:
        x, y = (make("llvm.fpext", f32, value) for value in (a, b))
        return make("llvm.fptrunc", kind, _divided(x, y))
    return ir.Operation.create(
        "llvm.call_intrinsic",
        results=[f32],
        operands=[a, b],
        attributes={
            "intrin": ir.StringAttr.get(_INTRINSIC),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    ).result


def _is_short(kind: Any) -> bool:
    """Return whether a type is f16, bf16 or f32, or a vector of one of them."""
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    return isinstance(element, ir.F16Type | ir.BF16Type | ir.F32Type)


def _has_flag(op: Any, flag: str) -> bool:
    """Return whether an operation has a fast-math flag, alone or as one of all."""
    name = "fastmathFlags"
    flags = str(op.attributes[name]) if name in op.attributes else ""
    return flag in flags or "fast>" in flags


def _has_exact_reciprocal(divisor: Any) -> bool:
    """Return whether a divisor is a constant of powers of two, whose reciprocal LLVM uses."""
    if isinstance(divisor, ir.BlockArgument) or divisor.owner.name != "llvm.mlir.constant":
        return False
    attribute = divisor.owner.attributes["value"]
    if isinstance(attribute, ir.FloatAttr):
        numbers = [attribute.value]
    elif isinstance(attribute, ir.DenseFPElementsAttr):
        numbers = [attribute.get_splat_value().value] if attribute.is_splat else list(attribute)
    else:
        return False
    element = divisor.type
    element = element.element_type if isinstance(element, ir.VectorType) else element
    most = 14 if isinstance(element, ir.F16Type) else 126  # the reciprocal is a normal number
    parts = [frexp(x) for x in numbers]
    return all(abs(digits) == 0.5 and abs(power - 1) <= most for digits, power in parts)


def _constant(kind: Any, n: int) -> Any:
    attributes = {"value": ir.IntegerAttr.get(kind, n)}
    return ir.Operation.create("llvm.mlir.constant", results=[kind], attributes=attributes).result
