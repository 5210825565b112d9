"""Views of tiles: other names for the registers of a thread. None computes anything."""

from __future__ import annotations

from collections.abc import Sequence

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    joined,
    reduced,
    reshaped,
    split,
    transposed,
)
from lego_mlir.mlir.tile_passes.lower_tiles.conversions import convert
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    coordinates,
    of_elements,
    registers_at,
)
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


def broadcast(tile: Fragment, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Return a tile whose dimensions of size 1 are repeated, in a layout of the result."""
    quotient = layout
    for dim, (n, m) in enumerate(zip(tile.layout.shape, layout.shape, strict=True)):
        if n != m:
            quotient = reduced(quotient, dim)
    tile = convert(tile, quotient, threads)
    at = coordinates(layout)
    index = [x if n > 1 else (0,) * len(x) for x, n in zip(at, quotient.shape, strict=True)]
    return tile.picked(layout, registers_at(quotient, index) if index else [0] * layout.registers)


def transpose(
    tile: Fragment, order: Sequence[int], layout: DistributedLayout, threads: Threads
) -> Fragment:
    """Return a tile with its dimensions in another order, in a layout of the result."""
    return convert(tile.renamed(transposed(tile.layout, order)), layout, threads)


def reshape(tile: Fragment, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Return a tile's elements in row-major order as a tile of another shape."""
    return convert(tile.renamed(reshaped(tile.layout, layout.shape)), layout, threads)


def join(tiles: Sequence[Fragment], layout: DistributedLayout, threads: Threads) -> Fragment:
    """Return tiles of one layout along a new last dimension, in a layout of the result."""
    elements = [x for row in zip(*(t.elements() for t in tiles), strict=True) for x in row]
    whole = of_elements(joined(tiles[0].layout, len(tiles)), elements)
    return convert(whole, layout, threads)


def split_last(
    tile: Fragment, layouts: Sequence[DistributedLayout], threads: Threads
) -> list[Fragment]:
    """Return the tiles along the last dimension, each in its layout."""
    each = split(tile.layout)
    at = coordinates(each)
    found = []
    for k, layout in enumerate(layouts):
        index = [*at, [k] * each.registers]
        part = tile.picked(each, registers_at(tile.layout, index))
        found.append(convert(part, layout, threads))
    return found
