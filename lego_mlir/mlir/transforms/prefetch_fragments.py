"""`transform_lego.prefetch_fragments`: load the first fragments one iteration early.

The output of `copy_ahead` and `slice_dots` for a loop,

    scf.for %k = ... {
      nvvm.cp.async.wait.group 2
      gpu.barrier
      copies ahead
      fragments of group 0 of stage %k                // tensor cores are idle
      mmas of groups 0, 1, 2 and 3, fragments of 1, 2 and 3
    }

becomes

    nvvm.cp.async.wait.group 2
    gpu.barrier
    %first = fragments of group 0 of the first stage
    scf.for %k = ... iter_args(%fragments = %first) {
      copies ahead
      mmas of groups 0, 1 and 2, fragments of 1, 2 and 3
      nvvm.cp.async.wait.group 2
      gpu.barrier
      %next = fragments of group 0 of stage %k + 1
      mmas of group 3                                 // while these fragments are loaded
      scf.yield %next
    }

so that tensor cores need not wait for the barrier. The last iteration loads its own fragments
again. What else the loop carries from one iteration to the next, as the stage of a ring, is
computed early, too. Loops that do not begin with a wait stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.emit.operations import constant
from lego_mlir.mlir.modules import named_attributes, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import clone
from lego_mlir.mlir.transforms.mma_groups import is_mma, is_wgmma, mma_groups

_WAIT, _BARRIER = "nvvm.cp.async.wait.group", "gpu.barrier"
_LOADS = ("nvvm.ldmatrix", "nvgpu.ldmatrix", dialect.LOAD_MATRICES)
_COPIES = (dialect.COPY_PARTS, "nvgpu.device_async_copy", "nvvm.cp.async.commit.group")
_IN_REGISTERS = (
    "arith.",
    "affine.",
    dialect.INV,
    dialect.APPLY,
    dialect.MASK,
    dialect.DIM,
    dialect.SIZE,
    dialect.TABLE,
    dialect.PICK,
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
    "math.",
    "llvm.extractvalue",
    "llvm.insertvalue",
    "llvm.bitcast",
    "llvm.getelementptr",
    "llvm.inttoptr",
    "memref.extract_aligned_pointer_as_index",
    "vector.bitcast",
    "vector.broadcast",
    "vector.extract",
    "vector.extract_strided_slice",
    "vector.from_elements",
    "vector.insert",
    "vector.shape_cast",
    "vector.to_elements",
)
"""Prefixes of the names of operations that neither read nor write memory."""


@transform("prefetch_fragments")
def prefetch_fragments(step: TransformStep) -> list[list[Any]]:
    """Rotate the loops that have mma instructions after a wait and a barrier."""
    found = False
    for loop in step.payload():
        if loop.name != "scf.for":
            raise step.error(f"expected a scf.for, found '{loop.name}'", loop)
        operations = [op.operation for op in loop.regions[0].blocks[0].operations]
        head, has_mma = _head(operations), any(map(is_mma, operations))
        found |= has_mma or any(map(is_wgmma, operations))
        if head and has_mma:
            _Rotation(step, loop, head).run()  # which erases some of the operations
    if not found:
        raise step.misuse(
            f"looked for mma.sync in {len(step.payload())} loops, found none",
            hint="the loops that it takes multiply tiles by lego.dot",
        )
    return []


def _is_copying(op: Any) -> bool:
    """Return whether an operation only makes asynchronous copies, if there is something to copy."""
    if op.name != "scf.if" or list(op.results):
        return False
    inside = [inner.name for inner in operations_in(op)]
    return all(name.startswith((*_IN_REGISTERS, *_COPIES, "scf.yield")) for name in inside)


def _head(operations: Sequence[Any]) -> list[Any]:
    """Return the wait and the barrier at the beginning of a body, where it only computes before.

    Nothing of a body that begins otherwise can be loaded earlier.
    """
    after = list(dropwhile(lambda op: op.name.startswith(_IN_REGISTERS), operations))
    head = list(takewhile(lambda op: op.name in (_WAIT, _BARRIER), after))
    return head if any(op.name == _BARRIER for op in head) else []


class _Rotation:
    """The rotation of one loop.

    Args:
        step: the transform step.
        loop: the loop.
        head: the wait and the barrier at the beginning of its body.
    """

    def __init__(self, step: TransformStep, loop: Any, head: list[Any]) -> None:
        self.step = step
        self.loop = loop
        self.body = loop.regions[0].blocks[0]
        self.operations = [op.operation for op in self.body.operations]
        self.head = head
        self.positions = {v: n for n, op in enumerate(self.operations) for v in op.results}
        self.operands = [list(op.operands) for op in self.operations]
        self.yielded = dict(zip(list(self.body.arguments)[1:], self.operands[-1], strict=True))
        self.groups = mma_groups(self.operations)
        self.first_write = self._first_write()
        self.fragments = self._fragments()
        self.loading = self._needed(self.fragments)
        self.resume = self._resume()

    def run(self) -> None:
        """Replace the loop by the rotated one."""
        if not self.fragments:
            return
        lower, upper, by = list(self.loop.operands)[:3]
        variable, *carried = list(self.body.arguments)
        with ir.InsertionPoint(self.loop), self.loop.location:
            last = self._last(lower, upper, by)
            inits = list(self.loop.operands)[3:]
            begin = {variable: lower, **dict(zip(carried, inits, strict=True))}
            inits += self._load_first_fragments(begin)
            rotated = scf.ForOp(lower, upper, by, inits)
            self._attribute(rotated.operation)
        new_variable, *new_carried = list(rotated.body.arguments)
        *moved, end = self.operations
        with ir.InsertionPoint(rotated.body), end.location:
            following = {variable: self._following(new_variable, last)}
            following |= self._following_carried(new_variable, following[variable])
            late_yield = scf.YieldOp([])
        for op in moved:
            op.move_before(late_yield.operation)
        resume = late_yield.operation if self.resume is None else self.operations[self.resume]
        with ir.InsertionPoint(resume), self.loop.location:
            next_fragments = self._load_first_fragments(following)
        variable.replace_all_uses_with(new_variable)
        for old, new in zip([*carried, *self.fragments], new_carried, strict=True):
            old.replace_all_uses_with(new)
        with ir.InsertionPoint(late_yield), end.location:
            scf.YieldOp([*end.operands, *next_fragments])
        late_yield.operation.erase()
        for old, new in zip(self.loop.results, rotated.results, strict=False):
            old.replace_all_uses_with(new)
        self.step.erase(self.loop)
        for op in [*reversed([self.operations[n] for n in self.loading]), *self.head]:
            if not any(True for result in op.results for _ in result.uses):
                self.step.erase(op)

    def _load_first_fragments(self, arguments: Mapping[Any, Any]) -> list[Any]:
        """Clone the wait, the barrier and the first loads for an iteration.

        Args:
            arguments: what the arguments of the body are in that iteration.
        """
        for op in self.head:
            clone(op, {})
        values = dict(arguments)
        for n in self.loading:
            clone(self.operations[n], values)
        return [values[fragment] for fragment in self.fragments]

    def _last(self, lower: Any, upper: Any, by: Any) -> Any:
        """Return the induction variable of the last iteration, `None` if it is not known."""
        known = [self._number(v) for v in (lower, upper, by)]
        if None in known:
            return None
        first, end, distance = (n for n in known if n is not None)
        last = first + max(0, -(-(end - first) // distance) - 1) * distance
        return constant(ir.IndexType.get(), last)

    def _number(self, value: Any) -> int | None:
        """Return the number of a value that is a constant or a layout's size, else `None`."""
        if isinstance(value, ir.BlockArgument):
            return None
        op = value.owner.operation
        if op.name == "arith.constant":
            return int(op.attributes["value"].value)
        if op.name not in (dialect.SIZE, dialect.DIM):
            return None
        layout = self.step.pass_context.layouts.of(op)
        size = layout.size if op.name == dialect.SIZE else layout.dims[dialect.dim_of(op)]
        return size if isinstance(size, int) else None

    def _following(self, variable: Any, last: Any) -> Any:
        """Return the induction variable of the next iteration, or of the last one itself."""
        _, upper, by = list(self.loop.operands)[:3]
        following = arith.AddIOp(variable, by).result
        if last is not None:
            return arith.MinSIOp(following, last).result
        there = arith.CmpIOp(arith.CmpIPredicate.slt, following, upper).result
        return arith.SelectOp(there, following, variable).result

    def _following_carried(self, variable: Any, following: Any) -> dict[Any, Any]:
        """Return what the addresses of fragments need of the values that the next iteration gets.

        Args:
            variable: the induction variable.
            following: that of the next iteration, or of the last one itself.
        """
        needed = self._carried_by(self.loading)
        if not needed:
            return {}
        values: dict[Any, Any] = {}
        computed = [self.yielded[v] for v in needed if self.yielded[v] in self.positions]
        for n in self._needed(computed):
            clone(self.operations[n], values)
        is_other = arith.CmpIOp(arith.CmpIPredicate.ne, following, variable).result
        after = {v: values.get(self.yielded[v], self.yielded[v]) for v in needed}
        return {v: arith.SelectOp(is_other, x, v).result for v, x in after.items()}

    def _attribute(self, rotated: Any) -> None:
        """Copy the loop's attributes to the new loop; fragments have no bounds."""
        for name, attribute in named_attributes(self.loop).items():
            if name == dialect.BOUNDS:
                none = [0] * len(self.fragments)
                attribute = ir.DenseI64ArrayAttr.get([*attribute, *none])
            rotated.attributes[name] = attribute

    def _resume(self) -> int | None:
        """Return the position of the first mma of the last group after all reads of the loop.

        Returns:
            `None` if no mma follows the last read.
        """
        mmas = {n for group in self.groups for n in group}
        read = max(
            n
            for n, op in enumerate(self.operations[:-1])
            if n not in mmas and not op.name.startswith(_IN_REGISTERS)
        )
        rest = range(max(read + 1, min(self.groups[-1])), len(self.operations) - 1)
        return next((n for n in rest if n in mmas), None)

    def _fragments(self) -> list[Any]:
        """Return the operands of the first group of mmas that the loop's body loads, each once."""
        first = [self.operands[n] for n in self.groups[0]]
        prefetched = dict.fromkeys(v for operands in first for v in operands if v in self.positions)
        return [v for v in prefetched if self._can_prefetch(v)]

    def _first_write(self) -> int:
        """Return the position of the first operation behind the head that may write what is loaded.

        Copies do not: they fill other stages. An inner barrier or wait may make it complete.
        """
        start = self.operations.index(self.head[-1]) + 1
        known = (*_LOADS, *_IN_REGISTERS, *_COPIES)
        return next(
            n
            for n, op in enumerate(self.operations)
            if n >= start and not (is_mma(op) or _is_copying(op) or op.name.startswith(known))
        )

    def _can_prefetch(self, value: Any) -> bool:
        """Return whether a value is a fragment that can be loaded one iteration earlier.

        Its address is known there, and it is complete behind the wait and the barrier.
        """
        needed = self._needed([value])
        if needed[-1] > self.first_write:
            return False
        names = [self.operations[n].name for n in needed]
        return (
            any(name in _LOADS for name in names)
            and all(name.startswith((*_LOADS, *_IN_REGISTERS)) for name in names)
            and all(map(self._is_known_early, self._carried_by(needed)))
        )

    def _is_known_early(self, carried: Any) -> bool:
        """Return whether the next iteration's value of what a loop carries takes no memory."""
        following = self.yielded[carried]
        if following not in self.positions:
            return following == carried or following not in self.yielded
        needed = self._needed([following])
        return all(self.operations[n].name.startswith(_IN_REGISTERS) for n in needed)

    def _carried_by(self, needed: Sequence[int]) -> list[Any]:
        """Return what operations read of the values that the loop carries."""
        read = dict.fromkeys(v for n in needed for v in self.operands[n])
        return [v for v in read if v in self.yielded]

    def _needed(self, values: Sequence[Any]) -> list[int]:
        """Return the positions of the backward slice of `values` in the loop's body, in order."""
        found: set[int] = set()
        stack = [self.positions[v] for v in values]
        while stack:
            n = stack.pop()
            if n not in found:
                found.add(n)
                stack.extend(self.positions[v] for v in self.operands[n] if v in self.positions)
        return sorted(found)
