"""Conditions that hold at an operation: whether it always runs, and which comparisons are true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.scopes import KERNELS

_CONDITIONAL = ("scf.if", "scf.index_switch", "scf.while", "scf.for")

_LESS = (2, 6)
"""The predicates `slt` and `ult` of arith.cmpi."""


def is_conditional(op: Any) -> bool:
    """Return whether an operation is in a branch or a loop that may not run."""
    return any(parent.name in _CONDITIONAL for parent in _around(op))


def host_of(op: Any) -> Any:
    """Return the function that launches the kernel around an operation."""
    around = list(_around(op))
    if not any(parent.name == "gpu.launch" for parent in around):
        return None
    return next((parent for parent in around if parent.name == "func.func"), None)


def comparisons(op: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the comparisons that hold at an operation, each as an index and its upper bound."""
    block = op.operation.block
    for parent in _around(op):
        if parent.name in KERNELS:
            return
        if parent.name == "scf.if" and block == parent.regions[0].blocks[0]:
            yield from _below(parent.operands[0])
        if parent.parent is None:  # the module, which no block contains
            return
        block = parent.block


def _below(condition: Any) -> Iterator[tuple[Any, Any]]:
    """Return the comparisons `a < b` of indices whose conjunction a condition is."""
    if isinstance(condition, ir.BlockArgument):
        return
    op = condition.owner.operation
    if op.name == "arith.andi":
        for part in op.operands:
            yield from _below(part)
        return
    if op.name != "arith.cmpi" or not isinstance(op.operands[0].type, ir.IndexType):
        return
    if ir.IntegerAttr(op.attributes["predicate"]).value in _LESS:
        yield op.operands[0], op.operands[1]


def _around(op: Any) -> Iterator[Any]:
    """Yield the operations that enclose an operation, innermost first."""
    parent = op.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent
