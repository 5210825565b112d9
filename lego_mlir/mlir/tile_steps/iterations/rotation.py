"""Loops in which some operations come one iteration late.

    for %i { early(%i); late(%i) }

becomes

    early(0)
    for %i from 1 { early(%i); late(%i - 1) }
    late(of the last iteration)

What late operations need of their iteration is carried to the next one, but scalars are computed
again. The loop must be known to run at least once.

Late operations without results may be guarded instead, so that the early ones are there once:

    for %i { early(%i); if %i is not the first { late(%i - 1) } }
    late(of the last iteration)

The first iteration begins with zeros in place of what is carried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import body_of, named_attributes
from lego_mlir.mlir.structure import clone, used_by
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where
from lego_mlir.mlir.tile_steps.accumulating import zeros
from lego_mlir.mlir.tile_steps.kernels import integer, operations_of
from lego_mlir.mlir.tile_steps.scalars import is_scalar


class Rotation:
    """The rewrite of one loop.

    Args:
        loop: an scf.for that runs at least once.
        late: operations of its body, with all that uses their results.
        behind: the early operation behind which the late ones of the iteration before stand.
        is_guarded: there is no first iteration in front of the loop, and late operations, which
            have no results, are in a branch.

    Attributes:
        first: what values of the body are in the first iteration, before the new loop, if it is
            there.
        inside: what they are in the new loop.
        made: the new loop.
        late: the late operations in the new loop.
        guard: the branch that they are in, if they are guarded.
    """

    def __init__(self, loop: Any, late: set[Any], behind: Any, *, is_guarded: bool = False) -> None:
        self._loop = loop
        self._is_guarded = is_guarded
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
        self.guard: Any = None

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
        """Build the first iteration's early part if it is there, the loop, and the last late part.

        Nothing uses the old loop any more; it is to be erased.
        """
        loop = self._loop
        low, high, stride, *initial = list(loop.operands)
        with ir.InsertionPoint(loop), loop.location:
            if self._is_guarded:
                start, entering = low, [*initial, *(zeros(x.type) for x in self._carried)]
            else:
                start, entering = self._peel(low, stride, initial)
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

    def _peel(self, low: Any, stride: Any, initial: list[Any]) -> tuple[Any, list[Any]]:
        """Build the first iteration's early part; return with what the loop begins."""
        first = self.first
        first[self._block.arguments[0]] = low
        first |= dict(zip(self._arguments, initial, strict=True))
        self._clone(self._early, first)
        carried = [first.get(x, x) for x in self._carried]
        entering = [*self._next(first, initial, early=True), *carried]
        return build.binary("addi", low, stride), entering

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
            before = dict(zip(self._arguments, arguments, strict=False))
            before |= dict(zip(self._carried, arguments[count:], strict=True))
            is_later = build.compare("ult", bounds[0], variable) if self._is_guarded else None
            with where(is_later):
                before[self._block.arguments[0]] = build.binary("subi", variable, bounds[2])
                self.late = self._clone(self._late, before)
            self.guard = self.late[0].parent.operation if self._is_guarded else None
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
            made.append(clone(op, values))
        return made

    def _value(self, value: Any, values: dict[Any, Any]) -> Any:
        """Return the new value of one, for a scalar of the body computed again where needed."""
        if value in values or not self._is_inside(value):
            return values.get(value, value)
        if not isinstance(value, ir.BlockArgument) and is_scalar(value.owner):
            self._clone([value.owner.operation], values)
        return values.get(value, value)


def made_by(value: Any, operations: set[Any]) -> bool:
    """Return whether one of some operations computes a value."""
    return not isinstance(value, ir.BlockArgument) and value.owner.operation in operations
