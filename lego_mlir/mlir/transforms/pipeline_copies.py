"""`transform_lego.pipeline_copies`: copy tiles `depth` iterations before they are used.

The output of `stage_in_shared` for a loop,

    scf.for %k = %lower to %upper step %c1 {
      %stage = arith.remui %k, %c4
      %x = "lego.load"(%a, %m, %k) ...
      "lego.store"(%x, %s, %stage) ...
      gpu.barrier
      use of %s at %stage
    }

becomes, with `depth = 3`,

    the copies of iterations 0, 1 and 2, a group each
    scf.for %k = %lower to %upper step %c1 {
      nvvm.cp.async.wait.group 2
      gpu.barrier
      scf.if (%k + 3 < %upper) { the copies of iteration %k + 3 }
      nvvm.cp.async.commit.group
      use of %s at %stage
    }

Each iteration commits one group, which may be empty. So all but the last depth - 1 groups belong to
this iteration and earlier ones. There are more stages than iterations ahead, so one barrier an
iteration is enough: no thread has read the stage that is filled since the barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.lowering.indices.index_reader import bound_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.copies import PURE, TileCopy, copies_among
from lego_mlir.mlir.tiles.kernels import barrier, constant_value
from lego_mlir.mlir.tiles.structure import backward_slice, clone, known_size


@transform("pipeline_copies")
def pipeline_copies(step: TransformStep) -> list[list[Any]]:
    """Pipeline the copies to shared memory of the loops that have some."""
    depth = step.number("depth")
    if depth < 1:
        raise step.misuse(
            f"depth is {depth}, but copies are at least one iteration ahead",
            hint=f"{step.option('depth', 1)}, or more",
        )
    if step.pass_context.target.capability < (8, 0):
        raise step.misuse(
            f"{step.pass_context.target.name} has no asynchronous copies (cp.async)",
            hint="target sm_80 or later, or leave this step out",
        )
    found = False
    for loop in step.payload():
        if loop.name != "scf.for":
            raise step.error(f"expected a scf.for, found '{loop.name}'", loop)
        operations = [op.operation for op in loop.regions[0].blocks[0].operations]
        copies = [copy for copy in copies_among(step, operations) if copy.fills_shared]
        if copies:
            _Pipeline(step, loop, copies, depth).run()
            found = True
    if not found:
        raise step.misuse(
            f"looked for copies of tiles to shared memory in {len(step.payload())} loops, "
            "found none",
            hint="run stage_in_shared first, which makes them from loads with the attribute shared",
        )
    return []


class _Pipeline:
    """The rewrite of one loop."""

    def __init__(
        self, step: TransformStep, loop: Any, copies: Sequence[TileCopy], depth: int
    ) -> None:
        self.step = step
        self.loop = loop
        self.depth = depth
        self.copies = copies
        self.body = loop.regions[0].blocks[0]
        self.variable, *self.carried = list(self.body.arguments)
        self.lower, self.upper, self.by = list(loop.operands)[:3]
        for copy in copies:
            self._check_stages(copy)
        stores = [copy.written.op for copy in copies]
        needed = backward_slice([operand for op in stores for operand in op.operands], self.body)
        operations = [op.operation for op in self.body.operations]
        self.moved = [op for op in operations if op in needed or op in stores]
        self._check_independent()

    def run(self) -> None:
        """Rewrite the loop in place."""
        with ir.InsertionPoint(self.loop), self.loop.location:
            for ahead in range(self.depth):
                self._copy_ahead(ahead, self._shifted(self.lower, ahead))
        operations = [op.operation for op in self.body.operations]
        with ir.InsertionPoint(operations[0]), self.loop.location:
            nvvm.wait_for_copies(self.depth - 1)
            barrier()
            self._copy_ahead(self.depth, self._shifted(self.variable, self.depth))
        for op in self._replaced_barriers(operations):
            self.step.erase(op)
        for copy in self.copies:
            self.step.erase(copy.written.op)
            self.step.erase(copy.read.op)

    def _copy_ahead(self, ahead: int, variable: Any) -> None:
        """Make the copies of the iteration at `variable`, if it exists, and commit a group."""
        within = self._is_within(ahead, variable)
        if within is None:
            self._copy(variable)
        elif within is not False:
            guard = scf.IfOp(within)
            with ir.InsertionPoint(guard.then_block):
                self._copy(variable)
                scf.YieldOp([])
        nvvm.commit_copies()

    def _copy(self, variable: Any) -> None:
        values = {self.variable: variable}
        for op in self.moved:
            with op.location:
                clone(op, values)

    def _is_within(self, ahead: int, variable: Any) -> Any:
        """Return whether the iteration exists, an i1; `None` for always, `False` for never."""
        pass_context = self.step.pass_context
        lower, upper, by = (known_size(v, pass_context) for v in (self.lower, self.upper, self.by))
        limit = _upper_limit(self.upper) if upper is None else upper
        if lower is not None and limit is not None and by is not None:
            iterations = max(0, -(-(limit - lower) // by))
            if ahead >= iterations:
                return False
            if upper is not None and ahead < self.depth:
                return None
        return arith.CmpIOp(arith.CmpIPredicate.slt, variable, self.upper).result

    def _shifted(self, variable: Any, iterations: int) -> Any:
        """Return the induction variable so many iterations later."""
        if iterations == 0:
            return variable
        start, by = constant_value(variable), constant_value(self.by)
        if by is None:
            distance = arith.MulIOp(self.by, accesses.constant(iterations)).result
        elif start is not None:
            return accesses.constant(start + by * iterations)
        else:
            distance = accesses.constant(by * iterations)
        return arith.AddIOp(variable, distance).result

    def _replaced_barriers(self, operations: Sequence[Any]) -> list[Any]:
        """Return the barriers between the copies and their uses, which the new one replaces."""
        found: list[Any] = []
        for copy in self.copies:
            position = operations.index(copy.written.op)
            following = (op for op in operations[position:] if op.name == "gpu.barrier")
            barrier = next(following, None)
            if barrier is not None and barrier not in found:
                found.append(barrier)
        return found

    def _check_stages(self, copy: TileCopy) -> None:
        """Check that a copy writes to a ring of enough stages."""
        tile = copy.written
        stages = prod(
            cast("int", tile.layout.dims[k]) for k, i in enumerate(tile.index) if i is not None
        )
        indices = [i for i in tile.index if i is not None]
        by_iteration = len(indices) == 1 and _name_of(indices[0]) == "arith.remui"
        if stages > 1 and not by_iteration:
            raise self.step.error(
                "looked for a stage that is the iteration modulo the number of stages, found "
                f"'{_name_of(indices[0])}'",
                tile.op,
                hint="stage_in_shared makes such copies",
            )
        if stages < self.depth + 1:
            raise self.step.error(
                f"copies {self.depth} iterations ahead need {self.depth + 1} buffers, "
                f"there {'is' if stages == 1 else 'are'} {stages}",
                tile.op,
                hint=f"{self.step.option('buffers', self.depth + 1)} for stage_in_shared",
            )

    def _check_independent(self) -> None:
        """Check that the copies of an iteration do not depend on earlier iterations."""
        own = [op for copy in self.copies for op in (copy.read.op, copy.written.op)]
        for op in self.moved:
            if op not in own and not op.name.startswith(PURE):
                raise self.step.error(
                    f"the address of a copy depends on '{op.name}', which cannot be moved",
                    op,
                )
            if any(operand == carried for operand in op.operands for carried in self.carried):
                raise self.step.error(
                    "the address of a copy depends on a value that the loop carries",
                    op,
                    hint="compute it from the loop's induction variable",
                )


def _upper_limit(value: Any) -> int | None:
    """Return a known upper limit of a value, else `None`."""
    if isinstance(value, ir.BlockArgument) or value.owner.name == "scf.for":
        return None
    bound = bound_of(value)
    return None if bound is None else bound - 1


def _name_of(value: Any) -> str:
    """Return the name of the operation that defines a value."""
    return "a block argument" if isinstance(value, ir.BlockArgument) else str(value.owner.name)
