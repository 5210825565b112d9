"""Tiles whose elements are those of other tiles, at other indices or in another layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from lego_mlir.analysis.distributed.slices import part_registers, slice_registers
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import is_shared_tile, layout_of
from lego_mlir.mlir.tile_ir.verifier.checked import Checked


def _broadcast(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    c.same_element(result, c.element(tile), "a result")
    small, large = c.shape(tile), c.shape(result)
    fits = len(small) == len(large) and all(n in (1, m) for n, m in zip(small, large, strict=True))
    c.require(
        fits,
        lambda: f"of a tile {list(small)} to {list(large)}",
        "both have as many dimensions; those that differ have size 1: lego.reshape adds some",
    )


def _reshape(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    c.same_element(result, c.element(tile), "a result")
    before, after = c.shape(tile), c.shape(result)
    c.require(
        prod(before) == prod(after),
        lambda: f"of {prod(before)} elements, {list(before)}, to {prod(after)}, {list(after)}",
    )


def _transpose(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    shape = c.shape(tile)
    order = list(c.attribute(tiles.ORDER, ir.DenseI64ArrayAttr, "array<i64: 1, 0>"))
    c.require(
        sorted(order) == list(range(len(shape))),
        lambda: f"has the order {order}, which is none of the dimensions of a tile {list(shape)}",
    )
    c.same_element(result, c.element(tile), "a result")
    c.same_shape(result, tuple(shape[d] for d in order), "a result")


def _join(c: Checked) -> None:
    parts, result = list(c.op.operands), c.op.results[0]
    c.require(bool(parts), lambda: "of no tiles")
    for part in parts:
        c.same_element(part, c.element(result), "a tile")
        c.same_shape(part, c.shape(parts[0]), "a tile")
    c.same_shape(result, (*c.shape(parts[0]), len(parts)), "a result")


def _split(c: Checked) -> None:
    tile, parts = c.op.operands[0], list(c.op.results)
    shape = c.shape(tile)
    c.require(
        len(shape) > 1 and shape[-1] == len(parts),
        lambda: f"of a tile {list(shape)} has {len(parts)} results",
        "it has one for each element of the last of at least two dimensions",
    )
    for part in parts:
        c.same_element(part, c.element(tile), "a result")
        c.same_shape(part, shape[:-1], "a result")


def _convert(c: Checked) -> None:
    c.results_like(c.op.operands[0])


def _take(c: Checked) -> None:
    tile, indices = c.op.operands
    result = c.op.results[0]
    shape, taken = c.shape(tile), c.shape(indices)
    dim = c.dim(len(shape))
    c.same_element(indices, ir.IntegerType.get_signless(32), "indices")
    c.same_element(result, c.element(tile), "a result")
    c.same_shape(result, taken, "a result")
    fits = len(taken) == len(shape) and all(
        n == m or d == dim for d, (n, m) in enumerate(zip(shape, taken, strict=True))
    )
    c.require(
        fits,
        lambda: f"along dimension {dim} of a tile {list(shape)} has indices {list(taken)}",
        "the other dimensions are of the same size",
    )


def _extract_slice(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    offsets = list(c.attribute(tiles.OFFSETS, ir.DenseI64ArrayAttr, "array<i64: 0, 16>"))
    of, shape = c.shape(tile), c.shape(result)
    c.same_element(result, c.element(tile), "a result")
    c.require(
        len(offsets) == len(of) == len(shape)
        and all(x >= 0 and x + n <= m for x, n, m in zip(offsets, shape, of, strict=True)),
        lambda: f"of {list(shape)} from {offsets} on, out of a tile {list(of)}",
        "the slice is inside of the tile",
    )
    c.require(
        not is_shared_tile(result),
        lambda: "in shared memory",
        "slices of tiles in shared memory are loaded to registers",
    )
    before, after = (None if is_shared_tile(x) else layout_of(x) for x in (tile, result))
    c.require(
        before is None or after is None or slice_registers(before, after, offsets) is not None,
        lambda: f"from the layout '{before}' to '{after}'",
        "each thread holds the elements of the slice that it gets, in registers",
    )


def _extract_part(c: Checked) -> None:
    tile, result = c.op.operands[0], c.op.results[0]
    of, shape = c.shape(tile), c.shape(result)
    c.same_element(result, c.element(tile), "a result")
    c.require(
        len(of) == len(shape) and all(n % m == 0 for n, m in zip(of, shape, strict=True)),
        lambda: f"of {list(shape)} of a tile {list(of)}",
        "the size of a part divides that of the tile along each dimension",
    )
    before, after = layout_of(tile), layout_of(result)
    c.require(
        before is None or after is None or part_registers(before, after) is not None,
        lambda: f"from the layout '{before}' to '{after}'",
        "each thread holds the elements of every part that it gets, in registers",
    )


CHECKS: Mapping[str, Callable[[Checked], None]] = {
    tiles.BROADCAST: _broadcast,
    tiles.RESHAPE: _reshape,
    tiles.TRANSPOSE: _transpose,
    tiles.JOIN: _join,
    tiles.SPLIT: _split,
    tiles.CONVERT: _convert,
    tiles.TAKE: _take,
    tiles.EXTRACT_PART: _extract_part,
    tiles.EXTRACT_SLICE: _extract_slice,
}
"""By the operation's name."""
