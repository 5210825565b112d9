"""Tiles made of numbers and of ranges, what invalid elements hold, and numbers made of tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.verifier.checked import Checked


def _full(c: Checked) -> None:
    c.same_element(c.op.operands[0], c.element(c.op.results[0]), "a number")


def _item(c: Checked) -> None:
    shape = c.shape(c.op.operands[0])
    c.require(
        prod(shape) == 1,
        lambda: f"takes a tile of one element, not {list(shape)}",
        "reduce every dimension first",
    )
    c.same_element(c.op.results[0], c.element(c.op.operands[0]), "a result")


def _vote(c: Checked) -> None:
    c.same_element(c.op.operands[0], ir.IntegerType.get_signless(1), "a tile")


def _iota(c: Checked) -> None:
    c.same_element(c.op.results[0], ir.IntegerType.get_signless(32), "a result")
    c.dim(len(c.shape(c.op.results[0])))


def _in_range(c: Checked) -> None:
    c.same_element(c.op.results[0], ir.IntegerType.get_signless(1), "a result")
    c.dim(len(c.shape(c.op.results[0])))
    c.attribute(tiles.SIZE, ir.IntegerAttr, "1000 : i64")


def _restrict(c: Checked) -> None:
    tile, mask = c.op.operands
    c.same_element(mask, ir.IntegerType.get_signless(1), "a mask")
    c.same_shape(mask, c.shape(tile), "a mask")
    c.results_like(tile)


def _fill(c: Checked) -> None:
    tile = c.op.operands[0]
    element, value = c.element(tile), c.op.attributes[tiles.VALUE]
    is_number = isinstance(value, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr)
    c.require(
        is_number and value.type == element,
        lambda: f"has value = {value}, and elements of {element}",
        f"write its type along: value = 0 : {element}",
    )
    c.results_like(tile)


CHECKS: Mapping[str, Callable[[Checked], None]] = {
    tiles.FULL: _full,
    tiles.ITEM: _item,
    tiles.VOTE: _vote,
    tiles.IOTA: _iota,
    tiles.IN_RANGE: _in_range,
    tiles.RESTRICT: _restrict,
    tiles.FILL: _fill,
}
"""By the operation's name."""
