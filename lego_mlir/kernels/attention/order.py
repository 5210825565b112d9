"""The order in which CTAs begin: those with most keys first.

CTAs that begin last end last, so these have little to do. Then all heads take their longest tiles
first, but only so many heads at a time as have their keys and values in the L2 cache together.
(FlashAttention-3 and -4 order their work so, hopper/tile_scheduler.hpp.)

Persistent CTAs of sizes that only the launch knows run two neighbours in order at a time: the tile
of a head with most keys and the one with fewest, then those that come next from both ends. Two
together have as many keys as any other two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import GenP, OrderBy, Row, reverse
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.index import Int
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.masks import keys_seen
from lego_mlir.kernels.attention.problem import BYTES, AttentionProblem

_L2_BYTES = 32 << 20
"""What keys and values of heads may have together, which is less than the L2 cache."""

_LOOKED_AT = 64
"""Tiles of queries that an average is of, at most."""


_TYPICAL = 8192
"""Queries and keys for which the order is made where only the launch knows how many there are. It
is right for any, and one head's more or less in the L2 cache costs little."""


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """The order of a kernel's CTAs; the grid has tiles of several heads along x, and heads along y.

    Attributes:
        tiles: of queries.
        heads: of the grid.
        together: heads whose tiles alternate.
        is_reversed: whether the last tiles of queries come first.
        is_folded: whether tiles alternate between both ends of the sequence.
    """

    tiles: Int
    heads: int
    together: int = 1
    is_reversed: bool = False
    is_folded: bool = False

    @property
    def grid(self) -> tuple[Int, Int]:
        """CTAs along x and y."""
        return self.tiles * self.together, self.heads // self.together

    def head_and_tile(self) -> tuple[Any, Any]:
        """Return the head and the tile of queries of a CTA."""
        head, tile = lg.block_id("y"), lg.block_id("x")
        if self.together > 1:
            tile, member = OrderBy(Row(self.tiles, self.together)).inv(tile)
            head = OrderBy(Row(self.heads // self.together, self.together)).apply(head, member)
        last = OrderBy(GenP([self.tiles], reverse))
        if self.is_reversed:
            tile = last.apply(tile)
        if self.is_folded:
            pair, member = OrderBy(Row(ceildiv(self.tiles, 2), 2)).inv(tile)
            tile = lg.where(member == 0, last.apply(pair), pair)
        return head, tile


def order_of(problem: AttentionProblem, config: AttentionConfig) -> WorkOrder:
    """Return the order of the CTAs of a kernel: that of the grid, if all have as much to do."""
    group = problem.group if config.packed else 1
    heads = problem.heads_kv if config.packed else problem.heads
    tiles = ceildiv(problem.queries * group, config.rows)
    if problem.is_ragged:
        return WorkOrder(tiles + 1, heads)  # the first one of a sequence may begin before it does
    queries, keys = (n if isinstance(n, int) else _TYPICAL for n in (problem.queries, problem.keys))
    typical = replace(problem, queries=queries, keys=keys)
    ends = (0, ceildiv(queries * group, config.rows) - 1)
    first, last = (_keys_of(tile, typical, config.rows, group) for tile in ends)
    if first == last:
        return WorkOrder(tiles, heads)
    if config.ctas and not (isinstance(tiles, int) and isinstance(problem.batch, int)):
        return WorkOrder(tiles, heads, is_folded=True)
    each = keys * (problem.depth + problem.depth_v) * BYTES[problem.dtype_kv]
    fitting = _L2_BYTES * (1 if config.packed else problem.group) // each
    together = max(n for n in range(1, heads + 1) if heads % n == 0 and n <= max(fitting, 1))
    return WorkOrder(tiles, heads, together, first < last)


def tiles_visited(problem: AttentionProblem, rows: int, columns: int) -> float:
    """Return how many tiles of keys a tile of queries visits, on average.

    Args:
        problem: of known sizes.
        rows: of a tile of queries.
        columns: of a tile of keys.
    """
    tiles = ceildiv(problem.queries, rows)
    looked_at = range(0, tiles, ceildiv(tiles, _LOOKED_AT))
    seen = [_ends_of(tile, problem, rows, 1) for tile in looked_at]
    return sum(end // columns - start // columns + 1 for start, end in seen) / len(looked_at)


def _keys_of(tile: int, problem: AttentionProblem, rows: int, group: int) -> int:
    """Return how many keys some query of a tile is not known not to see."""
    start, end = _ends_of(tile, problem, rows, group)
    return max(end - start + 1, 0)


def _ends_of(tile: int, problem: AttentionProblem, rows: int, group: int) -> tuple[int, int]:
    """Return the first and the last key that some query of a tile is not known not to see."""
    if problem.mask is None:
        return 0, int(problem.keys) - 1
    first, last = tile * rows // group, min((tile * rows + rows - 1) // group, problem.queries - 1)
    known = {"queries": problem.queries, "keys": problem.keys}
    some = keys_seen(problem.mask, first, last, known).some
    start = 0 if some.first is None else max(some.first, 0)
    end = problem.keys - 1 if some.last is None else min(some.last, problem.keys - 1)
    return int(start), int(end)
