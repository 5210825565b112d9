"""The values that are distributed with a contraction: what is combined with its tile.

From a contraction, forward to its uses and backward to the start of its accumulator, they are the
values that are combined with the tile element by element: loop-carried values, constants,
arithmetic, broadcasts of rows, columns and scalars, loads and stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.fragments.thread_fragment import Axes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.structure import is_elementwise

T = TypeVar("T")

_KNOWN = (
    "arithmetic of arith and math, constants of one value, vector.broadcast, lego.load, "
    "lego.store, and values that an scf.for carries"
)


class _PendingValue(NamedTuple):
    """A value to distribute, its axes, and whether it depends on an accumulator.

    All uses of values that depend on an accumulator are distributed. The others are computed again
    for the threads, and keep their other uses.
    """

    value: Any
    axes: Axes
    is_accumulator: bool = False


class ConnectedValues:
    """The values that are combined with one contraction's accumulator, and their operations.

    Args:
        step: the transform step, for errors.

    Attributes:
        axes: the axes of each value in the tile.
        ops: the operations to rewrite.
    """

    def __init__(self, step: TransformStep) -> None:
        self._step = step
        self.axes: dict[Any, Axes] = {}
        # The hash of an operation depends on its operands, which change: so lists, not sets.
        self.ops: list[Any] = []
        self._accumulators: set[Any] = set()

    def collect(self, contract: Any, candidates: Mapping[Any, T]) -> list[T]:
        """Collect all values to distribute with a contraction.

        Args:
            contract: the contraction.
            candidates: the contractions to lower.

        Returns:
            The candidates that are connected with it.

        Raises:
            LegoError: an operation on the tile cannot be distributed.
        """
        self._known = candidates
        pending = [_PendingValue(contract.results[0], (0, 1), is_accumulator=True)]
        while pending:
            value, axes, is_accumulator = pending.pop()
            if value not in self.axes:
                self.axes[value] = axes
                pending += self._definitions(value, axes)
            elif self.axes[value] != axes:
                raise self.unsupported(value, "runs along rows here and along columns there")
            if is_accumulator and value not in self._accumulators:
                self._accumulators.add(value)
                pending += self._uses(value, axes)
        return [found for op, found in candidates.items() if op in self.ops]

    def _definitions(self, value: Any, axes: Axes) -> list[_PendingValue]:
        """Return the operands of a value's definition that are distributed with it."""
        if isinstance(value, ir.BlockArgument):
            loop = value.owner.owner.operation
            if loop.name != "scf.for":
                raise self.unsupported(value, f"is an argument of '{loop.name}'")
            return self._loop_carried(loop, value.arg_number - 1)
        op = value.owner.operation
        self._add_op(op)
        match op.name:
            case "scf.for":
                return self._loop_carried(op, list(op.results).index(value))
            case "vector.contract" if op in self._known:
                return [_PendingValue(op.operands[2], axes)]
            case "arith.constant" if splat_value(op) is not None:
                return []
            case "ub.poison" | dialect.LOAD:
                return []
            case dialect.REDUCE_SCATTER_COLUMNS:
                return [_PendingValue(op.operands[0], axes)]
            case "vector.broadcast":
                source = op.operands[0]
                return [_PendingValue(source, axes[-rank(source) :])] if rank(source) else []
            case "vector.shape_cast":
                return [_PendingValue(op.operands[0], self._shape_cast_axes(op, axes))]
            case _ if is_elementwise(op):
                return [_PendingValue(o, axes) for o in op.operands if rank(o)]
        raise self.unsupported(value, f"is made by '{op.name}'")

    def _uses(self, value: Any, axes: Axes) -> list[_PendingValue]:
        """Return the results of the uses of a value that depends on an accumulator."""
        found: list[_PendingValue] = []
        for use in value.uses:
            op, number = use.owner.operation, use.operand_number
            match op.name:
                case "scf.for":
                    found += self._loop_carried(op, number - 3)
                case "scf.yield" if op.parent.name == "scf.for":
                    found += self._loop_carried(op.parent.operation, number)
                case "vector.contract" if op in self._known and number == 2:
                    found.append(_PendingValue(op.results[0], axes, is_accumulator=True))
                case dialect.STORE if number == 0:
                    self._add_op(op)
                case dialect.REDUCE_SCATTER_COLUMNS:
                    found.append(_PendingValue(op.results[0], axes, is_accumulator=True))
                case _ if is_elementwise(op):
                    found.append(_PendingValue(op.results[0], axes, is_accumulator=True))
                case _:
                    raise self.unsupported(value, f"is used by '{op.name}'", op)
        return found

    def _loop_carried(self, loop: Any, number: int) -> list[_PendingValue]:
        """Return the initial value, block argument, yielded value and result of a carried value."""
        self._add_op(loop)
        body = loop.regions[0].blocks[0]
        end = list(body.operations)[-1].operation
        return [
            _PendingValue(loop.operands[3 + number], (0, 1)),
            _PendingValue(body.arguments[1 + number], (0, 1), is_accumulator=True),
            _PendingValue(end.operands[number], (0, 1)),
            _PendingValue(loop.results[number], (0, 1), is_accumulator=True),
        ]

    def _add_op(self, op: Any) -> None:
        if op not in self.ops:
            self.ops.append(op)

    def _shape_cast_axes(self, op: Any, axes: Axes) -> Axes:
        """Return the operand's axes of a shape_cast that adds or removes dimensions of size 1."""
        before, after = (list(ir.VectorType(v.type).shape) for v in (op.operands[0], op.results[0]))
        long = [axis for n, axis in zip(after, axes, strict=True) if n != 1]
        if [n for n in before if n != 1] != [n for n in after if n != 1]:
            raise self.unsupported(op.results[0], "is reshaped by 'vector.shape_cast'")
        rest = iter(long)
        return tuple(next(rest) if n != 1 else 0 for n in before)

    def unsupported(self, value: Any, why: str, op: Any = None) -> Exception:
        """Return the error of a value that cannot be distributed, at `op` or its definition."""
        at = op or (value.owner.owner if isinstance(value, ir.BlockArgument) else value.owner)
        return self._step.error(
            f"the {value.type} in fragments {why}",
            at.operation,
            hint=f"supported operations on it: {_KNOWN}",
        )


def rank(value: Any) -> int:
    """Return the rank of a vector, and 0 for a scalar."""
    return len(ir.VectorType(value.type).shape) if isinstance(value.type, ir.VectorType) else 0


def splat_value(op: Any) -> Any:
    """Return the splat value of a constant vector as an attribute, else `None`."""
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not ir.DenseElementsAttr(value).is_splat:
        return None
    return ir.DenseElementsAttr(value).get_splat_value()
