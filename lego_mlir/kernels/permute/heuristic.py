"""Which tile a permutation of dimensions moves at a time.

A large tile has long lines on both sides, a small one gives every multiprocessor something to do.
So of each element size's tiles the first is taken that there are blocks enough of. All of them were
measured on an H200: threads that move few elements, and so are many, beat wider vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from lego_mlir.kernels.permute.kernel import Strip, Tile, tiles
from lego_mlir.kernels.permute.problem import Move


@dataclass(frozen=True, slots=True)
class _Plan:
    """A tile for grids of `blocks` and more, and the vectors it is moved by at most."""

    blocks: int
    down: int
    across: int
    high: int
    wide: int


_ALIGNED = {
    1: (_Plan(1024, 64, 256, 4, 8), _Plan(128, 64, 128, 4, 4), _Plan(0, 64, 64, 4, 4)),
    2: (
        _Plan(2048, 128, 128, 4, 8),
        _Plan(2048, 32, 128, 4, 4),
        _Plan(512, 32, 64, 4, 4),
        _Plan(0, 32, 32, 4, 2),
    ),
    4: (_Plan(512, 64, 64, 2, 4), _Plan(0, 16, 32, 2, 2)),
    8: (_Plan(0, 32, 32, 2, 2),),
}
"""By the bytes of an element, where both sides take vectors."""

_SINGLY = {
    1: Tile(64, 64, high=4, wide=1, tall=4, repeats=2),
    2: Tile(64, 64, high=4, wide=1, tall=4, repeats=2),
    4: Tile(64, 64, high=2, wide=1, tall=2, repeats=4),
    8: Tile(32, 32, high=2, wide=1, tall=2, repeats=2),
}
"""Where rows of the input begin anywhere, and it is read element by element."""

_SKEWED = {
    1: Tile(128, 32, high=8, wide=1, tall=4, repeats=2, span=4),
    2: Tile(128, 32, high=8, wide=1, tall=2, repeats=2, span=2),
    4: Tile(64, 64, high=2, wide=1, tall=2, repeats=4, span=4),
}
"""Where rows of the output begin anywhere, and it is written by vectors all the same."""

_COPYING = 256
"""Threads of a block that copies."""


def choose_tile(move: Move, size: int, most: int) -> Tile:
    """The tile of a move.

    Args:
        move: no copy.
        size: of an element, in bytes.
        most: elements that an access may take, as both arrays are aligned.
    """
    wide, high = move.widths(most)
    if high == 1 and size in _SKEWED and _SKEWED[size].span <= most:
        return _SKEWED[size]
    if min(wide, high) == 1:
        return replace(_SINGLY[size], tall=min(high, _SINGLY[size].high))
    plan = next(p for p in _ALIGNED[size] if _blocks(move, p) >= p.blocks)
    # A thread has as many elements, whatever the vectors are that they come in.
    wide = min(wide, plan.wide)
    tall = min(high, plan.high)
    return Tile(plan.down, plan.across, plan.high, wide, tall, plan.wide // wide)


def choose_strip(move: Move, wide: int) -> Strip:
    """What a block copies at a time: one access a thread, of more rows where they are short.

    Args:
        move: a copy.
        wide: elements that an access may take.
    """
    columns = min(_COPYING, tiles(move.read.size, wide))
    rows = _COPYING // columns if move.others else 1
    return Strip(rows, columns, wide)


def _blocks(move: Move, plan: _Plan) -> int:
    outer = prod(mode.size for mode in move.others)
    return outer * tiles(move.written.size, plan.down) * tiles(move.read.size, plan.across)
