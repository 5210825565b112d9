"""The numbers of a ring's tiles as loops count them: what they depend on, and how they go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.index import Sym, construct, symbols
from lego_mlir.index.nodes import FloorDiv
from lego_mlir.index.structure import children
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.tile_ir.scalars import Scalars


def is_of_bits(number: Any, stages: int) -> bool:
    """Return whether the position of a tile's number consists of bits of what counts iterations."""
    if stages & (stages - 1):
        return False
    pending = [construct.mod(Scalars()(number), 2 * stages)]
    while pending:
        found = pending.pop()
        divisor = found.den if isinstance(found, FloorDiv) else 1
        if isinstance(divisor, int) and divisor & (divisor - 1):
            return False
        pending += [] if isinstance(found, int) else children(found)
    return True


def arguments_of(number: Any) -> set[Any]:
    """Return the arguments of blocks that a number is computed from."""
    found, pending = set(), [number]
    while pending:
        value = pending.pop()
        if isinstance(value, ir.BlockArgument):
            found.add(value)
        else:
            pending.extend(value.owner.operands)
    return found


def step_of(loop: Any, number: Any) -> int | None:
    """Return what each iteration of a loop adds to a number; `None` if that is not known."""
    read = Scalars()
    now = read(number)
    variable, *carried = body_of(loop).arguments
    *_, end = body_of(loop).operations
    yielded = map(read, end.operands)
    following = dict(zip(map(read, carried), yielded, strict=True))
    following[read(variable)] = construct.add(read(variable), read(loop.operands[2]))
    known: Mapping[Sym, Any] = {s: x for s, x in following.items() if isinstance(s, Sym)}
    changing = symbols(now) - set(known)
    if any(is_inside(read.values[s], loop) for s in changing):
        return None
    step = construct.sub(construct.substitute(now, known), now)
    return step if isinstance(step, int) else None


def is_inside(value: Any, loop: Any) -> bool:
    """Return whether a value is made in a loop."""
    is_argument = isinstance(value, ir.BlockArgument)
    around = value.owner.owner.operation if is_argument else value.owner.operation
    while around is not None and around != loop:
        around = around.parent and around.parent.operation
    return around is not None


def rebuilt(value: Any, loop: Any, values: dict[Any, Any]) -> Any:
    """Build a scalar of a loop again, with the values of the loop's arguments."""
    if value in values or not is_inside(value, loop):
        return values.get(value, value)
    op = value.owner.operation
    operands = [rebuilt(x, loop, values) for x in op.operands]
    copy = op.clone()
    for k, operand in enumerate(operands):
        copy.operands[k] = operand
    values.update(zip(op.results, copy.results, strict=True))
    return values[value]
