"""`transform_lego.spread_copies`: interleave asynchronous copies with the mmas of a loop.

    scf.for ... {
      scf.if %there { the 12 copies of a later tile }
      nvvm.cp.async.commit.group
      fragments of group 1
      mmas of group 0                                 // of four groups
      fragments of group 2
      ...

becomes

    scf.for ... {
      fragments of group 1
      scf.if %there { 4 copies }
      mmas of group 0
      fragments of group 2
      scf.if %there { 4 copies }
      mmas of group 1
      fragments of group 3
      scf.if %there { 4 copies }
      nvvm.cp.async.commit.group
      mmas of group 2
      ...

The fragments come first because the mmas wait for them, and not for the copies. A few copies at a
time do not fill the queue of memory instructions, in which fragments would wait.

The step belongs into `@__transform_main`, where addresses are arithmetic. Values that several
chunks of copies use are computed before the first chunk, unconditionally. A loop without such
copies is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lego_mlir.mlir.bindings import ir, scf
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import backward_slice
from lego_mlir.mlir.transforms.mma_groups import mma_groups

_COPY, _COMMIT = "nvgpu.device_async_copy", "nvvm.cp.async.commit.group"
_ORDERING = ("gpu.barrier", "nvvm.cp.async.wait.group", _COMMIT)
_ARITHMETIC = ("arith.", "affine.")


@transform("spread_copies")
def spread_copies(step: TransformStep) -> list[list[Any]]:
    """Interleave the copies of each loop with its groups of mmas."""
    for loop in step.payload():
        if loop.name != "scf.for":
            raise step.error(f"expected a scf.for, found '{loop.name}'", loop)
        operations = [op.operation for op in loop.regions[0].blocks[0].operations]
        guard = next((op for op in operations if _is_guard(op)), None)
        if guard is not None:
            _spread(step, guard, operations)
    return []


def _spread(step: TransformStep, guard: Any, operations: Sequence[Any]) -> None:
    """Interleave the copies under one condition with mmas, and commit them after the last chunk."""
    start = operations.index(guard)
    ordering = [n for n, op in enumerate(operations) if n > start and op.name in _ORDERING]
    if not ordering or operations[ordering[0]].name != _COMMIT:
        return
    commit = operations[ordering[0]]
    end = ordering[1] if len(ordering) > 1 else len(operations) - 1
    groups = mma_groups(operations)
    # The mmas of the last group hide the loads of the next iteration's fragments.
    firsts = [min(group) for group in (groups[:-1] or groups)]
    first_mmas = [operations[n] for n in firsts if start < n < end]
    if not first_mmas:
        return
    block = guard.regions[0].blocks[0]
    copies = [op.operation for op in block.operations if op.operation.name == _COPY]
    chunks = _split_evenly(copies, len(first_mmas))
    needed = [
        backward_slice([v for copy in chunk for v in copy.operands], block) for chunk in chunks
    ]
    common = [op for k, ops in enumerate(needed) for op in ops if _is_in(op, needed[:k])]
    for op in [o.operation for o in block.operations]:
        if op in common:
            op.move_before(guard)
    for mma, chunk, ops in zip(first_mmas, chunks, needed, strict=True):
        if not chunk:
            continue
        with ir.InsertionPoint(mma), guard.location:
            here = scf.IfOp(guard.operands[0])
            with ir.InsertionPoint(here.then_block):
                end_of_it = scf.YieldOp([]).operation
        for op in [*(o for o in ops if o not in common), *chunk]:
            op.move_before(end_of_it)
    commit.move_before(first_mmas[-1])
    step.erase(guard)


def _split_evenly(copies: Sequence[Any], number: int) -> list[list[Any]]:
    """Split copies into `number` chunks of nearly equal length, in order."""
    bounds = [len(copies) * k // number for k in range(number + 1)]
    return [list(copies[a:b]) for a, b in pairwise(bounds)]


def _is_in(op: Any, lists: Sequence[Sequence[Any]]) -> bool:
    return any(op in ops for ops in lists)


def _is_guard(op: Any) -> bool:
    """Return whether `op` is an scf.if that contains asynchronous copies and nothing else."""
    if op.name != "scf.if" or list(op.results) or list(op.regions[1].blocks):
        return False
    inside = [o.operation.name for o in op.regions[0].blocks[0].operations][:-1]
    return _COPY in inside and all(n == _COPY or n.startswith(_ARITHMETIC) for n in inside)
