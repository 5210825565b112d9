"""Views of tiles: other names for the registers of a thread. None computes anything.

The layouts of the results are those of `analysis.distributed.views`, as the verifier has checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from lego_mlir.analysis.distributed import DistributedLayout
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
