"""Remove dead, repeated and idle operations on tiles, and move invariant ones out of loops.

    %b = "lego.broadcast"(%m) : (tensor<4x1xf32>) -> tensor<4x256xf32>
    %c = "lego.broadcast"(%m) : (tensor<4x1xf32>) -> tensor<4x256xf32>     // is %b
    %d = arith.addf %b, %c : tensor<4x256xf32>
    %e = "lego.reduce"(%m) {dim = 1, ...} : (tensor<4x1xf32>) -> tensor<4x1xf32>     // is %m
    %f = "lego.reshape"(%d) : (tensor<4x256xf32>) -> tensor<1024xf32>
    %g = "lego.reshape"(%f) : (tensor<1024xf32>) -> tensor<8x128xf32>     // is a reshape of %d

MLIR's own passes do not: operations that IRDL declares count as having effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import COMBINING, CONSTANT, is_pointwise
from lego_mlir.mlir.tile_ir.types import has_tiles, shape_of

_READS = (dialect.LOAD, tiles.GATHER)
_PURE = frozenset(dialect.TILE_OPERATIONS) - {tiles.GATHER, tiles.SCATTER}
_REDUCTIONS = (tiles.REDUCE, tiles.REDUCE_WITH)
_LOOPS = ("scf.for",)

_Known: TypeAlias = dict[tuple[Any, ...], Any]


def simplify_tiles(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    for op in kernel.operations((tiles.RESHAPE, *_REDUCTIONS)):
        _fold(op)
    for loop in _loops(kernel.body):
        _hoist(loop)
    _merge(kernel.body, {})
    erase_dead_tiles(kernel)


def erase_dead_tiles(kernel: TileKernel) -> None:
    """Erase the operations of a kernel whose tiles nothing uses."""
    for op in reversed(kernel.operations()):
        is_used = any(True for value in op.results for _ in value.uses)
        if not is_used and (only_computes(op) or op.name in _READS):
            op.erase()


def only_computes(op: Any) -> bool:
    """Return whether an operation does nothing but compute tiles, or a number of one."""
    name = op.name
    return (name in _PURE or name == CONSTANT or is_pointwise(op)) and has_tiles(op)


def _fold(op: Any) -> None:
    """Replace an operation that does nothing, and let a reshape read what it is a reshape of.

    Where a tile has one element along a dimension, its reduction is the tile itself: what is not
    valid has been filled before.
    """
    if op.name == tiles.RESHAPE:
        before = op.operands[0]
        while dialect.made_by(before, tiles.RESHAPE):
            before = before.owner.operands[0]
        op.operands[0] = before
    elif shape_of(op.operands[0])[tiles.dim_of(op)] > 1:
        return
    pairs = list(zip(op.results, op.operands, strict=True))
    if all(result.type == operand.type for result, operand in pairs):
        for result, operand in pairs:
            result.replace_all_uses_with(operand)
        op.erase()


def _loops(block: Any) -> Iterator[Any]:
    """Yield the loops of a block, inner before outer."""
    for op in [o.operation for o in block.operations]:
        for region in op.regions:
            for inner in region.blocks:
                yield from _loops(inner)
        if op.name in _LOOPS:
            yield op


def _hoist(loop: Any) -> None:
    """Move what computes the same tiles in every iteration of a loop before it."""
    block = loop.regions[0].blocks[0]
    inside = set(block.arguments)
    for op in [o.operation for o in block.operations]:
        is_invariant = only_computes(op) and not any(v in inside for v in _read_by(op))
        if is_invariant:
            op.move_before(loop)
        else:
            inside.update(op.results)


def _read_by(op: Any) -> Iterator[Any]:
    """Yield the values that an operation and those in its regions use."""
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _read_by(inner.operation)


def _merge(block: Any, known: _Known) -> None:
    """Replace operations of a block that compute what one before them, or around them, does."""
    for op in [o.operation for o in block.operations]:
        for region in op.regions:
            if op.name in COMBINING:
                continue
            for inner in region.blocks:
                _merge(inner, dict(known))
        if not only_computes(op) or op.name in COMBINING:
            continue
        key = _identity(op)
        if key not in known:
            known[key] = op
            continue
        for result, same in zip(op.results, known[key].results, strict=True):
            result.replace_all_uses_with(same)
        op.erase()


def _identity(op: Any) -> tuple[Any, ...]:
    """Return what operations have in common that compute the same."""
    attributes = frozenset(named_attributes(op).items())
    return op.name, tuple(op.operands), attributes, tuple(v.type for v in op.results)
