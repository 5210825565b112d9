"""Slices of tiles: of which registers a thread has one, and those that CTAs of a cluster hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from lego_mlir.analysis.distributed.factors import REPLICA, Factor
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.hardware.limits import WARP_THREADS


def slice_registers(
    tile: DistributedLayout, piece: DistributedLayout, offsets: Sequence[int]
) -> list[int] | None:
    """Return for each register of a slice the register of the tile with the same element.

    Args:
        tile: the layout of the tile.
        piece: the layout of the slice.
        offsets: the index of the slice's first element in the tile.

    Returns:
        `None` if a thread does not hold the elements of the tile that it would of the slice.
    """
    return _slice_registers(tile, piece, tuple(offsets))


def part_registers(tile: DistributedLayout, part: DistributedLayout) -> list[list[int]] | None:
    """Return what `slice_registers` does for each of the parts of a tile, row by row.

    Args:
        tile: the layout of the tile.
        part: the layout of a part, whose shape divides the tile's.
    """
    starts = product(*(range(0, n, m) for n, m in zip(tile.shape, part.shape, strict=True)))
    found = [slice_registers(tile, part, at) for at in starts]
    return [x for x in found if x is not None] if None not in found else None


@lru_cache(maxsize=1 << 8)
def _slice_registers(
    tile: DistributedLayout, piece: DistributedLayout, offsets: tuple[int, ...]
) -> list[int] | None:
    if (tile.ctas, tile.warps) != (piece.ctas, piece.warps):
        return None
    threads = np.ix_(range(tile.ctas), range(tile.warps), range(WARP_THREADS))
    cta, warp, lane = (x[..., None] for x in threads)
    first = piece.apply(0, 0, 0, np.arange(piece.registers)).coordinates
    at = [np.broadcast_to(x, piece.registers) + n for x, n in zip(first, offsets, strict=True)]
    found = np.broadcast_to(tile.inverse(at).register, piece.registers)
    held = tile.apply(cta, warp, lane, found).coordinates
    wanted = piece.apply(cta, warp, lane, np.arange(piece.registers)).coordinates
    same = all((x == y + n).all() for x, y, n in zip(held, wanted, offsets, strict=True))
    return found.tolist() if same else None


@lru_cache(maxsize=1 << 8)
def stacked(layout: DistributedLayout, dim: int, count: int) -> DistributedLayout:
    """Return the layout of a tile of which every thread holds its elements of each slice.

    Args:
        layout: of a slice; `block` of the result gives it again.
        dim: the dimension along which slices follow one another.
        count: how many there are.
    """
    shape = list(layout.shape)
    slices = Factor(dim, count, shape[dim])
    shape[dim] *= count
    ctas, warps, lanes, registers = layout.places
    return DistributedLayout(tuple(shape), (ctas, warps, lanes, (slices, *registers)))


@lru_cache(maxsize=1 << 8)
def slice_of_cta(layout: DistributedLayout) -> DistributedLayout | None:
    """Return the layout of the slice of a tile that each CTA of a cluster holds.

    CTA k holds slice k, and lays it out as every other CTA does its own.

    Returns:
        `None` if CTAs hold other elements than those of contiguous slices, or the same ones.
    """
    ctas, warps, lanes, registers = layout.places
    shape = list(layout.shape)
    for f in ctas:
        if f.dim == REPLICA or f.span != shape[f.dim]:
            return None
        shape[f.dim] = f.stride
    return DistributedLayout(tuple(shape), ((), warps, lanes, registers)) if ctas else layout
