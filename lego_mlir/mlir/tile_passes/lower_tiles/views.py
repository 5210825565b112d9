"""Views of tiles: other names for the registers of a thread. None computes an element.

The layouts of the results are those of `analysis.distributed.views`, as the verifier has checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.slices import part_registers
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_ir.kernels import constant_size
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    coordinates,
    of_elements,
    registers_at,
)


def broadcast(tile: Fragment, layout: DistributedLayout) -> Fragment:
    """Return a tile whose dimensions of size 1 are repeated, in a layout of the result."""
    at = zip(coordinates(layout), tile.layout.shape, strict=True)
    index = [x if n > 1 else (0,) * len(x) for x, n in at]
    registers = registers_at(tile.layout, index) if index else [0] * layout.registers
    return tile.picked(layout, registers)


def join(tiles: Sequence[Fragment], layout: DistributedLayout) -> Fragment:
    """Return tiles of one layout along a new last dimension, in the fastest registers."""
    rows = zip(*(t.elements() for t in tiles), strict=True)
    return of_elements(layout, [x for row in rows for x in row])


def split(tile: Fragment, layouts: Sequence[DistributedLayout]) -> list[Fragment]:
    """Return the tiles along the last dimension, which each thread holds as a whole."""
    return [
        tile.picked(each, registers_at(tile.layout, [*coordinates(each), [k] * each.registers]))
        for k, each in enumerate(layouts)
    ]


def extract_part(tile: Fragment, layout: DistributedLayout, number: Any) -> Fragment:
    """Build the part of a tile with a number, an index.

    Registers have no addresses. If only the program knows the number, there is a way for each:

        %p:4 = scf.index_switch %number
        case 0 { yield %x0, %x1, %x2, %x3 }
        default { yield %x4, %x5, %x6, %x7 }
    """
    registers = part_registers(tile.layout, layout)
    assert registers is not None, "the verifier has seen to it"
    known = constant_size(number)
    if known is not None:
        return tile.picked(layout, registers[known])
    return picked_by(number, [tile.picked(layout, each) for each in registers])


def picked_by(number: Any, fragments: Sequence[Fragment]) -> Fragment:
    """Build the fragment with a number, an index, of several of one layout."""
    *chosen, last = fragments
    switch = ir.Operation.create(
        "scf.index_switch",
        results=[part.type for part in last.parts],
        operands=[number],
        attributes={"cases": ir.DenseI64ArrayAttr.get(range(len(chosen)))},
        regions=len(fragments),
    )
    for region, piece in zip(switch.regions, (last, *chosen), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            ir.Operation.create("scf.yield", operands=list(piece.parts))
    return Fragment(last.layout, tuple(switch.results))
