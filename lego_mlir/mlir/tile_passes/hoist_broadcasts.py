"""Compute on the smallest tile what is the same along a dimension, and broadcast the result.

    %b = "lego.broadcast"(%s) : (tensor<64x1xf32>) -> tensor<64x64xf32>
    %r = math.rsqrt %b : tensor<64x64xf32>

becomes

    %q = math.rsqrt %s : tensor<64x1xf32>
    %r = "lego.broadcast"(%q) : (tensor<64x1xf32>) -> tensor<64x64xf32>

A broadcast costs nothing, and what is computed before it is computed once. Sources count as
broadcasts, too: a constant varies along no dimension, an index along one. What a program places
stays as it is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import CONSTANT, is_pointwise
from lego_mlir.mlir.tile_ir.types import element_of, is_tile, layout_of, shape_of, tile_type
from lego_mlir.mlir.tile_passes.simplify_tiles import erase_dead_tiles

Shape: TypeAlias = tuple[int, ...]


def hoist_broadcasts(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    hoisted = False
    for op in kernel.operations():
        if not is_pointwise(op) or op.name == tiles.RESTRICT:
            continue  # that stays directly before the access that it is about
        if all(is_tile(v) and layout_of(v) is None for v in _values(op)):
            hoisted |= _hoist(op)
    if hoisted:
        erase_dead_tiles(kernel)


def _values(op: Any) -> list[Any]:
    return [*op.operands, *op.results]


def _hoist(op: Any) -> bool:
    """Compute an operation before the broadcasts of its operands, if all of them are some.

    Returns:
        Whether it is.
    """
    shape = shape_of(op.results[0])
    small: Shape = tuple(max(sizes) for sizes in zip(*map(_varying, op.operands), strict=True))
    if small == shape or all(_is_constant(v) for v in op.operands):
        return False  # MLIR folds constants
    with ir.InsertionPoint(op), op.location:
        operands = [_smaller(v, small) for v in op.operands]
        copy = op.clone()
        for k, operand in enumerate(operands):
            copy.operands[k] = operand
        for result in copy.results:
            result.set_type(tile_type(small, element_of(result)))
        for old, new in zip(op.results, copy.results, strict=True):
            old.replace_all_uses_with(tiles.broadcast(old.type, new))
    op.erase()
    return True


def _varying(tile: Any) -> Shape:
    """Return the shape of a tile with 1 for the dimensions along which all elements are equal."""
    shape = shape_of(tile)
    if isinstance(tile, ir.BlockArgument):
        return shape
    op = tile.owner.operation
    match op.name:
        case tiles.BROADCAST:
            return shape_of(op.operands[0])
        case tiles.FULL:
            return (1,) * len(shape)
        case tiles.IOTA | tiles.IN_RANGE:
            dim = tiles.dim_of(op)
            return tuple(n if d == dim else 1 for d, n in enumerate(shape))
    return (1,) * len(shape) if _is_constant(tile) else shape


def _is_constant(tile: Any) -> bool:
    return not isinstance(tile, ir.BlockArgument) and tile.owner.operation.name == CONSTANT


def _smaller(tile: Any, shape: Shape) -> Any:
    """Build a tile of a shape of which a tile is a broadcast; return it."""
    op = tile.owner.operation
    kind = tile_type(shape, element_of(tile))
    if op.name == tiles.BROADCAST:
        source = op.operands[0]
        return source if shape_of(source) == shape else tiles.broadcast(kind, source)
    copy = op.clone()
    copy.results[0].set_type(kind)
    if op.name == CONSTANT:
        number = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        copy.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, number)
    return copy.results[0]
