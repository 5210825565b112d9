"""The sectors that a tile's stores touch: a store of a warp moves those that it has a part of."""

from __future__ import annotations

from math import gcd
from typing import Any

from lego_mlir.hardware.limits import SECTOR_BYTES, WARP_THREADS
from lego_mlir.kernels.permute.by_words.row_side import RowSide
from lego_mlir.kernels.permute.by_words.traversal import Traversal
from lego_mlir.kernels.permute.runs import Side

_BEGINS = 8
"""So many begins of rows in a sector are looked at."""


def stored_sectors(
    target: RowSide, words: Traversal, ends: Traversal | None, unit_bytes: int
) -> float:
    """Return the bytes of the sectors that stores touch, for each byte that they store.

    A sector counts for each store of a warp that has a part of it. All steps of threads are as the
    first ones, from row to row.

    Args:
        target: the tile in the output, of tiles that do not store whole sectors.
        words: how threads go over the words of rows.
        ends: how they go over the units that are stored apart from words, if there are any.
        unit_bytes: bytes of a unit.
    """
    import numpy as np

    sector = SECTOR_BYTES // unit_bytes
    side, first = target.side, target.side.run[0]
    starts = (target.advance * target.inner, (side.sizes[first] - side.tile[first]) * target.inner)
    apart = gcd(sector, *starts, *(side.strides[k] * side.tile[k] for k in side.outer))
    begins = np.arange(0, sector, max(apart, sector // _BEGINS))[:, None]
    units = target.advance * target.inner
    found = 0.0
    for traversal, width in ((words, target.word), (ends, 1)):
        if traversal is None:
            continue
        rows, nth = traversal.place(np.arange(traversal.count))
        start = begins + sum(
            (row * side.strides[k] for k, row in zip(side.outer, rows, strict=True)), start=0
        )
        across = traversal.threads[-1]
        sectors = 0
        for step in range(0, traversal.words, across):
            number = nth + step
            if width == target.word and traversal is words:
                at, stored = _word(target, start, number)
            else:
                at, stored = _end(target, start, number)
            stored = stored & (number < traversal.words)
            sectors += _distinct(np.where(stored, at // sector, -1))
        lines = traversal.count // across
        found += sectors / (len(begins) * lines * units) * sector
    return found


def least_stored_sectors(side: Side, unit_bytes: int) -> float:
    """Return the least that `stored_sectors` returns for a tile: no sector of a row twice.

    Args:
        side: the tile in the output.
        unit_bytes: bytes of a unit.
    """
    sector, row, first = SECTOR_BYTES // unit_bytes, side.extents[-1], side.run[0]
    if side.strides[first] * side.sizes[first] < row + sector:
        return 1.0  # rows are so near that a store may have parts of two in a sector
    apart = gcd(sector, row, *side.strides_of_rows)
    return (row + sector - max(apart, sector // _BEGINS)) / row


def least_parts(target: RowSide, words: Traversal) -> float:
    """Return the least that `stored_sectors` returns for a tile that stores whole sectors.

    A store of a warp has as many words of a row as threads are side by side on it.

    Args:
        target: the tile in the output.
        words: how threads go over the words of rows.
    """
    units, sector = target.advance * target.inner, target.sector
    whole = units // sector * sector / units
    return max(1.0, whole * sector / (words.threads[-1] * target.word))


def _word(target: RowSide, start: Any, number: Any) -> tuple[Any, Any]:
    """Return the unit that a thread's word begins with, and whether it is stored."""
    word, group = target.word, max(target.group, target.sector)
    end = start + target.units
    if group == 1:
        at = (-(-start // word) + number) * word
        return at, at + word <= end
    if target.is_aligned and target.sector == 1:
        at = start // group * group + number * word
        return at, (at >= start) & (at < end)
    at = -(-start // group) * group + number * word
    if target.sector > 1:
        return at, at < -(-(start + target.advance * target.inner) // group) * group
    return at, at < end // group * group


def _end(target: RowSide, start: Any, number: Any) -> tuple[Any, Any]:
    """Return the unit that a thread stores apart from words, and whether it is one."""
    group = target.word if target.group == 1 else target.group
    most = target.ends // 2
    ahead, behind = -(-start // group) * group, (start + target.units) // group * group
    is_head = number < most
    at = number - most * (1 - is_head) + is_head * (ahead - most) + (1 - is_head) * behind
    is_one = (is_head & (at >= start)) | (~is_head & (at >= ahead))
    return at, is_one & (at < start + target.units)


def _distinct(sectors: Any) -> int:
    """Return how many sectors warps touch, by threads along the last axis; -1 is none."""
    import numpy as np

    missing = -sectors.shape[-1] % WARP_THREADS
    padded = np.pad(sectors, [(0, 0), (0, missing)], constant_values=-1)
    warps = np.sort(padded.reshape(-1, WARP_THREADS), axis=1)
    before = np.pad(warps[:, :-1], [(0, 0), (1, 0)], constant_values=-1)
    return int((warps != before).sum())
