"""Loops in which some operations come one iteration late.

    for %i { early(%i); late(%i) }

becomes

    early(0)
    for %i from 1 { early(%i); late(%i - 1) }
    late(of the last iteration)

What late operations need of their iteration is carried to the next one, but scalars are computed
again. The loop must be known to run at least once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.index import construct
from lego_mlir.index.proofs import prover
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import body_of, integer, operations_of
from lego_mlir.mlir.tile_steps.scalars import is_scalar


def runs_at_least(loop: Any, count: Any) -> bool:
    """Return whether a loop is known to have so many iterations, a number or an index."""
    reader = IndexReader()
    low, high, stride = list(loop.operands)[:3]
    least = count if isinstance(count, int) else reader.read(count)
    span = construct.sub(reader.read(high), reader.read(low))
    before = construct.mul(construct.sub(least, 1), reader.read(stride))
    return prover.is_nonnegative(construct.sub(construct.sub(span, before), 1))


class Rotation:
    """The rewrite of one loop.

    Args:
        loop: an scf.for that runs at least once.
        late: operations of its body, with all that uses their results.
        behind: the early operation behind which the late ones of the iteration before stand.

    Attributes:
        first: what values of the body are in the first iteration, before the new loop.
        inside: what they are in the new loop.
        made: the new loop.
        late: the late operations in the new loop.
    """

    def __init__(self, loop: Any, late: set[Any], behind: Any) -> None:
        self._loop = loop
        self._block = body_of(loop)
        *operations, self._end = operations_of(self._block)
        self._arguments = list(self._block.arguments)[1:]
        self._late = [op for op in operations if op in late]
        self._early = [op for op in operations if op not in late]
        self._behind = behind
        self._late_arguments = {
            k for k, value in enumerate(self._end.operands) if made_by(value, late)
        }
        self._carried = self._find_carried()
        self.first: dict[Any, Any] = {}
        self.inside: dict[Any, Any] = {}
        self.made: Any = None
        self.late: list[Any] = []

    def _find_carried(self) -> list[Any]:
        """Return the values of early operations that late ones use and cannot compute again."""
        found: list[Any] = []
        made_late = {r for op in self._late for r in op.results}
        late_arguments = {self._arguments[k] for k in self._late_arguments}
        pending = [x for op in self._late for x in used_by(op)]
        pending += [self._end.operands[k] for k in self._late_arguments]
        seen = set()
        while pending:
            value = pending.pop(0)
            if value in seen or value in made_late or value in late_arguments:
                continue
            seen.add(value)
            if value == self._block.arguments[0] or not self._is_inside(value):
                continue
            if not isinstance(value, ir.BlockArgument) and is_scalar(value.owner):
                pending.extend(value.owner.operands)  # computed again
            else:
                found.append(value)
        return found

    def _is_inside(self, value: Any) -> bool:
        if isinstance(value, ir.BlockArgument):
            return bool(value.owner == self._block)
        return bool(value.owner.operation.block == self._block)

    # The new loop.
    def build(self) -> None:
        """Build the first iteration's early part, the loop, and the last one's late part.

        Nothing uses the old loop any more; it is to be erased.
        """
        loop = self._loop
        low, high, stride, *initial = list(loop.operands)
        with ir.InsertionPoint(loop), loop.location:
            first = self.first
            first[self._block.arguments[0]] = low
            first |= dict(zip(self._arguments, initial, strict=True))
            self._clone(self._early, first)
            start = build.binary("addi", low, stride)
            carried = [first.get(x, x) for x in self._carried]
            entering = [*self._next(first, initial, early=True), *carried]
            self.made = self._make_loop([start, high, stride], entering)
            results = list(self.made.results)
            count = len(self._arguments)
            last = {self._block.arguments[0]: self._last(low, high, stride)}
            last |= dict(zip(self._arguments, results, strict=False))
            last |= dict(zip(self._carried, results[count:], strict=True))
            self._clone(self._late, last)
            final = self._next(last, results[:count], early=False)
        for old, new in zip(loop.results, final, strict=True):
            old.replace_all_uses_with(new)

    def _make_loop(self, bounds: list[Any], entering: list[Any]) -> Any:
        """Build the loop: early operations of an iteration, late ones of the one before."""
        loop = self._loop
        kinds = [x.type for x in entering]
        made = ir.Operation.create(
            "scf.for",
            results=kinds,
            operands=[*bounds, *entering],
            attributes=named_attributes(loop),
            regions=1,
        )
        types = [self._block.arguments[0].type, *kinds]
        body = made.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
        variable, *arguments = body.arguments
        count = len(self._arguments)
        with ir.InsertionPoint(body):
            now = self.inside
            now[self._block.arguments[0]] = variable
            now |= dict(zip(self._arguments, arguments, strict=False))
            split = self._early.index(self._behind) + 1
            self._clone(self._early[:split], now)
            before = {self._block.arguments[0]: build.binary("subi", variable, bounds[2])}
            before |= dict(zip(self._arguments, arguments, strict=False))
            before |= dict(zip(self._carried, arguments[count:], strict=True))
            self.late = self._clone(self._late, before)
            self._clone(self._early[split:], now)
            early = self._next(now, arguments[:count], early=True)
            late = self._next(before, arguments[:count], early=False)
            yielded = [late[k] if k in self._late_arguments else early[k] for k in range(count)]
            carried = [now.get(x, x) for x in self._carried]
            ir.Operation.create("scf.yield", operands=[*yielded, *carried])
        return made

    def _next(self, values: dict[Any, Any], now: Sequence[Any], *, early: bool) -> list[Any]:
        """Return what the loop carries behind early or late operations; the rest stays."""
        return [
            now[k] if (k in self._late_arguments) == early else self._value(x, values)
            for k, x in enumerate(self._end.operands)
        ]

    def _last(self, low: Any, high: Any, stride: Any) -> Any:
        """Build the loop variable of the last iteration."""
        if integer(stride) == 1:
            return build.binary("subi", high, stride)
        span = build.binary("subi", build.binary("subi", high, low), build.index(1))
        trips = build.binary("divui", span, stride)
        return build.binary("addi", low, build.binary("muli", trips, stride))

    def _clone(self, operations: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
        """Clone operations in order, with new values for what they use; return the clones."""
        made = []
        for op in operations:
            for x in used_by(op):
                self._value(x, values)
            copy = op.clone()
            for inner in (copy, *operations_in(copy)):
                for k, operand in enumerate(inner.operands):
                    if operand in values:
                        inner.operands[k] = values[operand]
            values.update(zip(op.results, copy.results, strict=True))
            made.append(copy.operation)
        return made

    def _value(self, value: Any, values: dict[Any, Any]) -> Any:
        """Return the new value of one, for a scalar of the body computed again where needed."""
        if value in values or not self._is_inside(value):
            return values.get(value, value)
        if not isinstance(value, ir.BlockArgument) and is_scalar(value.owner):
            self._clone([value.owner.operation], values)
        return values.get(value, value)


def used_by(op: Any) -> list[Any]:
    """Return the values that an operation and those inside of it use."""
    return [x for inner in (op, *operations_in(op)) for x in inner.operands]


def made_by(value: Any, operations: set[Any]) -> bool:
    """Return whether one of some operations computes a value."""
    return not isinstance(value, ir.BlockArgument) and value.owner.operation in operations
