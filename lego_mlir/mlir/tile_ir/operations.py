"""What is known of each operation on tiles, for all passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import is_tile

_POINTWISE_DIALECTS = ("arith", "math")
CONSTANT = "arith.constant"
COMBINING = (tiles.REDUCE_WITH, tiles.SCAN_WITH, tiles.SORT_WITH)
"""Operations whose region says how two elements are combined."""


def is_pointwise(op: Any) -> bool:
    """Return whether each element of the result depends on the same element of the operands."""
    return _is_pointwise(op.name)


@lru_cache(maxsize=1 << 10)
def _is_pointwise(name: str) -> bool:
    is_of_dialect = name.partition(".")[0] in _POINTWISE_DIALECTS and name != CONSTANT
    return is_of_dialect or name == tiles.RESTRICT


def is_source(op: Any) -> bool:
    """Return whether an operation makes a tile out of none that any layout can have for nothing."""
    return bool(op.name in (CONSTANT, tiles.FULL, tiles.IOTA, tiles.IN_RANGE))


def slice_of(op: Any) -> tuple[int, ...]:
    """Return the layout's dimension along which each dimension of a loaded or stored tile extends.

    A single element has none.
    """
    is_sliced = dialect.SLICE in op.attributes
    return tuple(ir.DenseI64ArrayAttr(op.attributes[dialect.SLICE])) if is_sliced else ()


@dataclass(frozen=True)
class Tie:
    """Tiles that control flow makes one value, so that they have one layout.

    Attributes:
        members: the block arguments and results that are the value.
        uses: what goes in: operations and the numbers of their operands.
    """

    members: tuple[Any, ...]
    uses: tuple[tuple[Any, int], ...]


def ties(op: Any) -> list[Tie]:
    """Return the groups of tiles that control flow makes one value.

    Of a loop: what goes in, the argument of its body, what its body yields, and the result.
    """
    match op.name:
        case "scf.for":
            body = op.regions[0].blocks[0]
            end = _terminator(body)
            found = [
                Tie((argument, result), ((op, 3 + k), (end, k)))
                for k, (argument, result) in enumerate(
                    zip(list(body.arguments)[1:], op.results, strict=True)
                )
            ]
        case "scf.if" if list(op.results):
            ends = [_terminator(region.blocks[0]) for region in op.regions]
            found = [
                Tie((result,), tuple((end, k) for end in ends))
                for k, result in enumerate(op.results)
            ]
        case "scf.while":
            before, after = (region.blocks[0] for region in op.regions)
            condition, end = _terminator(before), _terminator(after)
            found = [
                Tie((argument,), ((op, k), (end, k))) for k, argument in enumerate(before.arguments)
            ]
            found += [
                Tie((argument, result), ((condition, 1 + k),))
                for k, (argument, result) in enumerate(
                    zip(after.arguments, op.results, strict=True)
                )
            ]
        case _:
            found = []
    return [tie for tie in found if is_tile(tie.members[0])]


def _terminator(block: Any) -> Any:
    return list(block.operations)[-1].operation
