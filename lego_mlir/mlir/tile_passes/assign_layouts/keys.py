"""Keys: what determines the layouts of all tiles of an operation.

Of most operations it is the layout of one of its tiles (`tile_ir.layout_rules`). A dot by wgmma has
operands in shared memory, or in registers, for the same accumulator; so its key says where they
are. A tile in shared memory is made by a conversion, and a transpose of it is the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.shared_tiles import transposed_tile
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir import layout_rules
from lego_mlir.mlir.tile_ir.types import Placement


@dataclass(frozen=True, slots=True)
class DotKey:
    """The key of a dot by wgmma.

    Attributes:
        accumulator: the layout of the accumulator and of the result.
        a: where operand A is: in registers, or in shared memory.
        b: the layout of operand B in shared memory.
    """

    accumulator: DistributedLayout
    a: Placement
    b: Layout


Key: TypeAlias = DistributedLayout | Layout | DotKey


def result_placement(op: Any, key: Key) -> Placement:
    """Return where the results of an operation are.

    Raises:
        LegoError: the key does not suit the operation.
    """
    match key:
        case DotKey():
            return key.accumulator
        case Layout():
            return transposed_tile(key, tuple(tiles.order_of(op)))
    return layout_rules.result_layout(op, key)


def operand_placement(op: Any, number: int, key: Key) -> Placement | None:
    """Return where an operand must be; `None` if any layout will do."""
    match key:
        case DotKey():
            return (key.a, key.b, key.accumulator)[number]
        case Layout():
            return key
    return layout_rules.operand_layout(op, number, key)


def key_by_operand(op: Any, number: int, placement: Placement) -> Key | None:
    """Return the key with which an operand is at a place; `None` if that does not determine one."""
    if isinstance(placement, Layout):
        return placement if op.name == tiles.TRANSPOSE else None
    return layout_rules.key_by_operand(op, number, placement)


def key_by_result(op: Any, placement: Placement) -> Key | None:
    """Return the key with which the results are at a place; `None` if there is not one."""
    if isinstance(placement, Layout):
        if op.name != tiles.TRANSPOSE:
            return None  # a conversion takes the result there
        order = tiles.order_of(op)
        return transposed_tile(placement, tuple(order.index(d) for d in range(len(order))))
    return layout_rules.key_by_result(op, placement)
