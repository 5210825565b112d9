"""`transform_lego.speculate`: work that a vote may change begins before the vote.

    %any = nvvm.vote.sync any %mask, %own -> i1
    %r = scf.if %any -> (f32) { ... scf.yield %a } else { scf.yield %b }
    %x = math.fma %s, %f, %r
    %e = math.exp2 %x

becomes

    %x0 = math.fma %s, %f, %b
    %e0 = math.exp2 %x0
    %any = nvvm.vote.sync any %mask, %own -> i1
    %r, %e = scf.if %any -> (f32, f32) {
      ...
      %x1 = math.fma %s, %f, %a
      %e1 = math.exp2 %x1
      scf.yield %a, %e1
    } else {
      scf.yield %b, %e0
    }

So exponentials run beside what decides the vote, and the branch computes them again, which is
seldom. The results of `speculated` registers are taken, in the order of the program: they live
across the branch.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform

_VOTE, _BRANCH, _LOOP = "nvvm.vote.sync", "scf.if", "scf.for"
_PURE = ("arith.", "math.", "vector.")
_COSTLY = "math.exp"
"""What is worth to begin early: instructions of few lanes a clock."""


@transform("speculate")
def speculate(step: TransformStep) -> list[list[Any]]:
    """Begin exponentials in the bodies of loops before the votes that may change them."""
    most = step.number("speculated")
    if most < 0:
        raise step.misuse(f"speculated is {most}", hint=step.option("speculated", 24))
    for loop in step.payload():
        if loop.name != _LOOP:
            raise step.error(
                f"takes loops, and this is '{loop.name}'", loop, hint='ops{["scf.for"]}'
            )
        for op in [o.operation for o in loop.regions[0].blocks[0].operations]:
            if most and op.name == _BRANCH and _votes(op.operands[0]):
                _Speculation(step, op, most).build()
    return []


def _votes(condition: Any) -> bool:
    """Return whether a condition is a vote."""
    return not isinstance(condition, ir.BlockArgument) and condition.owner.name == _VOTE


class _Speculation:
    """The rewrite of one branch.

    Args:
        step: the transform step.
        branch: an scf.if whose condition is a vote.
        most: registers of the results.
    """

    def __init__(self, step: TransformStep, branch: Any, most: int) -> None:
        self._step = step
        self._branch = branch
        following = [o.operation for o in branch.block.operations]
        self._following = following[following.index(branch) + 1 :]
        self._behind = {result for op in self._following for result in op.results}
        self._taken = self._chosen(most)

    def _chosen(self, most: int) -> list[Any]:
        """Return the first costly operations that wait for the branch alone."""
        movable = set(self._branch.results)
        taken: list[Any] = []
        for op in self._following:
            if len(op.regions) or not op.name.startswith(_PURE):
                continue
            known = [self._is_before(x) or x in movable for x in op.operands]
            if not all(known):
                continue
            depends = any(x in movable for x in op.operands)
            if depends:
                movable.update(op.results)
            if depends and op.name.startswith(_COSTLY):
                most -= _registers(op.results[0])
                if most < 0:
                    break
                taken.append(op)
        return taken

    def _is_before(self, value: Any) -> bool:
        """Return whether a value is known before the branch."""
        return value not in self._behind

    def build(self) -> None:
        """Rewrite the branch."""
        if not self._taken:
            return
        branch = self._branch
        then, other = (region.blocks[0] for region in branch.regions)
        results = [op.results[0] for op in self._taken]
        early, late = self._yielded(other), self._yielded(then)
        with ir.InsertionPoint(branch.operands[0].owner), branch.location:
            before = self._cloned(early)
        ends = [_end(then), _end(other)]
        with ir.InsertionPoint(ends[0]), branch.location:
            again = self._cloned(late)
        made = ir.Operation.create(
            _BRANCH,
            results=[r.type for r in (*branch.results, *results)],
            operands=[branch.operands[0]],
            attributes=named_attributes(branch),
            regions=2,
            loc=branch.location,
            ip=ir.InsertionPoint(branch),
        )
        for end, more in zip(ends, (again, before), strict=True):
            with ir.InsertionPoint(end), end.location:
                ir.Operation.create("scf.yield", operands=[*end.operands, *more])
            end.erase()
        for old, region in zip((then, other), made.regions, strict=True):
            old.append_to(region)
        for old, new in zip((*branch.results, *results), made.results, strict=True):
            old.replace_all_uses_with(new)
        self._step.erase(branch)

    def _yielded(self, block: Any) -> dict[Any, Any]:
        """Return what the branch's results are at the end of one of its blocks."""
        return dict(zip(self._branch.results, _end(block).operands, strict=True))

    def _cloned(self, values: dict[Any, Any]) -> list[Any]:
        """Build the taken operations, with what they need, of other results of the branch."""

        def value_of(value: Any) -> Any:
            if value not in values and not self._is_before(value):
                op = value.owner.operation
                operands = [value_of(x) for x in op.operands]
                copy = op.clone()
                for k, operand in enumerate(operands):
                    copy.operands[k] = operand
                values.update(zip(op.results, copy.results, strict=True))
            return values.get(value, value)

        return [value_of(op.results[0]) for op in self._taken]


def _end(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _registers(value: Any) -> int:
    """Return the elements of a vector, or 1."""
    kind = value.type
    return int(ir.VectorType(kind).shape[0]) if isinstance(kind, ir.VectorType) else 1
