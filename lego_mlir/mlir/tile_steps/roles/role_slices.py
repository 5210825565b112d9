"""What a role does, cut out of a program: its operations, and what they need."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tile_ir.types import is_tile
from lego_mlir.mlir.tile_steps.kernels import operations_of
from lego_mlir.mlir.tile_steps.scalars import is_scalar

_LOOP, _BRANCH = "scf.for", "scf.if"


class RoleSlice:
    """The part of a block that some operations need.

    Args:
        step: the transform step, for errors.
        block: the block.
        kept: the operations; others may use their results.
    """

    def __init__(self, step: TransformStep, block: Any, kept: Collection[Any]) -> None:
        self._step = step
        self._block = block
        self._kept = set(kept)
        self._needed: set[Any] = set()
        self._values: dict[Any, Any] = {}

    def build(self) -> None:
        """Build the part at the insertion point.

        Raises:
            LegoError: the operations need what is computed of tiles.
        """
        self._mark(self._block)
        self._clone(self._block)

    # What is needed.
    def _holds_kept(self, op: Any) -> bool:
        return any(inner in self._kept for inner in operations_in(op))

    def _mark(self, block: Any) -> None:
        """Mark what the kept operations of a block need."""
        for op in operations_of(block):
            if op in self._kept:
                self._need_all(op.operands, op)
            elif len(op.regions) and self._holds_kept(op):
                if op.name not in (_LOOP, _BRANCH):
                    raise self._step.error(
                        f"cannot repeat '{op.name}' around what fills a ring in another role",
                        op,
                        hint="rings are filled in scf.for and scf.if",
                    )
                self._need_all(list(op.operands)[: 3 if op.name == _LOOP else 1], op)
                for region in op.regions:
                    for inner in region.blocks:
                        self._mark(inner)

    def _need_all(self, values: Any, user: Any) -> None:
        for value in values:
            self._need(value, user)

    def _need(self, value: Any, user: Any) -> None:
        """Mark a value, and what it is computed from."""
        if value in self._needed or not self._is_inside(value):
            return
        self._needed.add(value)
        if isinstance(value, ir.BlockArgument):
            loop = value.owner.owner.operation
            if value.arg_number:
                self._need_carried(loop, value.arg_number - 1, user)
            return
        op = value.owner.operation
        if op in self._kept:
            return
        if op.name == _LOOP:
            self._need_all(list(op.operands)[:3], user)
            self._need_carried(op, list(op.results).index(value), user)
        elif is_scalar(op) or (op.name == dialect.LOAD and not is_tile(value)):
            self._need_all(op.operands, user)
        else:
            raise self._step.error(
                f"another role cannot do this: '{user.name}' needs what '{op.name}' computes",
                user,
                hint="indices and numbers of copies are computed from scalars alone",
            )

    def _need_carried(self, loop: Any, number: int, user: Any) -> None:
        """Mark one of the values that a loop carries."""
        block = loop.regions[0].blocks[0]
        end = operations_of(block)[-1]
        self._need(block.arguments[1 + number], user)
        self._need(loop.operands[3 + number], user)
        self._need(end.operands[number], user)
        self._needed.add(loop.results[number])

    def _is_inside(self, value: Any) -> bool:
        block = value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
        while block is not None and block != self._block:
            owner = block.owner
            if owner is None or owner.operation.name == "func.func":
                return False
            block = owner.operation.block
        return block is not None

    # The clone.
    def _clone(self, block: Any) -> None:
        for op in operations_of(block):
            if op in self._kept:
                self._clone_operation(op)
            elif op.name == _LOOP and (self._holds_kept(op) or self._any_needed(op.results)):
                self._clone_loop(op)
            elif op.name == _BRANCH and self._holds_kept(op):
                self._clone_branch(op)
            elif not len(op.regions) and self._any_needed(op.results):
                self._clone_operation(op)

    def _any_needed(self, values: Any) -> bool:
        return any(value in self._needed for value in values)

    def _clone_operation(self, op: Any) -> None:
        copy = op.clone()
        for k, operand in enumerate(op.operands):
            copy.operands[k] = self._values.get(operand, operand)
        self._values.update(zip(op.results, copy.results, strict=True))

    def _clone_loop(self, loop: Any) -> None:
        block = loop.regions[0].blocks[0]
        carried = [k for k, value in enumerate(loop.results) if value in self._needed]
        operands = [*list(loop.operands)[:3], *(loop.operands[3 + k] for k in carried)]
        kinds = [loop.results[k].type for k in carried]
        made = ir.Operation.create(
            _LOOP,
            results=kinds,
            operands=[self._values.get(x, x) for x in operands],
            regions=1,
            loc=loop.location,
        )
        made.attributes["llvm.loop_annotation"] = ir.Attribute.parse(
            "#llvm.loop_annotation<unroll = <disable = true>>"
        )
        types = [block.arguments[0].type, *kinds]
        body = made.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
        old = [block.arguments[0], *(block.arguments[1 + k] for k in carried)]
        self._values.update(zip(old, body.arguments, strict=True))
        with ir.InsertionPoint(body), loop.location:
            self._clone(block)
            end = operations_of(block)[-1]
            yielded = [end.operands[k] for k in carried]
            ir.Operation.create("scf.yield", operands=[self._values.get(x, x) for x in yielded])
        for k, result in zip(carried, made.results, strict=True):
            self._values[loop.results[k]] = result

    def _clone_branch(self, branch: Any) -> None:
        condition = branch.operands[0]
        made = ir.Operation.create(
            _BRANCH,
            results=[],
            operands=[self._values.get(condition, condition)],
            regions=2,
            loc=branch.location,
        )
        for old, new in zip(branch.regions, made.regions, strict=True):
            for block in old.blocks:
                with ir.InsertionPoint(new.blocks.append()), branch.location:
                    self._clone(block)
                    ir.Operation.create("scf.yield")
