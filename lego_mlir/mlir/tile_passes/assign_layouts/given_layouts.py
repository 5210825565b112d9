"""Layouts that the program writes: read, proven to fit, and kept.

Where an operation's layouts follow from its operand, a layout written on its result becomes a
conversion of the result: it costs nothing if the operand's layout is chosen to suit it.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir import layout_rules
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import (
    element_of,
    is_register_tile,
    layout_of,
    place,
    shape_of,
    tile_type,
)

_FOLLOW = (
    *(tiles.REDUCE, tiles.REDUCE_WITH, tiles.REDUCE_SCATTER),
    *(tiles.TRANSPOSE, tiles.RESHAPE, tiles.JOIN, tiles.SPLIT),
)


def keep_given(kernel: TileKernel) -> None:
    """Make the layouts that a kernel gives canonical, and separate those that only follow.

    Raises:
        LegoError: a layout is none, or does not fit the tile or the kernel's threads.
    """
    for op in kernel.operations():
        arguments = [a for region in op.regions for b in region.blocks for a in b.arguments]
        for value in (*op.results, *arguments):
            if not is_register_tile(value):
                continue
            layout = _given(value, op, kernel)
            if layout is None:
                continue
            place(value, layout)
            is_dot = op.name == tiles.DOT and not layout_rules.is_accumulator(layout)
            if op.name in _FOLLOW or is_dot:
                _separate(value, op, layout)


def _given(value: Any, op: Any, kernel: TileKernel) -> DistributedLayout | None:
    """Return the layout that the type of a tile gives."""
    try:
        layout = layout_of(value)
    except LegoError as e:
        raise kernel.source.error(e.message, op.location, hint=e.hint) from None
    if layout is None or (layout.warps, layout.ctas) == (kernel.warps, kernel.ctas):
        return layout
    raise kernel.source.error(
        f"the layout '{layout}' of a tile {list(layout.shape)} is of {layout.warps} warps in "
        f"{layout.ctas} CTAs, the kernel has {kernel.warps} warps in {kernel.ctas} CTAs",
        op.location,
        hint="the layout begins with OrderBy(Row(warps, 32, registers)); threads without elements "
        "of their own hold copies: GroupBy([*tile, copies])",
    )


def _separate(value: Any, op: Any, layout: DistributedLayout) -> None:
    """Leave a result unplaced, and convert it to the layout that the program gives it."""
    kind = value.type
    value.set_type(tile_type(shape_of(value), element_of(value)))
    following = list(op.block.operations)
    position = next(k for k, other in enumerate(following) if other.operation == op)
    with ir.InsertionPoint(following[position + 1]):
        converted = tiles.convert(kind, value, op.location)
    value.replace_all_uses_except(converted, converted.owner.operation)
