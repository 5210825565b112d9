"""`transform_lego.copy_ahead`: threads copy the tiles of rings iterations before they read them.

    scf.for %i = %c0 to %n ... {
      "lego.acquire"(%ring, %i)
      "lego.copy_async"(%ring, %i, %a, %row, %k)
      "lego.commit"(%ring, %i)
      %t = "lego.wait"(%ring, %i)
      ...
      "lego.release"(%ring, %i)
    }

becomes, for a ring of three stages,

    acquire, copy and commit tile 0, then tile 1, of those that there are
    scf.for %i = %c0 to %n ... {
      %t = "lego.wait"(%ring, %i)
      scf.if %i + 2 < %n { acquire, copy and commit tile %i + 2 }
      ...
      "lego.release"(%ring, %i)
    }

The copies stand behind the first waits of the loop: a stage that has been released in the iteration
before needs no barrier of its own there. Tiles that are waited for together are copied together.
Many copies in front of the loop are a loop, too: they take each pass, and the GPU's instruction
cache, as long as those of one iteration. It is for kernels without roles, whose copies take time
while other work goes on (`choose_copy_engines`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where
from lego_mlir.mlir.tile_steps.kernels import integer, loops_of, operations_of
from lego_mlir.mlir.tile_steps.scalars import is_scalar

_DOTS = (tiles.DOT, pipelines.DOT_ASYNC)

_FEW_COPIES = 8
"""Copies in front of a loop that stand there one after the other; more of them are a loop."""


@transform("copy_ahead")
def copy_ahead(step: TransformStep) -> list[list[Any]]:
    """Copy the tiles of rings some iterations before loops use them."""
    ahead = step.number("iterations", 0)
    if ahead < 0:
        raise step.misuse(f"iterations is {ahead}", hint=step.option("iterations", 2))
    loops = loops_of(step)
    found = 0
    for _, loop in loops:
        acquires = [op for op in operations_of(body_of(loop)) if op.name == pipelines.ACQUIRE]
        if acquires:
            CopiesAhead(step, loop, acquires, ahead).build()
            found += 1
    if loops and not found and not step.number("if_any", 0):
        raise step.error(
            "no loop fills a ring",
            loops[0][1],
            hint="transform_lego.pipeline_loop makes rings; run this step without split_roles",
        )
    return []


class CopiesAhead:
    """The rewrite of one loop.

    Args:
        step: the transform step.
        loop: the loop.
        acquires: those of its body.
        ahead: how many iterations the copies are ahead; 0 for one less than the ring's stages.
    """

    def __init__(self, step: TransformStep, loop: Any, acquires: list[Any], ahead: int) -> None:
        self._step = step
        self._loop = loop
        self.block = body_of(loop)
        self._low, self._high, self._stride = list(loop.operands)[:3]
        self._fills: list[tuple[int, list[Any]]] = []
        listed = operations_of(self.block)
        self._places = {op: k for k, op in enumerate(listed)}
        self._producing: dict[Any, list[Any]] = {}
        for op in listed:
            if op.name in pipelines.PRODUCES:
                self._producing.setdefault(tuple(op.operands)[:2], []).append(op)
        for together in self.copied_together(acquires):
            iterations = min(self.iterations(op, ahead) for op in together)
            operations = [op for acquire in together for op in self._fill_of(acquire)]
            self._fills.append((iterations, list(dict.fromkeys(operations))))

    def iterations(self, acquire: Any, ahead: int) -> int:
        """Return how many iterations the copies into a ring are ahead."""
        stages = pipelines.stages_of(acquire.operands[0])
        if stages < 2 or ahead >= stages:
            least = max(2, ahead + 1)
            raise self._step.error(
                f"a ring of {stages} stages holds no tile that is copied {max(1, ahead)} "
                "iterations ahead",
                acquire,
                hint=f"{self._step.option('stages', least)} for pipeline_loop",
            )
        return ahead or stages - 1

    def copied_together(self, acquires: list[Any]) -> list[list[Any]]:
        """Return acquires in groups of those whose tiles are waited for together."""
        by_ring = {op.operands[0]: op for op in acquires}
        groups: list[list[Any]] = [[]]
        for op in operations_of(self.block):
            if op.name == pipelines.WAIT and op.operands[0] in by_ring:
                groups[-1].append(by_ring[op.operands[0]])
            elif not op.name.startswith("arith.") and groups[-1]:
                groups.append([])
        return [group for group in groups if group]

    def _fill_of(self, acquire: Any) -> list[Any]:
        """Return what fills a tile: the scalars of the body that it needs, and its operations."""
        own = self._producing[tuple(acquire.operands)]
        needed: set[Any] = set()
        pending = [x for op in own for x in op.operands]
        while pending:
            value = pending.pop()
            if isinstance(value, ir.BlockArgument):
                if value.owner == self.block and value.arg_number:
                    raise self._error(acquire, "what the loop carries")
                continue
            op = value.owner.operation
            if op.block != self.block or op in needed:
                continue
            if not is_scalar(op):
                raise self._error(acquire, f"'{op.name}'")
            needed.add(op)
            pending.extend(op.operands)
        return sorted(needed.union(own), key=self._places.__getitem__)

    def _error(self, acquire: Any, what: str) -> Exception:
        return self._step.error(
            f"what is copied depends on {what}, which is not known iterations ahead",
            acquire,
            hint="compute the indices of copies from the loop variable",
        )

    def build(self) -> None:
        """Rewrite the loop in place."""
        furthest = max(ahead for ahead, _ in self._fills)
        with ir.InsertionPoint(self._loop), self._loop.location:
            trips = self._trips()
            furthest = min(furthest, max(1, integer(trips) or furthest))
            self._fills = [(min(ahead, furthest), fill) for ahead, fill in self._fills]
            for begin, end in self._phases():
                self._prologue(begin, end, trips)
        most = integer(trips)
        for (ahead, fill), place in zip(self._fills, self.places(), strict=True):
            if most is not None and ahead >= most:
                continue  # all tiles have been copied in front of the loop
            with ir.InsertionPoint(place), self._loop.location:
                at = build.binary("addi", self._iteration(), build.index(ahead))
                self._fill(fill, at, trips)
        for op in reversed(dict.fromkeys(op for _, fill in self._fills for op in fill)):
            is_used = any(True for result in op.results for _ in result.uses)
            if op.name in pipelines.PRODUCES or not is_used:
                self._step.erase(op)

    def _phases(self) -> list[tuple[int, int]]:
        """Return the runs of iterations, from -1 down, in which the same rings are filled."""
        begins = sorted({-ahead for ahead, _ in self._fills})
        return list(pairwise([*begins, 0]))

    def _prologue(self, begin: int, end: int, trips: Any) -> None:
        """Build the copies in front of the loop as if iterations before the first made them."""
        fills = [(ahead, fill) for ahead, fill in self._fills if begin + ahead >= 0]
        if (end - begin) * len(fills) <= _FEW_COPIES:
            for iteration in range(begin, end):
                for ahead, fill in fills:
                    self._fill(fill, build.index(iteration + ahead), trips)
            return
        bounds = [build.index(0), build.index(end - begin), build.index(1)]
        loop = ir.Operation.create("scf.for", results=[], operands=bounds, regions=1)
        body = loop.regions[0].blocks.append(bounds[0].type, arg_locs=[self._loop.location])
        with ir.InsertionPoint(body):
            for ahead, fill in fills:
                at = body.arguments[0]
                if begin + ahead:
                    at = build.binary("addi", at, build.index(begin + ahead))
                self._fill(fill, at, trips)
            ir.Operation.create("scf.yield")

    def _fill(self, fill: list[Any], iteration: Any, trips: Any) -> None:
        """Build the copy of the tile of an iteration, if there is one."""
        number, count = integer(iteration), integer(trips)
        if number is not None and count is not None and number >= count:
            return
        is_known = number is not None and count is not None
        inside = None if is_known else build.compare("slt", iteration, trips)
        with where(inside):
            variable = iteration
            if not is_known and count is not None:
                variable = build.binary("andi", variable, variable)  # itself, known to be less
                variable.owner.attributes[dialect.BOUNDS] = dialect.bounds_attribute([count])
            if integer(self._stride) != 1:
                variable = build.binary("muli", iteration, self._stride)
            if integer(self._low) != 0:
                variable = build.binary("addi", self._low, variable)
            values = {self.block.arguments[0]: variable}
            for op in fill:
                copy = op.clone()
                for k, operand in enumerate(op.operands):
                    copy.operands[k] = values.get(operand, operand)
                values.update(zip(op.results, copy.results, strict=True))

    def _trips(self) -> Any:
        """Build the number of iterations."""
        low, high, stride = map(integer, (self._low, self._high, self._stride))
        if low is not None and high is not None and stride is not None:
            return build.index(max(0, -(-(high - low) // stride)))
        span = self._high if low == 0 else build.binary("subi", self._high, self._low)
        return span if stride == 1 else build.binary("ceildivui", span, self._stride)

    def _iteration(self) -> Any:
        """Build the number of the current iteration."""
        variable = self.block.arguments[0]
        if integer(self._low) != 0:
            variable = build.binary("subi", variable, self._low)
        if integer(self._stride) != 1:
            variable = build.binary("divui", variable, self._stride)
        return variable

    def places(self) -> list[Any]:
        """Return the operation before which each copy of an iteration stands."""
        listed = operations_of(self.block)
        first = next(k for k, op in enumerate(listed) if op.name == pipelines.WAIT)
        own = {op for _, fill in self._fills for op in fill}
        while listed[first].name == pipelines.WAIT or listed[first] in own:
            first += 1
        place = next((op for op in listed[first:] if op.name in _DOTS), listed[first])
        return [place] * len(self._fills)
