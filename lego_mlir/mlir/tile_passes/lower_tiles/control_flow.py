"""Loops and branches that carry tiles: each tile becomes its parts.

    %r = scf.for %i = %a to %b step %c iter_args(%x = %x0) -> (tensor<256xf32, #D>) { ... }

becomes

    %r:2 = scf.for ... iter_args(%p = %p0, %q = %q0) -> (vector<4xf32>, vector<4xf32>) { ... }

The operations of the bodies move; the old operation stays, empty, until all that uses its tiles is
erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.types import element_of, is_tile
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    ElementsFragment,
    Fragment,
    part_types,
    part_width,
)
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

CONTROL_FLOW = ("scf.for", "scf.if", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition")
_LOOP = "scf.for"

_BOUNDS = 3
"""The operands of a scf.for before those that it carries."""


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

    A loop that begins with the elements of a tile carries elements.

    Args:
        op: one of `CONTROL_FLOW` with a tile among its operands or results.
        walk: lowers the bodies.

    Raises:
        LegoError: a tile inside cannot be lowered.
    """
    singles = _singles(op, walk)
    attributes = named_attributes(op)
    if dialect.BOUNDS in attributes:
        bounds = dialect.bounds_of(op)
        assert bounds is not None
        counts = [len(_types([r], [single], walk)) for r, single in _marked(op.results, singles)]
        is_bound = zip(op.results, bounds, counts, strict=True)
        attributes[dialect.BOUNDS] = dialect.bounds_attribute(
            [0 if is_tile(r) else bound for r, bound, count in is_bound for _ in range(count)]
        )
    made = ir.Operation.create(
        op.name,
        results=_types(op.results, singles, walk),
        operands=_values(op.operands, [False] * _BOUNDS + singles, walk),
        attributes=attributes,
        regions=len(op.regions),
    )
    walk.dead.append(op)
    for old, new in zip(op.regions, made.regions, strict=True):
        for block in old.blocks:
            inside = [False, *singles] if singles else []
            kinds = _types(block.arguments, inside, walk)
            body = new.blocks.append(*kinds, arg_locs=[op.location] * len(kinds))
            _replace(block.arguments, body.arguments, inside, walk)
            for inner in [o.operation for o in block.operations]:
                body.append(inner)
            walk.lower_block(body)
            _replace_terminator(body, singles, walk)
    _replace(op.results, made.results, singles, walk)


def _singles(op: Any, walk: Walk) -> list[bool]:
    """Return which of the values that a loop carries are tiles of elements; of others nothing."""
    if op.name != _LOOP:
        return []
    carried = list(op.operands)[_BOUNDS:]
    return [is_tile(x) and isinstance(walk.fragments[x], ElementsFragment) for x in carried]


def _marked(values: Iterable[Any], singles: Sequence[bool]) -> Iterator[tuple[Any, bool]]:
    """Yield values, and which of them are tiles of elements; `singles` may end before."""
    rest = iter(singles)
    return ((value, next(rest, False)) for value in values)


def _replace_terminator(block: Any, singles: Sequence[bool], walk: Walk) -> None:
    """Build the end of a block with the parts, or elements, of its tiles."""
    end = list(block.operations)[-1].operation
    if end.name not in _TERMINATORS:
        raise LegoError(f"'{end.name}' ends a block with tiles, and not scf.yield")
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create(end.name, operands=_values(end.operands, singles, walk))
    walk.dead.append(end)


def _types(values: Iterable[Any], singles: Sequence[bool], walk: Walk) -> list[Any]:
    """Return the types of values, for a tile those of its parts or elements."""
    found: list[Any] = []
    for value, single in _marked(values, singles):
        if not is_tile(value):
            found.append(value.type)
        elif single:
            found += [element_of(value)] * walk.threads.layout(value).registers
        else:
            found += part_types(walk.threads.layout(value), element_of(value))
    return found


def _values(values: Iterable[Any], singles: Sequence[bool], walk: Walk) -> list[Any]:
    """Return values, for a tile its parts or elements."""
    found: list[Any] = []
    for value, single in _marked(values, singles):
        if not is_tile(value):
            found.append(value)
        else:
            fragment = walk.fragments[value]
            found += fragment.elements() if single else fragment.parts
    return found


def _replace(old: Sequence[Any], new: Sequence[Any], singles: Sequence[bool], walk: Walk) -> None:
    """Let values stand for the old ones, the parts or elements of tiles for the tiles."""
    rest = iter(new)
    for value, single in _marked(old, singles):
        if is_tile(value):
            layout = walk.threads.layout(value)
            count = layout.registers if single else layout.registers // part_width(layout)
            own = tuple(next(rest) for _ in range(count))
            kind = ElementsFragment if single else Fragment
            walk.fragments[value] = kind(layout, own)
        else:
            value.replace_all_uses_with(next(rest))
