"""Attention whose keys are divided among CTAs: their results, weighted by their sums, are added.

Each split has a result that is divided by its own sum, and the logarithm of that sum: so the
weights are a softmax of the logarithms. A split without keys has the weight 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.frontend import Kernel, kernel
from lego_mlir.index import Int, bounds, maximum, minimum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.problem import AttentionProblem
from lego_mlir.kernels.attention.tensors import MOST_TOKENS, TensorLayouts
from lego_mlir.kernels.functions import with_names

_WARPS, _ELEMENTS, _SPLITS = 4, 8192, 32
"""Warps of a CTA, the elements of splits that it loads at once, and of how many at most."""


def combination(problem: AttentionProblem, config: AttentionConfig, *, lse: bool) -> Kernel:
    """Return the kernel that combines splits.

    Args:
        problem: what is computed.
        config: how it was divided.
        lse: also combine the logarithms.
    """
    layouts = TensorLayouts(problem)
    stored = layouts.queries()
    rows = stored.batch * stored.heads * stored.tokens
    together = _splits_together(config.splits, problem.depth_v)
    tile_rows = _ELEMENTS // (together * _held(problem.depth_v))
    types = {**layouts.parts(config.splits), **layouts.offsets("offsets_q")}
    types |= layouts.outputs(lse=lse)
    tiles = ceildiv(rows, tile_rows)
    if config.is_open:  # of one split, results need nothing: one CTA looks
        tiles = maximum(tiles * minimum(config.splits - 1, 1), 1)
    # Many CTAs of this kernel would leave uneven room for those of the next one.
    pdl: Any = "wait" if config.is_open else True
    body = _body(problem, config.splits, rows, tile_rows)
    launch = kernel(grid=tiles, warps=_WARPS, parameters=types, pdl=pdl)
    return launch(with_names(body, types))


def _splits_together(splits: Int, depth: int) -> int:
    """Return how many splits of a row are loaded at once: all if they are few.

    Each warp has a row at least, so that none adds what another one has loaded.
    """
    most = splits if isinstance(splits, int) else bounds(splits)[1]
    return min(_held(most or _SPLITS), _ELEMENTS // (_WARPS * _held(depth)))


def _held(n: int) -> int:
    """Return how many elements a tile of `n` is held as."""
    return 1 << (n - 1).bit_length()


def _body(problem: AttentionProblem, splits: Int, rows: Int, tile_rows: int) -> Callable[..., None]:
    depth, stored = problem.depth_v, TensorLayouts(problem).queries("o")
    together = _splits_together(splits, depth)

    def combine(logs: Any, **tensors: Any) -> None:
        count, *_ = logs.shape
        if isinstance(count, int):
            combine_tile(logs, **tensors)
        else:
            lg.if_(count > 1)(lambda: combine_tile(logs, **tensors))

    def combine_tile(logs: Any, parts: Any, o: Any, lse: Any = None, offsets_q: Any = None) -> None:
        tile = lg.block_id()
        pieces = parts.view(OrderBy(Row(splits, rows, depth))).tile(together, tile_rows, depth)
        sums = logs.view(OrderBy(Row(splits, rows)))
        steps, *_ = pieces.shape
        count, height = sums.shape
        groups, tiles = ceildiv(splits, together), ceildiv(rows, tile_rows)
        row = OrderBy(Row(tiles, tile_rows)).apply(tile, lg.arange(tile_rows))

        none = lg.full((tile_rows,), -inf, "f32")
        zeros = lg.zeros((tile_rows,), "f32"), lg.zeros((tile_rows, depth), "f32")

        @lg.fold(steps, (none, *zeros))
        def state(step: Any, most: Any, total: Any, values: Any) -> tuple[Any, Any, Any]:
            # A gather takes the layout of what it is multiplied with, and both are loaded before
            # either is used: no thread waits for another one, nor for two latencies.
            split = OrderBy(Row(groups, together)).apply(step, lg.arange(together))[:, None]
            known = sums[minimum(split, count - 1), minimum(row[None, :], height - 1)]
            logarithms: Any = lg.where(split < count, known, -inf)
            piece = lg.fill(pieces[step, tile, 0], 0.0)
            peak = maximum(most, lg.max(logarithms, axis=0))
            base = lg.where(peak == -inf, 0.0, peak)
            weights: Any = lg.exp(logarithms - base[None, :])
            old: Any = lg.exp(most - base)
            weighted: Any = weights[:, :, None] * piece
            added = lg.sum(weights, axis=0), lg.sum(weighted, axis=0)
            return peak, total * old + added[0], values * old[:, None] + added[1]

        most, total, values = state
        result = values * lg.where(total == 0.0, 0.0, 1.0 / total)[:, None]
        result, logarithms = result.to(problem.out), most + lg.log(total)
        if offsets_q is not None:  # tokens behind the last sequence have no results
            end = offsets_q[problem.batch].below(MOST_TOKENS)
            _, token = OrderBy(Row(stored.heads, stored.tokens)).inv(row)
            result = lg.restrict(result, (token < end)[:, None])
            logarithms = lg.restrict(logarithms, token < end)
        merged = stored.by_head(depth).GroupBy([rows, depth])
        o.view(merged).tile(tile_rows, depth)[tile, 0] = result
        if lse is not None:
            lse.view(OrderBy(Row(rows))).tile(tile_rows)[tile] = logarithms

    return combine
