"""What is known of each operation on tiles, for all passes."""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import is_tile

_POINTWISE_DIALECTS = ("arith", "math")
CONSTANT = "arith.constant"


def is_pointwise(op: Any) -> bool:
    """Return whether each element of the result depends on the same element of the operands."""
    is_of_dialect = op.name.partition(".")[0] in _POINTWISE_DIALECTS and op.name != CONSTANT
    return bool(is_of_dialect or op.name == tiles.RESTRICT)


def is_source(op: Any) -> bool:
    """Return whether an operation makes a tile out of none that any layout can have for nothing."""
    return bool(op.name in (CONSTANT, tiles.FULL, tiles.IOTA, tiles.IN_RANGE))


def ties(op: Any) -> list[list[Any]]:
    """Return the groups of tiles that control flow makes one value, so that they have one layout.

    Of a loop: what goes in, the argument of its body, what its body yields, and the result.
    """
    match op.name:
        case "scf.for":
            body = op.regions[0].blocks[0]
            inside, end = list(body.arguments)[1:], _terminator(body).operands
            return _tiles(list(op.operands)[3:], inside, end, op.results)
        case "scf.if" if list(op.results):
            ends = [_terminator(region.blocks[0]).operands for region in op.regions]
            return _tiles(*ends, op.results)
        case "scf.while":
            before, after = (region.blocks[0] for region in op.regions)
            passed = list(_terminator(before).operands)[1:]
            return [
                *_tiles(op.operands, before.arguments, _terminator(after).operands),
                *_tiles(passed, after.arguments, op.results),
            ]
    return []


def _tiles(*values: Any) -> list[list[Any]]:
    """Return the groups of tiles, one from each of the lists."""
    return [list(group) for group in zip(*values, strict=True) if is_tile(group[0])]


def _terminator(block: Any) -> Any:
    return list(block.operations)[-1].operation
