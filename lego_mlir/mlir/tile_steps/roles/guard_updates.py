"""`transform_lego.guard_updates`: warps leave out updates that change nothing for them.

    %peak = "lego.reduce"(%s) {kind = "max", dim = 1 : i64}
    %c = arith.cmpf ogt, %peak, %most : tensor<128x1xf32, ...>
    %next = arith.select %c, %peak, %most
    %drop = arith.subf %most, %next
    %e = math.exp2 %drop
    %old = arith.select %c, %e, %one
    %wide = "lego.broadcast"(%old) : ... -> tensor<128x64xf32, ...>
    %o1 = arith.mulf %o, %wide

becomes

    %all = "lego.broadcast"(%most) : ... -> tensor<128x128xf32, ...>
    %above = arith.cmpf ogt, %s, %all
    %any = "lego.vote"(%above)
    %next, %old = scf.if %any { the reduction, the selects and what they need } else { %most, %one }
    %o1 = scf.if %any { "lego.broadcast", arith.mulf } else { %o }

A condition is guarded that selects factors of 1 for what is multiplied; other loops stay. Whether a
warp's rows have an element above the bound is known without their maxima, so that these are found
where they are needed alone. A reduction that needs other warps stays outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.analysis.distributed import Place
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.operations import CONSTANT, is_pointwise
from lego_mlir.mlir.tile_ir.types import element_of, is_tile, layout_of, shape_of, tile_type
from lego_mlir.mlir.tile_steps.kernels import (
    in_block,
    last_of,
    loops_of,
    operations_of,
)

_SELECT, _COMPARE, _MULTIPLY = "arith.select", "arith.cmpf", "arith.mulf"
_VIEWS = (tiles.BROADCAST, tiles.RESHAPE)
_EXTREMES = {("max", 2), ("min", 4)}
"""Reductions with the predicates, ogt and olt, that any element fulfils if and only if they do."""


@transform("guard_updates")
def guard_updates(step: TransformStep) -> list[list[Any]]:
    """Guard the updates in the bodies of loops by votes."""
    for _, loop in loops_of(step):
        block = body_of(loop)
        conditions = [
            op.operands[0] for op in operations_of(block) if op.name == _SELECT and _is_tested(op)
        ]
        for condition in dict.fromkeys(conditions):
            _Guard(block, condition).build()
    return []


def _is_tested(select: Any) -> bool:
    """Return whether a select of tiles has a condition that is computed in its block."""
    condition = select.operands[0]
    return (
        is_tile(condition)
        and not isinstance(condition, ir.BlockArgument)
        and condition.owner.operation.block == select.block
    )


class _Guard:
    """The rewrite of what one condition selects.

    Args:
        block: the body of a loop.
        condition: a tile of i1.
    """

    def __init__(self, block: Any, condition: Any) -> None:
        self._block = block
        self._condition = condition
        self._selects = [
            use.owner.operation
            for use in condition.uses
            if use.owner.name == _SELECT
            and use.operand_number == 0
            and use.owner.operation.block == block
        ]
        self._otherwise = {op.results[0]: op.operands[2] for op in self._selects}

    def build(self) -> None:
        """Rewrite the block, if there is anything to guard."""
        updates = [op for op in operations_of(self._block) if self._is_update(op)]
        if not updates:
            return
        kept = [op.operands[1 - self._factor(op)] for op in updates]
        inside = self._needed_by(self._selects)
        last = last_of(self._selects)
        with ir.InsertionPoint(last), last.location:
            truth = tiles.vote(self._tested(inside))
        self._move_into(truth, inside, list(self._otherwise.items()))
        for update, other in zip(updates, kept, strict=True):
            self._move_into(truth, self._needed_by([update]), [(update.results[0], other)])

    # What is guarded.
    def _is_update(self, op: Any) -> bool:
        return op.name == _MULTIPLY and self._factor(op) >= 0

    def _factor(self, multiply: Any) -> int:
        """Return which operand is a selected factor that is else 1; -1 if none is."""
        for number, operand in enumerate(multiply.operands):
            while not isinstance(operand, ir.BlockArgument) and operand.owner.name in _VIEWS:
                operand = operand.owner.operands[0]
            if operand in self._otherwise and _is_one(self._otherwise[operand]):
                return number
        return -1

    def _needed_by(self, wanted: Iterable[Any]) -> list[Any]:
        """Return operations, and what only they need that can be left out, in their order."""
        found = set(wanted)
        for op in reversed(operations_of(self._block)):
            users = [in_block(u.owner.operation, self._block) for r in op.results for u in r.uses]
            if users and all(user in found for user in users) and _can_be_left_out(op):
                found.add(op)
        return [op for op in operations_of(self._block) if op in found]

    def _tested(self, inside: list[Any]) -> Any:
        """Return what a warp votes on: the condition, or what it says of single elements."""
        compared = self._condition.owner.operation
        if compared not in inside:
            return self._condition
        if compared.name == _COMPARE:
            reduced, bound = compared.operands
            predicate = ir.IntegerAttr(compared.attributes["predicate"]).value
            if dialect.made_by(reduced, tiles.REDUCE) and reduced.owner.operation in inside:
                reduction = reduced.owner.operation
                if (tiles.kind_of(reduction), predicate) in _EXTREMES:
                    self._keep(bound, inside)
                    return _of_elements(reduction.operands[0], bound, compared)
        self._keep(self._condition, inside)
        return self._condition

    def _keep(self, value: Any, inside: list[Any]) -> None:
        """Leave outside of the branch what a value is computed of."""
        pending = [value]
        while pending:
            value = pending.pop()
            if not isinstance(value, ir.BlockArgument) and value.owner.operation in inside:
                inside.remove(value.owner.operation)
                pending.extend(value.owner.operands)

    # The branch.
    def _move_into(self, truth: Any, inside: list[Any], results: list[tuple[Any, Any]]) -> None:
        """Move operations into a branch.

        Args:
            truth: whether it is taken.
            inside: the operations, in their order.
            results: what they compute that others use, each with what it is if it is not taken.
        """
        last = inside[-1]
        with ir.InsertionPoint(last), last.location:
            made = ir.Operation.create(
                "scf.if",
                results=[value.type for value, _ in results],
                operands=[truth],
                attributes={dialect.DIVERGENT: ir.UnitAttr.get()},
                regions=2,
            )
            then, other = (region.blocks.append() for region in made.regions)
            for (value, _), result in zip(results, made.results, strict=True):
                for use in list(value.uses):
                    if in_block(use.owner.operation, self._block) not in inside:
                        use.owner.operands[use.operand_number] = result
            for op in inside:
                then.append(op)
            for block, values in zip((then, other), zip(*results, strict=True), strict=True):
                with ir.InsertionPoint(block):
                    ir.Operation.create("scf.yield", operands=list(values))


def _can_be_left_out(op: Any) -> bool:
    """Return whether an operation has no effect, and needs no other warp."""
    if op.name == tiles.REDUCE:
        source = layout_of(op.operands[0])
        assert source is not None, "tiles are placed"
        places = source.places[: Place.LANE]
        return not any(factor.dim == tiles.dim_of(op) for place in places for factor in place)
    return op.name in (CONSTANT, *_VIEWS) or (is_pointwise(op) and is_tile(op.results[0]))


def _is_one(value: Any) -> bool:
    """Return whether a tile is a constant of ones."""
    if not dialect.made_by(value, CONSTANT):
        return False
    attribute = ir.DenseElementsAttr(value.owner.attributes["value"])
    return bool(attribute.is_splat and attribute.get_splat_value().value == 1.0)


def _of_elements(values: Any, bound: Any, compared: Any) -> Any:
    """Build the comparison of the elements of rows with what their extremes are compared with."""
    wide = tiles.broadcast(values.type, bound)
    kind = tile_type(shape_of(values), element_of(compared.results[0]), layout_of(values))
    predicate = compared.attributes["predicate"]
    return ir.Operation.create(
        _COMPARE, results=[kind], operands=[values, wide], attributes={"predicate": predicate}
    ).results[0]
