"""What a CTA computes: its sequence, head and tile of queries, and the tiles of keys it visits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.masks import Interval, hides_what_is_behind, keys_seen
from lego_mlir.kernels.attention.order import order_of
from lego_mlir.kernels.attention.problem import AttentionProblem
from lego_mlir.kernels.attention.tensors import MOST_TOKENS, TensorLayouts


@dataclass(frozen=True, slots=True)
class Span:
    """The tokens of a sequence, in the tensor that holds them.

    Attributes:
        first: the first token.
        end: the token after the last one.
    """

    first: Any
    end: Any

    @property
    def count(self) -> Any:
        """How many tokens there are."""
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class Blocks:
    """The tiles of keys that a CTA visits.

    Attributes:
        first: the first tile.
        count: of tiles.
        total: tiles that there are in the tensor.
        whole: the keys that all its queries see.
        own: the keys that are its own; others are masked, unless the mask itself masks them.
    """

    first: Any
    count: Any
    total: Any
    whole: Interval
    own: Interval

    def at(self, step: Any) -> Any:
        """Return the tile of an iteration, which is one of those that there are."""
        if isinstance(self.first, int) and self.first == 0:
            return step
        return minimum(self.first + step, self.total - 1)


class Work:
    """The work of a CTA.

    Args:
        problem: what is computed.
        config: how it is divided.
        arguments: the arguments of the kernel, by name.

    Attributes:
        batch: the number of the sequence.
        stored: the number of its tensors: 0 where all sequences follow one another in one.
        head: of the queries; that of the keys where heads are packed.
        head_kv: of the keys.
        tile: of queries.
        split: of the keys.
        splits: how many there are.
        queries: of the sequence.
        keys: of the sequence.
    """

    def __init__(
        self, problem: AttentionProblem, config: AttentionConfig, arguments: Mapping[str, Any]
    ) -> None:
        self._problem, self._config = problem, config
        self.batch, self.split = OrderBy(Row(problem.batch, config.splits)).inv(lg.block_id("z"))
        self.head, tile = order_of(problem, config).head_and_tile()
        self.head_kv = self.head if config.packed else self.head // problem.group
        self.splits = arguments["parts"].shape[0] if config.is_split else 1
        stored = TensorLayouts(problem)
        self._tokens_q, self._tokens_kv = stored.queries().tokens, problem.keys
        _, _, tokens_q, _ = arguments["q"].view(stored.queries().by_head(problem.depth)).shape
        _, _, tokens_kv, _ = arguments["k"].view(stored.keys().by_head(problem.depth)).shape
        if problem.cache is not None:
            tokens_kv = problem.cache.page * arguments["pages"].shape[1]
        elif problem.is_ragged:
            self._tokens_kv = stored.keys().tokens
        self._total = ceildiv(tokens_kv, config.columns)
        if problem.is_ragged:
            self.stored: Any = 0
            self.queries, self.keys = (
                Span(*(arguments[name][self.batch + k].below(MOST_TOKENS) for k in range(2)))
                for name in ("offsets_q", "offsets_kv")
            )
            # Tiles are those of the tensor: the first one of a sequence may begin before it does.
            self.tile = self.queries.first * self._group // config.rows + tile
            return
        end = tokens_kv
        if problem.has_lengths:
            known = isinstance(problem.keys, int)
            end = arguments["lengths"][self.batch].below(problem.keys + 1 if known else MOST_TOKENS)
        self.queries, self.keys = Span(0, tokens_q), Span(0, end)
        self.stored, self.tile = self.batch, tile

    @property
    def _group(self) -> int:
        return self._problem.group if self._config.packed else 1

    def rows(self) -> Any:
        """Return the rows of the CTA's tile of queries, in their tensor: [rows, 1]."""
        size = self._config.rows
        tiles = ceildiv(self._tokens_q * self._group, size)
        return OrderBy(Row(tiles, size)).apply(self.tile, lg.iota((size, 1), 0))

    @property
    def pieces(self) -> int:
        """The tiles of keys of an iteration: several where pages are smaller."""
        cache, columns = self._problem.cache, self._config.columns
        return 1 if cache is None else max(1, columns // cache.page)

    def piece(self, block: Any, number: int) -> Any:
        """Return which tile of a piece's size a piece of an iteration is."""
        tiles = ceildiv(self._tokens_kv, self._config.columns)
        # Schedules move what is computed of an iteration ahead of it, and then ask if there is one.
        only = isinstance(tiles, int) and tiles == 1
        return OrderBy(Row(tiles, self.pieces)).apply(0 if only else block, number)

    def columns(self, block: Any, number: int) -> Any:
        """Return the keys of a piece of an iteration, in their tensor: [1, columns / pieces]."""
        size = self._config.columns // self.pieces
        tiles = ceildiv(self._tokens_kv, self._config.columns) * self.pieces
        return OrderBy(Row(tiles, size)).apply(self.piece(block, number), lg.iota((1, size), 1))

    def members(self, rows: Any) -> tuple[Any, Any]:
        """Return the query of each row, in its tensor, and its head among those of the CTA."""
        if self._group == 1:
            return rows, 0
        query, member = OrderBy(Row(self._tokens_q, self._group)).inv(rows)
        return query, member

    def _keys_seen(self) -> tuple[Interval, Interval, Interval]:
        """Return the keys that some query of the CTA may see, those that all see, and its own.

        The mask says the first two, the length of the sequence the last one.
        """
        problem = self._problem
        some, whole, own = Interval(), Interval(), Interval()
        if problem.mask is not None:
            first, last = (
                row // self._group - self.queries.first
                for row in self._ends(self.tile, self._config.rows)
            )
            first = maximum(first, 0) if problem.is_ragged else first
            last = minimum(last, self.queries.count - 1)
            known = {"queries": self.queries.count, "keys": self.keys.count}
            seen = keys_seen(problem.mask, first, last, known)
            some, whole = seen.some.moved(self.keys.first), seen.all.moved(self.keys.first)
        if problem.is_ragged or problem.has_lengths or not self._divides_keys:
            start = self.keys.first if problem.is_ragged else None
            own = Interval(start, self.keys.end - 1)
        return some.meet(own), whole, own

    def blocks(self) -> Blocks:
        """Return the tiles of keys of the CTA.

        Where the schedule wants one and there is none, it is one that is masked whole.
        """
        some, whole, every_own = self._keys_seen()
        mask = self._problem.mask
        ends = mask is not None and hides_what_is_behind(mask)
        own = Interval(every_own.first) if ends else every_own
        columns, total = self._config.columns, self._total
        first: Any = 0
        if some.first is not None:
            first = minimum(maximum(some.first // columns, 0), total - 1)
        last: Any = total - 1
        if some.last is not None:
            last = minimum(maximum(some.last // columns, -1), total - 1)
        if self._problem.is_ragged:
            start, _ = self._ends(self.tile, self._config.rows)
            last = lg.where(start < self.queries.end * self._group, last, first - 1)
        count = maximum(last - first + 1, 0)
        if self._config.is_split:
            every, each = count, ceildiv(count, self.splits)
            first = first + self.split * each
            count = maximum(minimum(last + 1 - first, each), 0)
            has_keys = isinstance(each, int) and each * (self.splits - 1) < every
            if self._config.needs_block and not has_keys:
                _, end = self._ends(first + count - 1, columns)
                if_any = Interval(None, lg.where(count > 0, end, -1))
                own, every_own = own.meet(if_any), every_own.meet(if_any)
        if self._config.needs_block:
            count = maximum(count, 1)
        return Blocks(first, count, total, whole.meet(every_own), own)

    @property
    def _divides_keys(self) -> bool:
        """Whether tiles are known to divide the keys."""
        tokens = self._tokens_kv
        return isinstance(tokens, int) and tokens % self._config.columns == 0

    def cut(self, blocks: Blocks, block: Any) -> Any:
        """Return whether some query of the CTA does not see all keys of a tile."""
        whole = blocks.whole
        first, last = self._ends(block, self._config.columns)
        is_cut: Any = False
        if whole.first is not None:
            is_cut = first < whole.first
        if whole.last is not None:
            is_cut = is_cut | (last > whole.last)
        return is_cut

    @staticmethod
    def _ends(tile: Any, size: int) -> tuple[Any, Any]:
        """Return the first and the last element of a tile."""
        return tile * size, tile * size + (size - 1)
