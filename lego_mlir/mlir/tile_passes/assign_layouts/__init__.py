"""Give every tile a distributed layout, and insert conversions where operations need others.

    %x = "lego.load"(%a, %i, %c0) ...  : ... -> tensor<4x256xf32>
    %m = "lego.reduce"(%x) {kind = "max", dim = 1 : i64} : (tensor<4x256xf32>) -> tensor<4x1xf32>

becomes, for 4 warps,

    %x = "lego.load"(%a, %i, %c0) ...  : ... -> tensor<4x256xf32, #lego.layout<"OrderBy(Row(4, 32,
        8)).OrderBy(RegP([4, 2, 32, 4], [0, 2, 1, 3])).GroupBy([4, 256])">>
    %m = "lego.reduce"(%x) ... -> tensor<4x1xf32, #lego.layout<"... .GroupBy([4, 1, 32])">>

    given_layouts    what the program writes stays
    graph            operations, and the tiles that they pass to each other
    keys             what determines the layouts of all tiles of an operation
    anchors          layouts of loads and stores (memory_anchors), of dots (dot_anchors), and what
                     the program gives
    propagation      the layouts that follow from each of them
    selection        the cheapest choice (costs, min_cut)
    conversions      types change in place; conversions are inserted, cheap tiles computed again
    registers        what does not fit is an error, unless a schedule makes it fit
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.modules import has_inside
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import is_placed, is_tile
from lego_mlir.mlir.tile_passes.assign_layouts.anchors import find_candidates
from lego_mlir.mlir.tile_passes.assign_layouts.conversions import place_tiles
from lego_mlir.mlir.tile_passes.assign_layouts.costs import Costs
from lego_mlir.mlir.tile_passes.assign_layouts.given_layouts import keep_given
from lego_mlir.mlir.tile_passes.assign_layouts.graph import build
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses
from lego_mlir.mlir.tile_passes.assign_layouts.selection import select
from lego_mlir.mlir.tile_passes.simplify_tiles import erase_dead_tiles


def assign_layouts(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place. Where all tiles have layouts it changes nothing.

    Raises:
        LegoError: a layout that the program gives does not fit its tile or the kernel's threads.
    """
    keep_given(kernel)
    if _all_given(kernel):
        return
    graph = build(kernel)
    accesses = Accesses(kernel)
    candidates = find_candidates(graph, kernel, accesses)
    keys = select(candidates, Costs(accesses))
    place_tiles(graph, keys, kernel.warps)
    erase_dead_tiles(kernel)


def _all_given(kernel: TileKernel) -> bool:
    """Return whether the program gives every tile a layout: then it is compiled as it stands."""
    return not has_inside(kernel.launch, _is_open)


def _is_open(op: Any) -> bool:
    """Return whether a tile of an operation has no layout."""
    return any(is_tile(v) and not is_placed(v) for v in (*op.operands, *op.results))
