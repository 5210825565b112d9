"""`transform_lego.skew`: the last dot of a loop's body comes one iteration late.

    scf.for %i = %lo to %hi ... iter_args(%m, %o) {
      %s = dot(%q, %k)                 the first dot, and what follows from it
      %p = softmax(%s, %m)
      %v = "lego.wait"(%values, %i)
      %o1 = dot(%p, %v, %o)            the last dot, with what only it needs and what follows
      "lego.release"(%values, %i)
      yield %m1, %o1
    }

becomes

    %p0 = softmax(dot(%q, %k))         of the first iteration
    scf.for %i = %lo + 1 to %hi ... iter_args(%m, %o, %p0) {
      %s = dot(%q, %k)
      %v = "lego.wait"(%values, %i - 1)
      %o1 = dot(%p0, %v, %o)           of the iteration before
      "lego.release"(%values, %i - 1)
      %p = softmax(%s, %m)
      yield %m1, %o1, %p
    }
    dot(%p, %v, %o)                    of the last iteration

So the two dots of an iteration do not depend on one another: the late one runs while the softmax of
the other is computed. The loop must be known to run at least once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.index import construct
from lego_mlir.index.ranges import is_positive
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.types import is_shared_tile
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import body_of, integer, loops_of, operations_of
from lego_mlir.mlir.tile_steps.role_slices import is_scalar

_DOTS = (tiles.DOT, pipelines.DOT_ASYNC)
_CHEAP = (tiles.BROADCAST, tiles.FULL, pipelines.WAIT)
"""What is done late if only late operations need it, instead of carrying its result."""


@transform("skew")
def skew(step: TransformStep) -> list[list[Any]]:
    """Skew the loops that have two dots or more."""
    loops = loops_of(step)
    skewed = 0
    for _, loop in loops:
        dots = [op for op in operations_of(body_of(loop)) if op.name in _DOTS]
        if len(dots) > 1:
            _Skew(step, loop, dots).build()
            skewed += 1
    if loops and not skewed:
        raise step.error(
            "no loop has two dots in its body", loops[0][1], hint="skew a loop with two or more"
        )
    return []


class _Skew:
    """The rewrite of one loop.

    Attributes:
        late: the operations that come one iteration late, in order.
        early: the others.
        carried: the values of an iteration that its late operations need.
    """

    def __init__(self, step: TransformStep, loop: Any, dots: list[Any]) -> None:
        self.step = step
        self.loop = loop
        self.block = body_of(loop)
        *operations, self.end = operations_of(self.block)
        self.arguments = list(self.block.arguments)[1:]
        late = self._late(operations, dots[-1])
        if dots[0] in late:
            raise step.error(
                "the first dot of this loop needs the last one of the iteration before",
                loop,
                hint="a loop can be skewed whose first dot does not depend on the last one",
            )
        self.late = [op for op in operations if op in late]
        self.early = [op for op in operations if op not in late]
        self.first_dot = dots[0]
        self.late_arguments = {
            k for k, value in enumerate(self.end.operands) if self._made_by(value, late)
        }
        self.carried = self._carried()

    # What is late.
    def _late(self, operations: list[Any], dot: Any) -> set[Any]:
        """Return the dot, what depends on it, what only these need, and the releases."""
        found = {dot}
        before = 0
        while before != len(found):
            before = len(found)
            values = {r for op in found for r in op.results}
            for k, value in enumerate(self.end.operands):
                if value in values:
                    values.add(self.arguments[k])
            found |= {op for op in operations if any(x in values for x in _used_by(op))}
        for op in reversed(operations):
            if op not in found and self._is_cheap(op):
                users = [u.owner.operation for r in op.results for u in r.uses]
                if users and all(user in found for user in users):
                    found.add(op)
        waited = {tuple(op.operands) for op in found if op.name == pipelines.WAIT}
        releases = (op for op in operations if op.name == pipelines.RELEASE)
        return found | {op for op in releases if tuple(op.operands) in waited}

    def _is_cheap(self, op: Any) -> bool:
        return op.name in _CHEAP or (
            op.name in (tiles.CONVERT, tiles.TRANSPOSE) and is_shared_tile(op.operands[0])
        )

    def _made_by(self, value: Any, operations: set[Any]) -> bool:
        return not isinstance(value, ir.BlockArgument) and value.owner.operation in operations

    def _carried(self) -> list[Any]:
        """Return the values of early operations that late ones use and cannot compute again."""
        found: list[Any] = []
        made_late = {r for op in self.late for r in op.results}
        late_arguments = {self.arguments[k] for k in self.late_arguments}
        pending = [x for op in self.late for x in _used_by(op)]
        pending += [self.end.operands[k] for k in self.late_arguments]
        seen = set()
        while pending:
            value = pending.pop(0)
            if value in seen or value in made_late or value in late_arguments:
                continue
            seen.add(value)
            if value == self.block.arguments[0] or not self._is_inside(value):
                continue
            if not isinstance(value, ir.BlockArgument) and is_scalar(value.owner):
                pending.extend(value.owner.operands)  # computed again
            else:
                found.append(value)
        return found

    def _is_inside(self, value: Any) -> bool:
        if isinstance(value, ir.BlockArgument):
            return bool(value.owner == self.block)
        return bool(value.owner.operation.block == self.block)

    # The new loop.
    def build(self) -> None:
        """Build the first iteration's early part, the loop, and the last one's late part."""
        loop = self.loop
        low, high, stride, *initial = list(loop.operands)
        self._check_runs(low, high)
        with ir.InsertionPoint(loop), loop.location:
            first = {
                self.block.arguments[0]: low,
                **dict(zip(self.arguments, initial, strict=True)),
            }
            self._clone(self.early, first)
            start = build.binary("addi", low, stride)
            carried = [first.get(x, x) for x in self.carried]
            entering = [*self._next(first, initial, early=True), *carried]
            made = self._make_loop([start, high, stride], entering)
            results = list(made.results)
            count = len(self.arguments)
            last = {self.block.arguments[0]: self._last(low, high, stride)}
            last |= dict(zip(self.arguments, results, strict=False))
            last |= dict(zip(self.carried, results[count:], strict=True))
            self._clone(self.late, last)
            final = self._next(last, results[:count], early=False)
        for old, new in zip(loop.results, final, strict=True):
            old.replace_all_uses_with(new)
        self.step.erase(loop)

    def _check_runs(self, low: Any, high: Any) -> None:
        reader = IndexReader()
        if not is_positive(construct.sub(reader.read(high), reader.read(low))):
            raise self.step.error(
                "this loop is not known to run at least once",
                self.loop,
                hint="a skewed loop begins its first iteration before it tests anything: give it "
                "bounds that are constant, or at least one more than an index",
            )

    def _make_loop(self, bounds: list[Any], entering: list[Any]) -> Any:
        """Build the loop: early operations of an iteration, late ones of the one before."""
        loop = self.loop
        kinds = [x.type for x in entering]
        made = ir.Operation.create(
            "scf.for",
            results=kinds,
            operands=[*bounds, *entering],
            attributes=named_attributes(loop),
            regions=1,
        )
        types = [self.block.arguments[0].type, *kinds]
        body = made.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
        variable, *arguments = body.arguments
        count = len(self.arguments)
        with ir.InsertionPoint(body):
            now = {self.block.arguments[0]: variable}
            now |= dict(zip(self.arguments, arguments, strict=False))
            split = self.early.index(self.first_dot) + 1
            self._clone(self.early[:split], now)
            before = {self.block.arguments[0]: build.binary("subi", variable, bounds[2])}
            before |= dict(zip(self.arguments, arguments, strict=False))
            before |= dict(zip(self.carried, arguments[count:], strict=True))
            self._clone(self.late, before)
            self._clone(self.early[split:], now)
            early = self._next(now, arguments[:count], early=True)
            late = self._next(before, arguments[:count], early=False)
            yielded = [late[k] if k in self.late_arguments else early[k] for k in range(count)]
            carried = [now.get(x, x) for x in self.carried]
            ir.Operation.create("scf.yield", operands=[*yielded, *carried])
        return made

    def _next(self, values: dict[Any, Any], now: Sequence[Any], *, early: bool) -> list[Any]:
        """Return what the loop carries behind early or late operations; the rest stays."""
        return [
            now[k] if (k in self.late_arguments) == early else self._value(x, values)
            for k, x in enumerate(self.end.operands)
        ]

    def _last(self, low: Any, high: Any, stride: Any) -> Any:
        """Build the loop variable of the last iteration."""
        if integer(stride) == 1:
            return build.binary("subi", high, stride)
        span = build.binary("subi", build.binary("subi", high, low), build.index(1))
        trips = build.binary("divui", span, stride)
        return build.binary("addi", low, build.binary("muli", trips, stride))

    def _clone(self, operations: Sequence[Any], values: dict[Any, Any]) -> None:
        """Clone operations in order, with new values for what they use."""
        for op in operations:
            for x in _used_by(op):
                self._value(x, values)
            copy = op.clone()
            for inner in (copy, *operations_in(copy)):
                for k, operand in enumerate(inner.operands):
                    if operand in values:
                        inner.operands[k] = values[operand]
            values.update(zip(op.results, copy.results, strict=True))

    def _value(self, value: Any, values: dict[Any, Any]) -> Any:
        """Return the new value of one, for a scalar of the body computed again where needed."""
        if value in values or not self._is_inside(value):
            return values.get(value, value)
        if not isinstance(value, ir.BlockArgument) and is_scalar(value.owner):
            self._clone([value.owner.operation], values)
        return values.get(value, value)


def _used_by(op: Any) -> list[Any]:
    """Return the values that an operation and those inside of it use."""
    return [x for inner in (op, *operations_in(op)) for x in inner.operands]
