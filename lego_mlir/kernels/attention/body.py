"""The tile program of attention: one pass over the keys of a tile of queries, softmax online.

    s = q kᵀ;  most' = max(most, s);  p = exp(s - most')
    sums = sums · exp(most - most') + sum(p);  o = o · exp(most - most') + p v

Every iteration is the same: a tile that the mask may cut is masked in a branch, tiles that no query
of the CTA sees are not in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import e as euler
from math import inf, log2
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, RegP, Row
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.masks import Interval, keys_seen
from lego_mlir.kernels.attention.problem import AttentionProblem, names_of

Tensors = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What a CTA computes.

    Attributes:
        batch: the sequence.
        head: of the queries; that of the keys where heads are packed.
        tile: of queries.
        split: of the keys.
        keys: how many the sequence has.
    """

    batch: Any
    head: Any
    tile: Any
    split: Any
    keys: Any


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
        batch, split = OrderBy(Row(problem.batch, config.splits)).inv(lg.block_id("z"))
        keys = tensors["lengths"][batch].below(problem.keys + 1) if problem.has_lengths else None
        self._work = Work(
            batch,
            lg.block_id("y"),
            lg.block_id("x"),
            split,
            problem.keys if keys is None else keys,
        )
        head = self._work.head
        self._head_kv = head if config.packed else head // problem.group
        row = lg.iota((config.rows, 1), 0) + self._work.tile * config.rows
        group = problem.group if config.packed else 1
        self._row = row
        self._query = row // group if group > 1 else row
        self._heads = head * group + row % group if group > 1 else head

    def trace(self) -> tuple[Any, Any, Any]:
        """Trace the loop; return each row's maximum of scaled scores, sum, and sums of values."""
        problem, config = self._problem, self._config
        rows, columns = config.rows, config.columns
        queries = lg.fill(self._queries(), 0.0)
        some, whole = self._keys_of_tile()
        first, count = self._blocks(some)
        # Scores that a function computes are scaled before; otherwise exponents are scaled.
        factor = log2(euler) * (1.0 if problem.score else problem.scale)
        initial = (
            lg.full((rows, 1), -inf, "f32"),
            lg.zeros((rows, 1), "f32"),
            lg.zeros((rows, problem.depth_v), "f32"),
        )

        @lg.fold(count, initial)
        def state(step: Any, most: Any, total: Any, values: Any) -> tuple[Any, Any, Any]:
            n = first + step
            scores = lg.dot(queries, self._tile("k", n, problem.depth).T)
            key = lg.iota((1, columns), 1) + n * columns
            scores = self._scored(scores, key)
            scores = self._masked(scores, key, n * columns, whole)
            larger = maximum(most, lg.max(scores, axis=1, keepdims=True))
            base = lg.where(larger == -inf, 0.0, larger)
            p: Any = lg.exp2((scores - base) * factor)
            old: Any = lg.exp2((most - base) * factor)
            values = lg.dot(p.to(problem.dtype), self._tile("v", n, problem.depth_v), values * old)
            return larger, total * old + lg.sum(p, axis=1, keepdims=True), values

        most, total, values = state
        scale = 1.0 if problem.score else problem.scale
        return most * scale, total, values

    def store(self, most: Any, total: Any, values: Any) -> None:
        """Store the result, and the logarithm of the sum of the exponentials where it is asked for.

        Args:
            most: the maximum of each row's scores.
            total: the sum of its exponentials.
            values: their sums of values.
        """
        rows, problem = self._config.rows, self._problem
        result = values * lg.where(total == 0.0, 0.0, 1.0 / total)
        name = "parts" if self._config.splits > 1 else "o"
        at = self._rows_of(self._tensors[name], name, problem.depth_v)
        out = at.tile(rows, problem.depth_v)
        out[(*self._where(), self._work.tile, 0)] = result.to(self._tensors[name].dtype)
        if (logs := self._tensors.get("logs" if self._config.splits > 1 else "lse")) is not None:
            total = (most + lg.log(total)).reshape(rows)
            self._rows_of(logs, "logs", 1).tile(rows, 1)[(*self._where(), self._work.tile, 0)] = (
                total[:, None]
            )

    def _where(self) -> tuple[Any, ...]:
        """Return the index of the CTA's rows in a view by rows, up to the tile."""
        split = (self._work.split,) if self._config.splits > 1 else ()
        return (*split, self._work.batch, self._work.head)

    def _rows_of(self, tensor: Any, name: str, depth: int) -> Any:
        """Return a view of queries or results by batch, head, row and depth."""
        problem, packed = self._problem, self._config.packed
        if name in ("q", "o"):
            if packed:
                return tensor.view(problem.by_group(depth))
            return tensor.view(
                problem.by_head(problem.batch, problem.heads, problem.queries, depth)
            )
        # Results of splits, and logarithms, lie by head, then by query.
        splits = [self._config.splits] if self._config.splits > 1 else []
        lead = [*splits, problem.batch]
        if not packed:
            return tensor.view(OrderBy(Row(*lead, problem.heads, problem.queries, depth)))
        sizes = [*lead, problem.heads_kv, problem.queries, problem.group, depth]
        k = len(lead)
        order = [*range(k + 1), k + 2, k + 1, k + 3]
        rows = problem.queries * problem.group
        by_row = OrderBy(RegP(sizes, order)).GroupBy([*lead, problem.heads_kv, rows, depth])
        return tensor.view(by_row)

    def _queries(self) -> Any:
        view = self._rows_of(self._tensors["q"], "q", self._problem.depth)
        tiles = view.tile(self._config.rows, self._problem.depth)
        return tiles[self._work.batch, self._work.head, self._work.tile, 0]

    def _tile(self, name: str, n: Any, depth: int) -> Any:
        """Return a tile of keys or values."""
        problem, columns = self._problem, self._config.columns
        tensor, cache = self._tensors[name], problem.cache
        if cache is None:
            view = problem.by_head(problem.batch, problem.heads_kv, problem.keys, depth)
            return tensor.view(view).tile(columns, depth)[self._work.batch, self._head_kv, n, 0]
        page, part = OrderBy(Row(-(-problem.keys // cache.page), cache.page // columns)).inv(n)
        number = self._tensors["pages"][self._work.batch, page].below(cache.pages)
        view = problem.by_head(cache.pages, problem.heads_kv, cache.page, depth)
        return tensor.view(view).tile(columns, depth)[number, self._head_kv, part, 0]

    def _given(self, function: Callable[..., Any], key: Any, other: Any, **more: Any) -> Any:
        """Call a mask or a score function with the values that it names.

        Args:
            function: the function.
            key: the tile of keys.
            other: the result for queries and keys past the end, which tensors have no elements of.
            more: further values.
        """
        problem, query = self._problem, self._query
        needs_tensors = any(name in problem.arguments for name in names_of(function))
        if needs_tensors:
            query = lg.restrict(query, query < problem.queries)
            key = lg.restrict(key, key < problem.keys)
        known = {
            "batch": self._work.batch,
            "head": self._heads,
            "i": query,
            "j": key,
            "keys": self._work.keys,
            **self._tensors,
            **more,
        }
        found = function(**{name: known[name] for name in names_of(function)})
        return lg.fill(found, other) if needs_tensors else found

    def _scored(self, scores: Any, key: Any) -> Any:
        if self._problem.score is None:
            return scores
        return self._given(self._problem.score, key, -inf, score=scores * self._problem.scale)

    def _masked(self, scores: Any, key: Any, first: Any, whole: Interval | None) -> Any:
        """Return scores that are -inf where the mask is false.

        Args:
            scores: of a tile.
            key: the tile's keys.
            first: the first of them.
            whole: the keys that all queries see; `None` where nothing is masked.
        """
        if whole is None:
            return scores

        def masked() -> Any:
            mask = self._problem.mask
            visible = None if mask is None else self._given(mask, key, 0)
            if self._problem.has_lengths:
                is_key = key < self._work.keys
                visible = is_key if visible is None else visible & is_key
            return lg.where(visible, scores, -inf)

        last = first + (self._config.columns - 1)
        cut = [] if whole.first is None else [first < whole.first]
        cut += [] if whole.last is None else [last > whole.last]
        if not cut:
            return scores
        if all(isinstance(c, bool) for c in cut):
            return masked() if any(cut) else scores
        return lg.cond(cut[0] | cut[1] if len(cut) > 1 else cut[0], masked, lambda: scores)

    def _keys_of_tile(self) -> tuple[Interval, Interval | None]:
        """Return the keys that some query sees, and those that all see; None if all are seen."""
        problem, work = self._problem, self._work
        some, whole = Interval(), Interval()
        if problem.mask is not None:
            group = problem.group if self._config.packed else 1
            start = work.tile * self._config.rows
            end = minimum((start + self._config.rows - 1) // group, problem.queries - 1)
            seen = keys_seen(problem.mask, start // group, end, {"keys": work.keys})
            some, whole = seen.some, seen.all
        if problem.has_lengths:
            keys = Interval(None, work.keys - 1)
            some, whole = some.meet(keys), whole.meet(keys)
        return some, None if whole.first is None and whole.last is None else whole

    def _blocks(self, some: Interval) -> tuple[Any, Any]:
        """Return the first tile of keys of the CTA, and how many it has.

        Without splits there is one at least, as schedules want it. If no query sees it, it is
        masked whole.
        """
        columns = self._config.columns
        blocks = -(-self._problem.keys // columns)
        first: Any = 0
        if some.first is not None:
            first = minimum(maximum(some.first // columns, 0), blocks - 1)
        last: Any = blocks - 1
        if some.last is not None:
            last = minimum(maximum(some.last // columns, 0), blocks - 1)
        splits = self._config.splits
        if splits == 1:
            return first, maximum(last - first, 0) + 1
        each = (maximum(last - first, -1) + splits) // splits
        start = first + self._work.split * each
        return start, maximum(minimum(last + 1 - start, each), 0)
