"""`transform_lego.prefetch_fragments`: registers for the first products are loaded a turn early.

What `pipeline_copies` and `contract_to_mma` make of a loop,

    scf.for %k = ... {
      nvvm.cp.async.wait.group 2
      gpu.barrier
      copies ahead
      fragments of step 0 of slot %k                  // nothing to do for the tensor cores yet
      products of steps 0, 1, 2 and 3, fragments of 1, 2 and 3
    }

becomes

    nvvm.cp.async.wait.group 2
    gpu.barrier
    %first = fragments of step 0 of the first slot
    scf.for %k = ... iter_args(%fragments = %first) {
      copies ahead
      products of steps 0, 1 and 2, fragments of 1, 2 and 3
      nvvm.cp.async.wait.group 2
      gpu.barrier
      %next = fragments of step 0 of slot %k + 1
      products of step 3                              // while those are on their way
      scf.yield %next
    }

so that tensor cores need not wait for the barrier. The last turn loads its own fragments again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.transforms import tiles
from lego_mlir.mlir.transforms.copies import PURE
from lego_mlir.mlir.transforms.operation import Step, transform
from lego_mlir.mlir.transforms.structure import copied, known_size

_WAIT, _BARRIER = "nvvm.cp.async.wait.group", "gpu.barrier"
_LOADS = ("nvvm.ldmatrix", "nvgpu.ldmatrix", "lego.load", "vector.load", "memref.load", "llvm.load")
_MOVABLE = (
    *PURE,
    *_LOADS,
    "llvm.extractvalue",
    "llvm.insertvalue",
    "llvm.bitcast",
    "llvm.getelementptr",
    "llvm.inttoptr",
    "memref.extract_aligned_pointer_as_index",
    "vector.",
)
"""How the names of operations begin that may load, but never write."""


@transform("prefetch_fragments")
def prefetch_fragments(step: Step) -> list[list[Any]]:
    """Rotate every loop that has products of fragments behind a wait and a barrier."""
    found = False
    for loop in step.payload():
        if loop.name != "scf.for":
            raise step.error(f"expected a scf.for, found '{loop.name}'", loop)
        if any(_is_product(op.operation) for op in loop.regions[0].blocks[0].operations):
            _Rotation(step, loop).run()
            found = True
    if not found:
        raise step.misuse(
            f"looked for products (mma.sync) in {len(step.payload())} loops, found none",
            hint="contract_to_mma makes them",
        )
    return []


class _Rotation:
    """The rotation of one loop."""

    def __init__(self, step: Step, loop: Any) -> None:
        self.step = step
        self.loop = loop
        self.body = loop.regions[0].blocks[0]
        self.operations = [op.operation for op in self.body.operations]
        names = [op.name for op in self.operations[:2]]
        if names != [_WAIT, _BARRIER]:
            raise step.error(
                f"looked for {_WAIT} and {_BARRIER} where the loop's body begins, found "
                f"{' and '.join(names)}",
                loop,
                hint="run it after pipeline_copies",
            )
        self.head = self.operations[:2]
        self.places = {v: n for n, op in enumerate(self.operations) for v in op.results}
        depths = self._depths()
        deepest = max(depths.values())
        self.first = [self.operations[n] for n, depth in depths.items() if depth == 1]
        self.resume = min(n for n, depth in depths.items() if depth == deepest)
        self.fragments = self._fragments()
        self.loading = self._needed(self.fragments)
        self._check()

    def run(self) -> None:
        """Rewrite the loop: a new one in its place."""
        lower, upper, by = list(self.loop.operands)[:3]
        variable, *carried = list(self.body.arguments)
        with ir.InsertionPoint(self.loop), self.loop.location:
            last = self._last(lower, upper, by)
            early = self._load_early(variable, lower)
            inits = [*list(self.loop.operands)[3:], *early]
            rotated = scf.ForOp(lower, upper, by, inits)
        new_variable, *new_carried = list(rotated.body.arguments)
        *moved, end = self.operations
        with ir.InsertionPoint(rotated.body), end.location:
            following = arith.MinSIOp(arith.AddIOp(new_variable, by).result, last).result
            late_yield = scf.YieldOp([])
        for op in moved:
            op.move_before(late_yield.operation)
        with ir.InsertionPoint(self.operations[self.resume]), self.loop.location:
            late = self._load_early(variable, following)
        variable.replace_all_uses_with(new_variable)
        for old, new in zip([*carried, *self.fragments], new_carried, strict=True):
            old.replace_all_uses_with(new)
        with ir.InsertionPoint(late_yield), end.location:
            scf.YieldOp([*end.operands, *late])
        late_yield.operation.erase()
        for old, new in zip(self.loop.results, rotated.results, strict=False):
            old.replace_all_uses_with(new)
        self.step.erase(self.loop)
        for op in [*reversed([self.operations[n] for n in self.loading]), *self.head]:
            if not any(True for result in op.results for _ in result.uses):
                self.step.erase(op)

    def _load_early(self, variable: Any, value: Any) -> list[Any]:
        """Wait, and load the first fragments of the iteration that a value of the variable is."""
        for op in self.head:
            copied(op, {})
        values = {variable: value}
        for n in self.loading:
            copied(self.operations[n], values)
        return [values[fragment] for fragment in self.fragments]

    def _last(self, lower: Any, upper: Any, by: Any) -> Any:
        """The value of the loop's variable in the last iteration."""
        known = [known_size(v, self.step.setting) for v in (lower, upper, by)]
        if None in known:
            raise self.step.error("the bounds of the loop are not known numbers", self.loop)
        first, end, distance = (n for n in known if n is not None)
        return tiles.constant(first + max(0, -(-(end - first) // distance) - 1) * distance)

    def _depths(self) -> dict[int, int]:
        """Of each product, by its place, how many its sums have gone through, itself included."""
        through: list[int] = []
        found: dict[int, int] = {}
        for n, op in enumerate(self.operations):
            before = (through[self.places[v]] for v in op.operands if v in self.places)
            depth = max(before, default=0)
            if _is_product(op):
                depth += 1
                found[n] = depth
            through.append(depth)
        return found

    def _fragments(self) -> list[Any]:
        """What the first products take from the loop's body, each once."""
        wanted = [v for op in self.first for v in op.operands if v in self.places]
        return list(dict.fromkeys(wanted))

    def _needed(self, values: Sequence[Any]) -> list[int]:
        """The places of the operations that values are computed by, in order."""
        found: set[int] = set()
        stack = [self.places[v] for v in values]
        while stack:
            n = stack.pop()
            if n not in found:
                found.add(n)
                operands = self.operations[n].operands
                stack.extend(self.places[v] for v in operands if v in self.places)
        return sorted(found)

    def _check(self) -> None:
        """Whether fragments can be loaded a turn earlier, and slots are then read to the end."""
        carried = list(self.body.arguments)[1:]
        for op in (self.operations[n] for n in self.loading):
            if op.regions or not op.name.startswith(_MOVABLE):
                raise self.step.error(f"the first fragments depend on '{op.name}'", op)
            if any(operand == value for operand in op.operands for value in carried):
                raise self.step.error(
                    "the first fragments depend on a value that the loop carries", op
                )
        for op in self.operations[self.resume :]:
            if op.name in _LOADS or op.name == _BARRIER:
                raise self.step.error(
                    f"looked for the last products behind all loads of fragments, found '{op.name}'"
                    " among them",
                    op,
                )


def _is_product(op: Any) -> bool:
    """Whether an operation multiplies fragments on tensor cores."""
    if op.name == "llvm.inline_asm":
        return "mma.sync" in str(op.attributes["asm_string"])
    return op.name in ("nvvm.mma.sync", "nvgpu.mma.sync")
