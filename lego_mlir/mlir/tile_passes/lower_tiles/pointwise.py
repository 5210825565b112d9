"""Pointwise operations: the same operation on each part.

    %z = arith.addf %x, %y : tensor<256xf32, #D>

becomes, for each of the parts,

    %z0 = arith.addf %x0, %y0 : vector<4xf32>

Where parts of all operands are equal, as those of a tile are that was broadcast, so is the
result's, and it is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.types import element_of
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, part_type


def lower_pointwise(op: Any, operands: Sequence[Any]) -> Fragment:
    """Build a pointwise operation of arith or math on each part.

    Args:
        op: the operation, of one result.
        operands: for each of its operands the fragment, or the number that all elements have.
    """
    first = next(x for x in operands if isinstance(x, Fragment))
    kind = part_type(first.layout, element_of(op.results[0]))
    attributes = named_attributes(op)
    made: dict[tuple[Any, ...], Any] = {}
    parts = []
    for k in range(len(first.parts)):
        key = tuple(x.parts[k] if isinstance(x, Fragment) else x for x in operands)
        if key not in made:
            made[key] = ir.Operation.create(
                op.name, results=[kind], operands=list(key), attributes=attributes
            ).results[0]
        parts.append(made[key])
    return Fragment(first.layout, tuple(parts))
