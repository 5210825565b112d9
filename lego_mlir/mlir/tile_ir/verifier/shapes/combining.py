"""Reductions, scans and sorts along a dimension, by a kind or by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.verifier.checked import Checked
from lego_mlir.mlir.tile_ir.verifier.regions import check_function

_FLOAT_KINDS = ("add", "mul", "max", "min")
_BOOL_KINDS = ("and", "or", "xor")


def _kind(c: Checked) -> None:
    kind = c.attribute(tiles.KIND, ir.StringAttr, '"add"').value
    element = c.element(c.op.operands[0])
    kinds: tuple[str, ...] = tiles.KINDS
    if isinstance(element, ir.FloatType):
        kinds = _FLOAT_KINDS
    elif element == ir.IntegerType.get_signless(1):
        kinds = _BOOL_KINDS
    c.require(
        kind in kinds,
        lambda: f"has the kind '{kind}', and elements of {element}",
        f"of {element} there are: {', '.join(kinds)}",
    )


def _reduce(c: Checked) -> None:
    _kind(c)
    _check_reduced(c, [c.op.operands[0]], list(c.op.results))


def _reduce_scatter(c: Checked) -> None:
    _kind(c)
    tile, result = c.op.operands[0], c.op.results[0]
    shape = c.shape(tile)
    dim = c.dim(len(shape))
    found = c.shape(result)
    part = found[dim] if len(found) == len(shape) else 0
    c.same_element(result, c.element(tile), "a result")
    c.same_shape(result, (*shape[:dim], part or shape[dim], *shape[dim + 1 :]), "a result")
    c.require(
        shape[dim] % part == 0,
        lambda: f"has slices of {part} of {shape[dim]} elements along dimension {dim}",
        "slices of equal sizes",
    )


def _check_reduced(c: Checked, parts: Sequence[Any], results: Sequence[Any]) -> None:
    """Check that results are as tiles, with size 1 in the dimension of the operation."""
    shape = c.shape(parts[0])
    dim = c.dim(len(shape))
    c.require(
        len(parts) == len(results), lambda: f"of {len(parts)} tiles has {len(results)} results"
    )
    for part, result in zip(parts, results, strict=True):
        c.same_shape(part, shape, "a tile")
        c.same_element(result, c.element(part), "a result")
        c.same_shape(result, (*shape[:dim], 1, *shape[dim + 1 :]), "a result")


def _reduce_with(c: Checked) -> None:
    parts = list(c.op.operands)
    _check_reduced(c, parts, list(c.op.results))
    check_function(c, [c.element(part) for part in parts])


def _scan(c: Checked) -> None:
    _kind(c)
    c.dim(len(c.shape(c.op.operands[0])))
    c.results_like(c.op.operands[0])
    _check_reverse(c)


def _check_reverse(c: Checked) -> None:
    if tiles.REVERSE in c.op.attributes:
        c.attribute(tiles.REVERSE, ir.UnitAttr, "unit")


def _scan_with(c: Checked) -> None:
    parts = list(c.op.operands)
    c.dim(len(c.shape(parts[0])))
    _check_reverse(c)
    _check_as_many(c, parts, list(c.op.results))
    check_function(c, [c.element(part) for part in parts])


def _sort_with(c: Checked) -> None:
    parts = list(c.op.operands)
    c.dim(len(c.shape(parts[0])))
    _check_as_many(c, parts, list(c.op.results))
    check_function(c, [c.element(part) for part in parts], [ir.IntegerType.get_signless(1)])


def _check_as_many(c: Checked, parts: Sequence[Any], results: Sequence[Any]) -> None:
    """Check that tiles have one shape, and that each has a result like it."""
    shape = c.shape(parts[0])
    c.require(
        len(parts) == len(results), lambda: f"of {len(parts)} tiles has {len(results)} results"
    )
    for part, result in zip(parts, results, strict=True):
        c.same_shape(part, shape, "a tile")
        c.same_shape(result, shape, "a result")
        c.same_element(result, c.element(part), "a result")


CHECKS: Mapping[str, Callable[[Checked], None]] = {
    tiles.REDUCE: _reduce,
    tiles.REDUCE_WITH: _reduce_with,
    tiles.REDUCE_SCATTER: _reduce_scatter,
    tiles.SCAN: _scan,
    tiles.SCAN_WITH: _scan_with,
    tiles.SORT_WITH: _sort_with,
}
"""By the operation's name."""
