"""Which tile a permutation of dimensions moves at a time.

A large tile has long lines on both sides, a small one gives every multiprocessor something to do.
So of each element size's tiles the first is taken that there are blocks enough of. Both tables were
measured on an H200: threads that move few elements, and so are many, beat wider vectors; where rows
begin anywhere, long lines of the output count most, as its sectors are otherwise written in parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from lego_mlir.kernels.moves import Move
from lego_mlir.kernels.vectors import Tile, tiles


@dataclass(frozen=True, slots=True)
class _Plan:
    """A tile for grids of `blocks` and more, and the vectors it is moved by."""

    blocks: int
    down: int
    across: int
    high: int
    wide: int


_PLANS = {
    1: (_Plan(1024, 128, 128, 8, 8), _Plan(0, 64, 64, 4, 4)),
    2: (
        _Plan(2048, 128, 128, 4, 8),
        _Plan(1024, 64, 64, 4, 4),
        _Plan(512, 32, 64, 2, 4),
        _Plan(0, 32, 32, 2, 2),
    ),
    4: (_Plan(512, 64, 64, 2, 4), _Plan(0, 16, 32, 2, 2)),
    8: (_Plan(0, 32, 32, 2, 2),),
}
"""By the bytes of an element."""

_SINGLE = 8
"""Elements that a thread moves one by one, where rows are not aligned."""

_THREADS = 1024
"""The most that a block has."""

_IN_CACHE = 48 << 20
"""Bytes, of input and output together, below which blocks better read side by side than write."""


def choose_tile(move: Move, size: int, wide: int, high: int) -> Tile:
    """The tile of a move.

    Args:
        move: no copy.
        size: of an element, in bytes.
        wide: elements that an access of the input may take.
        high: elements that an access of the output may take.
    """
    plan = next(p for p in _PLANS[size] if _blocks(move, p.down, p.across) >= p.blocks)
    down, across, elements = plan.down, plan.across, plan.high * plan.wide
    if min(wide, high) == 1 and size < 8:
        down, across, elements = (128 if size == 4 and high == 1 else 64), 64, _SINGLE
    high, wide = min(high, plan.high), min(wide, plan.wide)
    least = down * across // (_THREADS * high * wide)
    repeats = max(1, least, min(elements, _SINGLE) // (high * wide))
    moved = 2 * size * prod(mode.size for mode in move.modes)
    return Tile(down, across, high, wide, repeats, by_columns=moved > _IN_CACHE)


def _blocks(move: Move, down: int, across: int) -> int:
    outer = prod(mode.size for mode in move.others)
    return outer * tiles(move.written.size, down) * tiles(move.read.size, across)
