"""The tile program of attention: one pass over the keys of a tile of queries, softmax online.

    s = q kᵀ;  base' = max(s) where that exceeds base by more than 8, else base
    p = 2^(s - base');  sums = sums · 2^(base - base') + sum(p);  o = o · 2^(base - base') + p v

Any base gives the same result, as long as no exponential overflows: so that of a row changes only
where the scores have grown by more than a factor of 2⁸, which is seldom behind the first keys.

Every iteration is the same: a tile that the mask may cut is masked in a branch, tiles that no query
of the CTA sees are not in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import e as euler
from math import inf, log, log2
from operator import add
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.pages import page_number
from lego_mlir.kernels.attention.problem import AttentionProblem
from lego_mlir.kernels.attention.scales import Scales, TileScale
from lego_mlir.kernels.attention.tensors import Storage, TensorLayouts
from lego_mlir.kernels.attention.work import Blocks, Span, Work
from lego_mlir.kernels.functions import names_of

Tensors = Mapping[str, Any]

_WHOLE, _PARTS = ("o", "lse"), ("parts", "logs")
"""The tensors of results and of logarithms: of all keys, and of splits of them."""

_GROWTH, _OFFSET = {"f8E4M3FN": 2.0}, {"f8E4M3FN": 6.0, "f8E5M2": 7.0}
"""By so many powers of 2 a score may exceed the base of its row, and so many the base is below the
greatest score that was there, by the type of exponentials. The largest numbers are above 2⁸ of e4m3
and 2¹⁵ of e5m2; what is far below a row's greatest exponential keeps its bits if that is large."""

_MOST_GROWTH = 8.0
"""The growth of the other types: f16 holds such exponentials."""

_SUMS, _FEW_SUMS = 8, 4
"""Sums of a row, of every eighth exponential, or of every fourth pair of them, which takes fewer
registers and is faster with masks and with exponentials of 8 bits: threads that share a row add
theirs at the end."""


class Body:
    """The body of a kernel.

    Args:
        problem: what is computed.
        config: how it is divided.
        tensors: the arguments by name.
    """

    def __init__(
        self, problem: AttentionProblem, config: AttentionConfig, tensors: Tensors
    ) -> None:
        self._problem, self._config, self._tensors = problem, config, tensors
        self._layouts = TensorLayouts(problem)
        self._work = work = Work(problem, config, tensors)
        self._row = work.rows()
        self._token, member = work.members(self._row)
        heads = Row(problem.heads_kv, problem.group)
        self._heads = OrderBy(heads).apply(work.head, member) if config.packed else work.head
        self._scales = Scales(problem, config, tensors, work)
        self._scale = self._scales.of_scores(self._token, self._heads)

    def trace(self) -> tuple[Any, Any, Any]:
        """Trace the loop; return each row's base, its sum of exponentials, and sums of values.

        The base is a logarithm to base 2 of what the exponentials are divided by.
        """
        problem, config = self._problem, self._config
        rows = config.rows
        queries = lg.fill(self._queries(), 0.0)
        blocks = self._work.blocks()
        factor = log2(euler) * (1.0 if self._is_scaled_before else self._scale)
        unit = 1.0 / factor
        columns = config.columns // self._work.pieces
        growth = _GROWTH.get(problem.computed, _MOST_GROWTH)
        offset = _OFFSET.get(problem.computed, 0.0)
        sums = _FEW_SUMS if problem.is_narrow or problem.mask is not None else _SUMS
        sums = 1 if columns & (columns - 1) else sums  # tiles of such sizes have no other shape
        initial = (
            lg.full((rows, 1), -inf, "f32"),
            lg.zeros((rows, 1), "f32"),
            lg.zeros((rows, sums), "f32"),
            lg.zeros((rows, problem.depth_v), "f32"),
        )

        # Those of the next tile are loaded while this one is computed.
        known = () if problem.scale_block is None else self._tile_scale(blocks, 0)

        @lg.fold(blocks.count, (*initial, *known))
        def state(
            step: Any, most: Any, base: Any, total: Any, values: Any, *known: Any
        ) -> tuple[Any, ...]:
            n = blocks.at(step)
            keys = self._tiles("k", n, problem.depth, problem.dtype)
            scale = TileScale(*known) if known else None
            if scale is not None:
                known = self._tile_scale(blocks, step + 1)
            scores = self._masked([lg.dot(queries, k.T) for k in keys], blocks, n, scale)
            if scale is not None and self._is_scaled_before:
                scale = scale._replace(keys=1.0, keys_inverse=1.0)
            peak = reduce(maximum, (lg.max(x, axis=1, keepdims=True) for x in scores))
            is_grown = peak > (most if scale is None else scale.inverse(most, unit))
            peak = peak if scale is None else scale.applied(peak, unit)
            highest = peak * factor - offset if offset else peak * factor
            base = lg.where(is_grown, highest, base)
            allowed = lg.where(is_grown, peak + growth * unit, most)
            old = lg.where(is_grown, lg.exp2((most - allowed) * factor), 1.0)
            slope = factor if scale is None else factor * scale.keys
            summand = -base if scale is None else scale.weight - base
            p: list[Any] = [lg.exp2(lg.fma(x, slope, summand)) for x in scores]
            # A matrix of 8 bits is multiplied along its rows, and values are summed across theirs.
            seen = self._tiles("v", n, problem.depth_v, problem.computed)
            values = values * old
            for x, v in zip(p, seen, strict=True):
                values = lg.dot(x.to(problem.computed), v, values)
            added = reduce(add, [_row_sums(x, sums) for x in p])
            added = added if scale is None else added * scale.values_inverse
            return allowed, base, total * old + added, values, *known

        _, base, total, values, *_ = state
        return base, lg.sum(total, axis=1, keepdims=True), values

    def _tile_scale(self, blocks: Blocks, step: Any) -> TileScale:
        """Return the numbers of the tile of keys of an iteration, or of the last tile behind it."""
        return self._scales.at(*self._place(minimum(blocks.at(step), blocks.total - 1), 0))

    def store(self, base: Any, total: Any, values: Any) -> None:
        """Store the result, and the logarithm of the sum of the exponentials where it is asked for.

        Args:
            base: of each row's exponentials.
            total: their sum.
            values: their sums of values.
        """
        problem, config = self._problem, self._config
        result = values * lg.where(total == 0.0, 0.0, self._scales.of_values / total)
        logarithms = base * log(2) + lg.log(total)

        def store(name: str, logs: str, *, is_part: bool) -> None:
            storage = self._layouts.logarithms()
            out = self._tensors[name]
            place = storage if is_part else self._layouts.queries("o")
            tile = result.to(out.dtype)
            self._store(out, place, problem.depth_v, tile, is_part=is_part)
            if logs in self._tensors:
                self._store(self._tensors[logs], storage, 1, logarithms, is_part=is_part)

        if not config.is_open:
            store(*_PARTS if config.is_split else _WHOLE, is_part=config.is_split)
            return
        is_whole = self._work.splits == 1
        lg.if_(is_whole)(lambda: store(*_WHOLE, is_part=False))
        lg.if_(~is_whole)(lambda: store(*_PARTS, is_part=True))

    def _store(
        self, tensor: Any, storage: Storage, depth: int, tile: Any, *, is_part: bool
    ) -> None:
        """Store the rows of the CTA that are queries of its sequence."""
        work = self._work
        if self._problem.is_ragged:
            first, end = work.queries.first, work.queries.end
            tile = lg.restrict(tile, (self._token >= first) & (self._token < end))
        lead = [self._config.splits] if is_part else []
        view = tensor.view(self._by_row(storage, depth, lead))
        at = work.stored, work.head, work.tile, 0
        view.tile(self._config.rows, depth)[(work.split, *at) if is_part else at] = tile

    def _by_row(self, storage: Storage, depth: int, lead: Sequence[Any] = ()) -> Layout:
        """Return the layout of queries or results by batch, head, row and depth."""
        if self._config.packed:
            return storage.by_group(self._problem.group, depth, lead)
        return storage.by_head(depth, lead)

    def _queries(self) -> Any:
        work, depth = self._work, self._problem.depth
        view = self._tensors["q"].view(self._by_row(self._layouts.queries(), depth))
        tiles = view.tile(self._config.rows, self._problem.padded_depth)
        return tiles[work.stored, work.head, work.tile, 0]

    def _tiles(self, name: str, n: Any, depth: int, dtype: str) -> list[Any]:
        """Return the tiles of keys or values of an iteration, with zeros past the tensor's end."""
        problem, work = self._problem, self._work
        view = self._tensors[name].view(self._layouts.keys(name).by_head(depth))
        width = problem.padded_depth if name == "k" else depth
        tiles = view.tile(self._config.columns // work.pieces, width)
        places = (self._place(n, k) for k in range(work.pieces))
        return [lg.fill(tiles[at, work.head_kv, m, 0], 0.0).to(dtype) for at, m in places]

    def _place(self, n: Any, piece: int) -> tuple[Any, Any]:
        """Return the sequence or page of a piece of an iteration, and which of its tiles it is."""
        cache, work = self._problem.cache, self._work
        if cache is None:
            return work.stored, n
        table = self._tensors["pages"]
        page, part = work.piece(n, piece), 0
        if work.pieces > 1:  # the last iteration may have fewer pages, and no others have numbers
            last = minimum((work.keys.end - 1) // cache.page, table.shape[1] - 1)
            page = minimum(page, last)
        else:
            each = Row(self._layouts.pages_each, cache.page // self._config.columns)
            page, part = OrderBy(each).inv(n)
        return page_number(table, work.batch, page), part

    def _given(self, function: Callable[..., Any], key: Any, other: Any, **more: Any) -> Any:
        """Call a mask or a score function with the values that it names.

        Args:
            function: the function.
            key: the tile of keys.
            other: the result for queries and keys past the end, which tensors have no elements of.
            more: further values.
        """
        problem, work = self._problem, self._work
        query, key = self._token - work.queries.first, key - work.keys.first
        needs_tensors = any(name in problem.arguments for name in names_of(function))
        if needs_tensors:
            query = lg.restrict(query, _is_inside(query, work.queries))
            key = lg.restrict(key, _is_inside(key, work.keys))
        known = {
            "batch": work.batch,
            "head": self._heads,
            "i": query,
            "j": key,
            "queries": work.queries.count,
            "keys": work.keys.count,
            **self._tensors,
            **more,
        }
        found = function(**{name: known[name] for name in names_of(function)})
        return lg.fill(found, other) if needs_tensors else found

    def _scored(self, scores: Any, key: Any, scale: TileScale | None) -> Any:
        if not self._is_scaled_before:
            return scores
        scores = scores * (self._scale if scale is None else self._scale * scale.keys)
        if self._problem.score is None:
            return scores
        return self._given(self._problem.score, key, -inf, score=scores)

    @property
    def _is_scaled_before(self) -> bool:
        """Whether scores are scaled; otherwise their exponents are, which is the same work less.

        The greatest exponent is that of the greatest score only if the scale is positive.
        """
        return self._problem.score is not None or self._problem.scale <= 0

    def _masked(
        self, scores: list[Any], blocks: Blocks, n: Any, scale: TileScale | None
    ) -> list[Any]:
        """Return scores of an iteration, by pieces, that are -inf where the mask is false.

        Args:
            scores: by pieces.
            blocks: of the CTA.
            n: the tile of keys.
            scale: of the tile; `None` if it has none.
        """
        work, mask, own = self._work, self._problem.mask, blocks.own
        is_cut = work.cut(blocks, n)
        keys = [work.columns(n, k) for k in range(work.pieces)]
        scores = [self._scored(x, key, scale) for x, key in zip(scores, keys, strict=True)]

        def masked(tile: Any, key: Any) -> Any:
            visible = True if mask is None else self._given(mask, key, 0)
            if own.first is not None:
                visible = (key >= own.first) & visible
            if own.last is not None:
                visible = (key <= own.last) & visible
            return lg.where(visible, tile, -inf)

        def all_masked() -> list[Any]:
            return list(map(masked, scores, keys))

        if isinstance(is_cut, bool):
            return all_masked() if is_cut else scores
        found = lg.cond(is_cut, lambda: tuple(all_masked()), lambda: tuple(scores))
        return list(found)


def _row_sums(tile: Any, sums: int) -> Any:
    """Return sums of the rows of a tile, `sums` of each: [rows, sums]."""
    rows, columns = tile.shape
    if sums == _FEW_SUMS:  # a thread holds the pairs
        columns //= 2
        tile = lg.sum(tile.reshape(rows, columns, 2), axis=2)
    return lg.sum(tile.reshape(rows, columns // sums, sums), axis=1)


def _is_inside(token: Any, span: Span) -> Any:
    """Return whether tokens, counted from the first one of a sequence, are of the sequence."""
    inside = token < span.count
    return inside if isinstance(span.first, int) else inside & (token >= 0)
