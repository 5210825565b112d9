"""What reductions and scans combine elements by: a kind, or the body of an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_passes.lower_tiles import build

Values: TypeAlias = tuple[Any, ...]
"""One value for each of the tiles that are combined together."""

_INTEGERS = {
    "add": "addi",
    "mul": "muli",
    "max": "maxsi",
    "min": "minsi",
    "umax": "maxui",
    "umin": "minui",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
}
_FLOATS = {"add": "addf", "mul": "mulf", "max": "maximumf", "min": "minimumf"}
_REDUX = {
    "add": "add",
    "max": "maxsi",
    "min": "minsi",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


@dataclass(frozen=True)
class Combine:
    """A function that combines two elements, or two each of several tiles.

    Attributes:
        apply: builds the combination of the values that come first and of those that come next.
        takes_vectors: whether it combines vectors element by element, too.
        redux: the reduction of an i32 over a warp by one instruction (PTX ISA 9.7.13.8,
            "redux.sync"), `None` if there is none.
    """

    apply: Callable[[Values, Values], Values]
    takes_vectors: bool = False
    redux: str | None = None

    def tree(self, values: Sequence[Values]) -> Values:
        """Build the combination of several values, in their order, in few levels."""
        left = list(values)
        while len(left) > 1:
            pairs = [self.apply(*left[k : k + 2]) for k in range(0, len(left) - 1, 2)]
            left = pairs + left[2 * len(pairs) :]
        return left[0]


def by_kind(kind: str, element: Any) -> Combine:
    """Return what combines elements of a type by a kind of `lego.reduce` or `lego.scan`."""
    is_float = not isinstance(element, ir.IntegerType | ir.IndexType)
    names = _FLOATS if is_float else _INTEGERS

    def apply(a: Values, b: Values) -> Values:
        return (build.binary(names[kind], a[0], b[0]),)

    is_i32 = element == build.i32()
    return Combine(apply, takes_vectors=True, redux=_REDUX.get(kind) if is_i32 else None)


def by_region(block: Any) -> Combine:
    """Return what combines elements by the body of a reduction, scan or sort by a function.

    Args:
        block: its arguments are an element of each tile, then another one of each; it ends in a
            gpu.yield of one element each; that of a sort of whether the first ones come before.
    """

    def apply(a: Values, b: Values) -> Values:
        values = dict(zip(block.arguments, (*a, *b), strict=True))
        *body, end = [op.operation for op in block.operations]
        for op in body:
            made = op.clone()
            for inner in (made.operation, *operations_in(made.operation)):
                for k, operand in enumerate(inner.operands):
                    inner.operands[k] = values.get(operand, operand)
            values.update(zip(op.results, made.results, strict=True))
        return tuple(values.get(x, x) for x in end.operands)

    return Combine(apply)
