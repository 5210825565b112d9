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
from lego_mlir.frontend import Kernel, TensorType, Workspace, kernel
from lego_mlir.index import maximum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.problem import AttentionProblem

_ROWS, _WARPS = 16, 4


def workspaces(problem: AttentionProblem, splits: int) -> dict[str, Workspace]:
    """Return the results of the splits, and the logarithms of their sums."""
    sizes = splits, problem.batch, problem.heads, problem.queries
    return {"parts": Workspace("f32", (*sizes, problem.depth_v)), "logs": Workspace("f32", sizes)}


def part_types(problem: AttentionProblem, splits: int) -> dict[str, TensorType]:
    """Return the types of these, as kernels have them."""
    sizes = splits, problem.batch, problem.heads, problem.queries
    return {
        "parts": TensorType("f32", OrderBy(Row(*sizes, problem.depth_v))),
        "logs": TensorType("f32", OrderBy(Row(*sizes))),
    }


def combination(problem: AttentionProblem, config: AttentionConfig, *, lse: bool) -> Kernel:
    """Return the kernel that combines splits.

    Args:
        problem: what is computed.
        config: how it was divided.
        lse: also combine the logarithms.
    """
    rows = problem.batch * problem.heads * problem.queries
    types = {**part_types(problem, config.splits), "o": problem.output()}
    if lse:
        types["lse"] = TensorType(
            "f32", OrderBy(Row(problem.batch, problem.heads, problem.queries))
        )
    return kernel(grid=-(-rows // _ROWS), warps=_WARPS, parameters=types, pdl=True)(
        _body(problem, config.splits, rows, lse=lse)
    )


def _body(problem: AttentionProblem, splits: int, rows: int, *, lse: bool) -> Callable[..., None]:
    depth = problem.depth_v
    by_row = problem.by_head(problem.batch, problem.heads, problem.queries, depth)

    def combine(parts: Any, logs: Any, o: Any, lse: Any = None) -> None:
        tile = lg.block_id()
        pieces = parts.view(OrderBy(Row(splits, rows, depth))).tile(_ROWS, depth)
        sums = logs.view(OrderBy(Row(splits, rows))).tile(_ROWS)

        @lg.fold(splits, lg.full((_ROWS,), -inf, "f32"))
        def most(split: Any, most: Any) -> Any:
            return maximum(most, lg.fill(sums[split, tile], -inf))

        base = lg.where(most == -inf, 0.0, most)

        @lg.fold(splits, (lg.zeros((_ROWS,), "f32"), lg.zeros((_ROWS, depth), "f32")))
        def state(split: Any, total: Any, values: Any) -> tuple[Any, Any]:
            weight = lg.exp(lg.fill(sums[split, tile], -inf) - base)
            piece = lg.fill(pieces[split, tile, 0], 0.0)
            return total + weight, values + weight[:, None] * piece

        total, values = state
        result = values * lg.where(total == 0.0, 0.0, 1.0 / total)[:, None]
        merged = by_row.GroupBy([rows, depth])
        o.view(merged).tile(_ROWS, depth)[tile, 0] = result.to(problem.out)
        if lse is not None:
            lse.view(OrderBy(Row(rows))).tile(_ROWS)[tile] = base + lg.log(total)

    if lse:
        return combine

    def without_logarithms(parts: Any, logs: Any, o: Any) -> None:
        combine(parts, logs, o)

    without_logarithms.__name__ = combine.__name__
    return without_logarithms
