"""How the layouts of operands and results belong together, where all of them are placed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir import layout_rules
from lego_mlir.mlir.tile_ir.types import is_tile

Layouts: TypeAlias = Sequence[DistributedLayout]


def misplaced(op: Any, operands: Layouts, results: Layouts) -> str | None:
    """Return what is wrong with the layouts of an operation's tiles, `None` if they fit.

    Args:
        op: the operation.
        operands: the layouts of those operands that are tiles, in order.
        results: the layouts of those results that are tiles, in order.
    """
    try:
        for found, wanted in _compared(op, operands, results):
            if found != wanted:
                return f"has a tile in the layout '{found}', where '{wanted}' fits the others"
    except LegoError as e:
        return f"has tiles whose layouts do not fit: {e.message}"
    return None


_ANY = (tiles.CONVERT, tiles.EXTRACT_PART, tiles.EXTRACT_SLICE, tiles.ITEM, tiles.VOTE)
"""The operations whose tiles may have layouts that do not depend on one another."""


def _compared(
    op: Any, operands: Layouts, results: Layouts
) -> Iterator[tuple[DistributedLayout, DistributedLayout]]:
    """Yield the layouts, and what they should be by the operation's key."""
    if op.name in _ANY or not (operands or results):
        return  # any layout will do, or there is no tile: a store of one element
    key = operands[0] if layout_rules.is_by_operand(op) or not results else results[0]
    numbers = [k for k, operand in enumerate(op.operands) if is_tile(operand)]
    for number, found in zip(numbers, operands, strict=True):
        wanted = layout_rules.operand_layout(op, number, key)
        if wanted is not None:
            yield found, wanted
    wanted = layout_rules.result_layout(op, key)
    for found in results:
        yield found, wanted
