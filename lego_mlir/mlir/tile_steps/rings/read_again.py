"""`transform_lego.read_again`: what tiles in shared memory say is read again behind reductions.

    %x = "lego.convert"(%shared)                  a tile in registers
    %y = arith.extf %x
    %m = "lego.reduce"(%y)
    ...
    %z = arith.subf %y, %b                        %y has waited in registers

becomes

    %x = "lego.convert"(%shared)
    %y = arith.extf %x
    %m = "lego.reduce"(%y)
    ...
    %x2 = "lego.convert"(%shared)
    %y2 = arith.extf %x2
    %z = arith.subf %y2, %b

A reduction waits for all threads, so what is used on both sides of one needs registers meanwhile.
What follows from a tile in shared memory by arithmetic needs none: few instructions compute it
again. Of a tile in registers its wider copy is made again, also where it has been made before the
loop. Divisions and functions of `math` are more than a few instructions.

With `extend_late = 1` the wider copies in a loop of tiles that are loaded before it have
`lego.extended_late`: LLVM does not move those of bf16 out of the loop again (`bf16_extensions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.distributed import Place
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.types import is_shared_tile, is_tile, layout_of
from lego_mlir.mlir.tile_steps.kernels import (
    in_block,
    last_of,
    loops_of,
    operations_of,
    users_in,
)

_REDUCTIONS = (tiles.REDUCE, tiles.REDUCE_WITH)
_VIEWS = (tiles.RESHAPE, tiles.BROADCAST)
_WIDER = ("arith.extf", "arith.extsi", "arith.extui")
_EXPENSIVE = ("arith.div", "arith.rem")

_BEFORE = -1
"""The segment of what stands before the loop."""


@transform("read_again")
def read_again(step: TransformStep) -> list[list[Any]]:
    """Compute what follows from tiles in shared memory again behind reductions."""
    is_late = step.number("extend_late", 0) != 0
    for _, loop in loops_of(step):
        body = _Body(step, body_of(loop))
        body.rewrite()
        if is_late:
            body.extend_late()
    return []


def _waits_for_threads(op: Any) -> bool:
    """Return whether an operation is a reduction of what several threads hold."""
    if op.name not in _REDUCTIONS:
        return False
    layout, dim = layout_of(op.operands[0]), tiles.dim_of(op)
    assert layout is not None  # tiles are placed
    return any(f.dim == dim for place in layout.places[: Place.REGISTER] for f in place)


class _Body:
    """The rewrite of the body of one loop: reductions divide it into segments.

    Args:
        step: the transform step.
        block: the body.
    """

    def __init__(self, step: TransformStep, block: Any) -> None:
        self._step = step
        self._block = block
        self._segment = 0
        self._cheap: dict[Any, tuple[Any, int]] = {}
        self._copies: dict[tuple[Any, int], Any] = {}

    def rewrite(self) -> None:
        """Let the uses of what is cheap in later segments have copies of their own."""
        for op in operations_of(self._block):
            if self._only_reads(op):  # its first use has a copy, too, where that is
                self._cheap[op.results[0]] = op, _BEFORE
                continue
            for inner in (op, *operations_in(op)):
                for k, operand in enumerate(list(inner.operands)):
                    if self._is_of_before(operand):
                        inner.operands[k] = self._copy(operand, op)
            if self._is_cheap(op):
                self._cheap[op.results[0]] = op, self._segment
            self._segment += _waits_for_threads(op)
        for op in reversed([op for op, segment in self._cheap.values() if segment == _BEFORE]):
            if self._only_reads(op) and not any(True for _ in op.results[0].uses):
                self._step.erase(op)
        of_rings = [op for op in operations_of(self._block) if op.name in pipelines.CONSUMES]
        waits = [op for op in of_rings if op.name == pipelines.WAIT]
        for op in of_rings:
            if op.name == pipelines.RELEASE:
                self._delay(op, waits)

    def extend_late(self) -> None:
        """Mark the wider copies of tiles that are made before the loop."""
        for op in operations_of(self._block):
            source = op.operands[0] if op.name == _WIDER[0] else None
            if source is None or not is_tile(source) or isinstance(source, ir.BlockArgument):
                continue
            if in_block(source.owner.operation, self._block) is None:
                op.attributes[dialect.EXTENDED_LATE] = ir.UnitAttr.get()

    def _is_of_before(self, value: Any) -> bool:
        """Return whether a value is cheap and of an earlier segment."""
        if value not in self._cheap and self._is_wider_outside(value):
            self._cheap[value] = value.owner.operation, _BEFORE
        return value in self._cheap and self._cheap[value][1] < self._segment

    def _is_wider_outside(self, value: Any) -> bool:
        if not is_tile(value) or isinstance(value, ir.BlockArgument):
            return False
        op = value.owner.operation
        return op.name in _WIDER and in_block(op, self._block) is None

    def _copy(self, value: Any, before: Any) -> Any:
        """Return a value's copy in this segment, which stands before an operation that uses it."""
        key = value, self._segment
        if key not in self._copies:
            op, _ = self._cheap[value]
            operands = [self._copy(x, before) if self._is_of_before(x) else x for x in op.operands]
            with ir.InsertionPoint(before), op.location:
                made = op.clone()
            for k, x in enumerate(operands):
                made.operands[k] = x
            self._copies[key] = made.results[0]
            self._cheap[made.results[0]] = made, self._segment
        return self._copies[key]

    def _is_cheap(self, op: Any) -> bool:
        """Return whether an operation makes little of what follows from shared memory."""
        if len(op.results) != 1 or not is_tile(op.results[0]) or len(op.regions):
            return False
        if op.name in _WIDER:
            return True
        if not op.name.startswith("arith.") and op.name not in _VIEWS:
            return False
        return not op.name.startswith(_EXPENSIVE) and any(x in self._cheap for x in op.operands)

    def _only_reads(self, op: Any) -> bool:
        """Return whether an operation of the body only reads shared memory, or views that."""
        if op.name in (tiles.CONVERT, tiles.EXTRACT_SLICE):
            return op.block == self._block and is_shared_tile(op.operands[0])
        if op.name not in _VIEWS or isinstance(op.operands[0], ir.BlockArgument):
            return False
        return self._only_reads(op.operands[0].owner.operation)

    def _delay(self, release: Any, waits: Sequence[Any]) -> None:
        """Move a release behind all that reads its tile, by one of the waits of the body."""
        own = [op for op in waits if list(op.operands) == list(release.operands)]
        readers = [op for wait in own for op in users_in(wait.results[0], self._block)]
        last = last_of([release, *readers])
        if last != release:
            release.move_after(last)
