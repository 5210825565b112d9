"""Builders of operations by their names, which stand at the bottom of all others.

They insert at the current insertion point, with the current location. The bindings' classes of
operations take longer to load than a kernel to compile.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir


def make(name: str, kind: Any, *operands: Any, **attributes: Any) -> Any:
    """Build an operation of one result of type `kind`; return the result."""
    return ir.Operation.create(
        name, results=[kind], operands=list(operands), attributes=attributes
    ).results[0]


def constant(kind: Any, number: int) -> Any:
    """Build an integer or index of type `kind`."""
    return make("arith.constant", kind, value=ir.IntegerAttr.get(kind, number))
