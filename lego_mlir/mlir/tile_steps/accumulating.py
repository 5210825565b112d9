"""Loops whose dots only add to what they carry, and loops like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import body_of, named_attributes, operations_in
from lego_mlir.mlir.tile_ir.types import element_of, is_tile
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import integer, operations_of

_LOOP = "scf.for"


def accumulates(loop: Any, elements: Sequence[str] = ("f32",)) -> bool:
    """Return whether a loop carries nothing but accumulators, each for a dot in its body.

    Args:
        loop: the loop.
        elements: the element types that accumulators may have.
    """
    *operations, end = operations_of(body_of(loop))
    dots = [op for op in operations_in(loop) if op.name == tiles.DOT]
    carried = list(body_of(loop).arguments)[1:]
    if not carried or len(dots) != len(carried) or any(dot not in operations for dot in dots):
        return False
    return all(
        is_tile(argument)
        and str(element_of(argument)) in elements
        and [use.owner.operation for use in argument.uses] == [value.owner.operation]
        and value.owner.operation in dots
        and value.owner.operands[2] == argument
        and len(list(value.uses)) == 1
        for argument, value in zip(carried, end.operands, strict=True)
        if not isinstance(value, ir.BlockArgument)
    )


def iterations_of(loop: Any) -> int | None:
    """Return how many iterations a loop has, `None` if its bounds are not constant."""
    bounds = [n for x in list(loop.operands)[:3] if (n := integer(x)) is not None]
    return len(range(*bounds)) if len(bounds) == len(("low", "high", "stride")) else None


def build_iterations(loop: Any) -> Any:
    """Build the number of iterations of a loop, an index; of bounds that cross it is below 1."""
    known = iterations_of(loop)
    if known is not None:
        return build.index(known)
    low, high, stride = list(loop.operands)[:3]
    return build.binary("ceildivsi", build.binary("subi", high, low), stride)


def loop_like(
    loop: Any, bounds: list[Any], initial: list[Any] | None = None
) -> tuple[Any, list[Any]]:
    """Build a loop without operations that carries what another does; return its arguments, too.

    Args:
        loop: the other loop.
        bounds: of the loop, and its stride.
        initial: what it carries at first; as the other one by default.
    """
    entering = list(loop.operands)[3:] if initial is None else initial
    with loop.location:
        return build_loop(bounds, entering, named_attributes(loop))


def build_loop(
    bounds: list[Any], initial: list[Any], attributes: dict[str, Any] | None = None
) -> tuple[Any, list[Any]]:
    """Build a loop without operations; return its arguments, too.

    Args:
        bounds: of the loop, and its stride.
        initial: what it carries at first.
        attributes: of the loop.
    """
    kinds = [x.type for x in initial]
    made = ir.Operation.create(
        _LOOP,
        results=kinds,
        operands=[*bounds, *initial],
        attributes=attributes or {},
        regions=1,
    )
    types = [ir.IndexType.get(), *kinds]
    body = made.regions[0].blocks.append(*types, arg_locs=[made.location] * len(types))
    return made, list(body.arguments)


def move_body(loop: Any, made: Any, values: list[Any]) -> None:
    """Move the operations of a loop's body to another's, with values for its arguments."""
    for old, new in zip(body_of(loop).arguments, values, strict=True):
        old.replace_all_uses_with(new)
    for op in operations_of(body_of(loop)):
        body_of(made).append(op)


def add(a: Any, b: Any) -> Any:
    """Build the sum of two tiles, of floats or of integers."""
    return build.binary("addi" if isinstance(element_of(a), ir.IntegerType) else "addf", a, b)


def zeros(kind: Any) -> Any:
    """Build a tile of zeros."""
    element = ir.RankedTensorType(kind).element_type
    is_integer = isinstance(element, ir.IntegerType)
    zero = ir.IntegerAttr.get(element, 0) if is_integer else ir.FloatAttr.get(element, 0.0)
    return build.make("arith.constant", kind, value=ir.DenseElementsAttr.get_splat(kind, zero))
