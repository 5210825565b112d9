"""Loops and branches that carry tiles: each tile becomes its parts.

    %r = scf.for %i = %a to %b step %c iter_args(%x = %x0) -> (tensor<256xf32, #D>) { ... }

becomes

    %r:2 = scf.for ... iter_args(%p = %p0, %q = %q0) -> (vector<4xf32>, vector<4xf32>) { ... }

The operations of the bodies move; the old operation stays, empty, until all that uses its tiles is
erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.types import element_of, is_tile
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, part_types
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

CONTROL_FLOW = ("scf.for", "scf.if", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition")


class Walk(Protocol):
    """What lowers a block, and knows the fragments of tiles.

    Attributes:
        threads: those of the kernel.
        fragments: of each tile so far.
        dead: operations to erase, in the order of the kernel.
    """

    threads: Threads
    fragments: dict[Any, Fragment]
    dead: list[Any]

    def lower_block(self, block: Any) -> None:
        """Lower the operations of a block."""


def lower_control_flow(op: Any, walk: Walk) -> None:
    """Build a loop or branch with the parts of its tiles, and lower its bodies.

    Args:
        op: one of `CONTROL_FLOW` with a tile among its operands or results.
        walk: lowers the bodies.

    Raises:
        LegoError: a tile inside cannot be lowered.
    """
    attributes = named_attributes(op)
    if dialect.BOUNDS in attributes:
        bounds = dialect.bounds_of(op)
        assert bounds is not None
        attributes[dialect.BOUNDS] = dialect.bounds_attribute(
            [n for r, b in zip(op.results, bounds, strict=True) for n in _each(r, b, walk)]
        )
    made = ir.Operation.create(
        op.name,
        results=_types(op.results, walk),
        operands=_values(op.operands, walk),
        attributes=attributes,
        regions=len(op.regions),
    )
    walk.dead.append(op)
    for old, new in zip(op.regions, made.regions, strict=True):
        for block in old.blocks:
            kinds = _types(block.arguments, walk)
            body = new.blocks.append(*kinds, arg_locs=[op.location] * len(kinds))
            _replace(block.arguments, body.arguments, walk)
            for inner in [o.operation for o in block.operations]:
                body.append(inner)
            walk.lower_block(body)
            _replace_terminator(body, walk)
    _replace(op.results, made.results, walk)


def _replace_terminator(block: Any, walk: Walk) -> None:
    """Build the end of a block with the parts of its tiles."""
    end = list(block.operations)[-1].operation
    if end.name not in _TERMINATORS:
        raise LegoError(f"'{end.name}' ends a block with tiles, and not scf.yield")
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create(end.name, operands=_values(end.operands, walk))
    walk.dead.append(end)


def _types(values: Iterable[Any], walk: Walk) -> list[Any]:
    """Return the types of values, for a tile those of its parts."""
    return [
        kind
        for v in values
        for kind in (part_types(walk.threads.layout(v), element_of(v)) if is_tile(v) else [v.type])
    ]


def _values(values: Iterable[Any], walk: Walk) -> list[Any]:
    """Return values, for a tile its parts."""
    return [x for v in values for x in (walk.fragments[v].parts if is_tile(v) else [v])]


def _each(value: Any, bound: int, walk: Walk) -> list[int]:
    """Return a bound for each of the values that a value becomes."""
    return [0] * len(_types([value], walk)) if is_tile(value) else [bound]


def _replace(old: Sequence[Any], new: Sequence[Any], walk: Walk) -> None:
    """Let values stand for the old ones, the parts of tiles for the tiles."""
    rest = iter(new)
    for value in old:
        if is_tile(value):
            layout = walk.threads.layout(value)
            count = len(part_types(layout, element_of(value)))
            walk.fragments[value] = Fragment(layout, tuple(next(rest) for _ in range(count)))
        else:
            value.replace_all_uses_with(next(rest))
