"""Which layouts an operation on tiles has at once, from one that determines them.

An operation's *key* is the layout of its result, or of its operand where that one says more: a
reduction's result follows from its operand, and not the other way around.

    key of              operations
    the result          loads, gathers, sources, pointwise work, scans, broadcasts, takes, dots
    the first operand   stores, reductions, those over a cluster, transposes, reshapes, joins,
                        splits, scatters

The rules are those of `analysis.distributed.views`. Derived layouts are cached, for programs repeat
them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    block,
    joined,
    reduced,
    reshaped,
    split,
    transposed,
)
from lego_mlir.analysis.distributed.mma_grids import accumulator_grid, operand_a, operand_b
from lego_mlir.analysis.distributed.slices import stacked
from lego_mlir.analysis.distributed.wgmma_grids import warpgroup_grid
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import element_of, shape_of

P = ParamSpec("P")
Layout = DistributedLayout

_BY_OPERAND = (
    dialect.STORE,
    tiles.SCATTER,
    tiles.REDUCE,
    tiles.REDUCE_WITH,
    tiles.REDUCE_SCATTER,
    tiles.TRANSPOSE,
    tiles.RESHAPE,
    tiles.JOIN,
    tiles.SPLIT,
)


def is_by_operand(op: Any) -> bool:
    """Return whether an operation's key is the layout of its first operand."""
    return op.name in _BY_OPERAND


def operand_layout(op: Any, number: int, key: Layout) -> Layout | None:
    """Return the layout that an operand must have; `None` if any will do.

    Args:
        op: an operation on tiles.
        number: of an operand that is a tile.
        key: the operation's key.
    """
    match op.name:
        case tiles.ITEM | tiles.VOTE:
            return None
        case tiles.BROADCAST:
            return quotient(key, shape_of(op.operands[0]))
        case tiles.TAKE:
            return key if number == 1 else None
        case tiles.DOT:
            if number == 2:
                return key
            operand = op.operands[number]
            of = operand_a if number == 0 else operand_b
            return of(key, shape_of(operand), element_bits(operand))
    return key


def result_layout(op: Any, key: Layout) -> Layout:
    """Return the layout of an operation's results.

    Raises:
        LegoError: the key does not suit the operation: a reshape or split that cuts its factors.
    """
    match op.name:
        case tiles.REDUCE | tiles.REDUCE_WITH:
            return _reduced(key, tiles.dim_of(op))
        case tiles.REDUCE_SCATTER:
            return _block(key, shape_of(op.results[0]))
        case tiles.TRANSPOSE:
            return _transposed(key, tuple(tiles.order_of(op)))
        case tiles.RESHAPE:
            return _reshaped(key, shape_of(op.results[0]))
        case tiles.JOIN:
            return _joined(key, len(op.operands))
        case tiles.SPLIT:
            return _split(key)
    return key


def key_by_operand(op: Any, number: int, layout: Layout) -> Layout | None:
    """Return the key with which an operand has a layout; `None` if that does not determine one."""
    match op.name:
        case tiles.ITEM | tiles.VOTE | tiles.BROADCAST:
            return None
        case tiles.TAKE:
            return layout if number == 1 else None
        case tiles.DOT:
            return _checked_accumulator(op, layout) if number == 2 else None
        case tiles.RESHAPE | tiles.SPLIT | tiles.REDUCE_SCATTER:
            return None if _or_none(result_layout, op, layout) is None else layout
    return layout


def key_by_result(op: Any, layout: Layout) -> Layout | None:
    """Return the key with which the results have a layout; `None` if there is not one."""
    match op.name:
        case tiles.REDUCE | tiles.REDUCE_WITH:
            return None
        case tiles.REDUCE_SCATTER:
            dim, size = tiles.dim_of(op), shape_of(op.results[0])
            return stacked(layout, dim, shape_of(op.operands[0])[dim] // size[dim])
        case tiles.TRANSPOSE:
            order = tiles.order_of(op)
            return _transposed(layout, tuple(order.index(d) for d in range(len(order))))
        case tiles.RESHAPE:
            return _or_none(_reshaped, layout, shape_of(op.operands[0]))
        case tiles.JOIN:
            return _or_none(_split, layout)
        case tiles.SPLIT:
            return _joined(layout, len(op.results))
        case tiles.DOT:
            return _checked_accumulator(op, layout)
    return layout


@lru_cache(maxsize=1 << 12)
def quotient(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """Return the quotient of a layout by the dimensions in which a shape has size 1."""
    for dim, (n, m) in enumerate(zip(layout.shape, shape, strict=True)):
        if n != m:
            layout = reduced(layout, dim)
    return layout


def element_bits(tile: Any) -> int:
    """Return the bits of a tile's element."""
    return int(getattr(element_of(tile), "width", 64))


def is_accumulator(layout: Layout) -> bool:
    """Return whether a dot can have its result in a layout, by mma.sync or wgmma."""
    return accumulator_grid(layout) is not None or warpgroup_grid(layout) is not None


def _checked_accumulator(op: Any, layout: Layout) -> Layout | None:
    return layout if accumulator_grid(layout) is not None else None


def _or_none(function: Callable[P, Layout], *args: P.args, **kwargs: P.kwargs) -> Layout | None:
    try:
        return function(*args, **kwargs)
    except LegoError:
        return None


_reduced = lru_cache(maxsize=1 << 12)(reduced)
_block = lru_cache(maxsize=1 << 12)(block)
_transposed = lru_cache(maxsize=1 << 12)(transposed)
_reshaped = lru_cache(maxsize=1 << 12)(reshaped)
_joined = lru_cache(maxsize=1 << 12)(joined)
_split = lru_cache(maxsize=1 << 12)(split)
