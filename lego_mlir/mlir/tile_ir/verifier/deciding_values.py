"""The values of a kernel that decide which operations on rings run, and with which numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.tile_ir.types import is_tile


def deciding_values(inside: Iterable[Any]) -> set[Any]:
    """Return the values that decide, of the operations of a kernel.

    Args:
        inside: the operations.
    """
    pending: list[Any] = []
    for op in inside:
        if op.name in pipelines.OF_RING:
            pending.append(op.operands[1])
        elif op.name == "scf.for":
            pending += list(op.operands)[:3]
        elif op.name in ("scf.if", "scf.condition"):
            pending.append(op.operands[0])
    found: set[Any] = set()
    while pending:
        value = pending.pop()
        if value not in found and not is_tile(value):
            found.add(value)
            pending += _sources(value)
    return found


def _sources(value: Any) -> list[Any]:
    """Return the values that a value is computed from, or that pass their number on to it."""
    if isinstance(value, ir.BlockArgument):
        op, number, is_argument = value.owner.owner, value.arg_number, True
    else:
        op, number, is_argument = value.owner, value.result_number, False
    blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    match op.name, is_argument:
        case "scf.for", True if number:  # the first argument is the loop variable
            return [op.operands[2 + number], end_of(blocks[0]).operands[number - 1]]
        case "scf.for", False:
            return [blocks[0].arguments[1 + number]]
        case "scf.if", False:
            return [end_of(block).operands[number] for block in blocks]
        case "scf.while", True:
            before, after = blocks
            if value.owner == after:
                return [end_of(before).operands[1 + number]]
            return [op.operands[number], end_of(after).operands[number]]
        case "scf.while", False:
            return [end_of(blocks[0]).operands[1 + number]]
    return [] if is_argument else list(op.operands)


def end_of(block: Any) -> Any:
    """Return the last operation of a block."""
    return list(block.operations)[-1].operation
