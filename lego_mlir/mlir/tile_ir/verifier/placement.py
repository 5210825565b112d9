"""How the layouts of operands and results belong together, where all of them are placed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    joined,
    reduced,
    reshaped,
    split,
    transposed,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles

Layouts: TypeAlias = Sequence[DistributedLayout]
Rule: TypeAlias = Callable[[Any, Layouts, Layouts], Sequence[tuple[DistributedLayout, Any]]]
"""Returns pairs of what a layout is and should be, from those of the operands and results."""


@lru_cache(maxsize=1 << 12)
def _reduced(layout: DistributedLayout, dims: tuple[int, ...]) -> DistributedLayout:
    for dim in dims:
        layout = reduced(layout, dim)
    return layout


_transposed = lru_cache(maxsize=1 << 12)(transposed)
_reshaped = lru_cache(maxsize=1 << 12)(reshaped)
_joined = lru_cache(maxsize=1 << 12)(joined)
_split = lru_cache(maxsize=1 << 12)(split)


def _equal(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    every = [*operands, *results]
    return [(layout, every[0]) for layout in every[1:]]


def _any(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    return []


def _broadcast(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    (small,), (large,) = operands, results
    dims = tuple(d for d, (n, m) in enumerate(zip(small.shape, large.shape, strict=True)) if n != m)
    return [(small, _reduced(large, dims))]


def _transpose(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    return [(results[0], _transposed(operands[0], tuple(tiles.order_of(op))))]


def _reshape(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    return [(results[0], _reshaped(operands[0], results[0].shape))]


def _join(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    parts = len(operands)
    return [*_equal(op, operands, ()), (results[0], _joined(operands[0], parts))]


def _split_up(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    return [(result, _split(operands[0])) for result in results]


def _reduce(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    quotient = _reduced(operands[0], (tiles.dim_of(op),))
    return [*_equal(op, operands, ()), *((result, quotient) for result in results)]


def _dot(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    return [(results[0], operands[2])]


def _take(op: Any, operands: Layouts, results: Layouts) -> list[tuple[DistributedLayout, Any]]:
    return [(results[0], operands[1])]


RULES: Mapping[str, Rule] = {
    dialect.LOAD: _any,
    dialect.STORE: _any,
    tiles.FULL: _any,
    tiles.ITEM: _any,
    tiles.IOTA: _any,
    tiles.IN_RANGE: _any,
    tiles.CONVERT: _any,
    tiles.BROADCAST: _broadcast,
    tiles.TRANSPOSE: _transpose,
    tiles.RESHAPE: _reshape,
    tiles.JOIN: _join,
    tiles.SPLIT: _split_up,
    tiles.REDUCE: _reduce,
    tiles.REDUCE_WITH: _reduce,
    tiles.DOT: _dot,
    tiles.TAKE: _take,
}
"""By the operation's name; of others all operands and results have one layout."""


def misplaced(op: Any, operands: Layouts, results: Layouts) -> str | None:
    """Return what is wrong with the layouts of an operation's tiles, `None` if they fit.

    Args:
        op: the operation.
        operands: the layouts of those operands that are tiles, in order.
        results: the layouts of those results that are tiles, in order.
    """
    try:
        for found, wanted in RULES.get(op.name, _equal)(op, operands, results):
            if found != wanted:
                return f"has a tile in the layout '{found}', where '{wanted}' fits the others"
    except LegoError as e:
        return f"has tiles whose layouts do not fit: {e.message}"
    return None
