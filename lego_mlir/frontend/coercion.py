"""What numbers and values become where a value of some type is needed."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from lego_mlir.frontend.casts import element_type
from lego_mlir.frontend.tiles.sizes import BoundedSize
from lego_mlir.frontend.trace import Trace
from lego_mlir.mlir.bindings import ir


def constant(x: Any, kind: Any, trace: Trace, *, unsigned: bool = False) -> Any:
    """Return a number as an SSA constant of a type: a scalar, or every element of a vector or tile.

    Args:
        x: a Python or NumPy number.
        kind: the MLIR type.
        trace: in which the operation is recorded.
        unsigned: the type's integers are unsigned.

    Raises:
        LegoError: it is no number, or none that the type has.
    """
    if isinstance(x, BoundedSize):
        raise x.error()
    if hasattr(x, "item") and getattr(x, "ndim", None) == 0:
        x = x.item()
    element = element_type(kind)
    is_truth = isinstance(element, ir.IntegerType) and element.width == 1
    if not isinstance(x, int | float) or (isinstance(x, bool) and not is_truth):
        raise trace.error(f"a value of type {kind} is needed, not {x!r}")
    attribute = number_attribute(x, element, unsigned=unsigned)
    if attribute is None:
        raise trace.error(f"a value of type {element} is needed, not {x!r}")
    if isinstance(kind, ir.VectorType | ir.RankedTensorType):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return trace.create("arith.constant", [kind], [], value=attribute)[0]


def number_attribute(x: int | float, element: Any, *, unsigned: bool = False) -> Any:
    """Return a number as an attribute of an element type; `None` if the type does not have it."""
    if not isinstance(element, ir.FloatType):
        width = 64 if isinstance(element, ir.IndexType) else element.width
        if width == 1:
            return ir.BoolAttr.get(bool(x)) if x in (0, 1) else None
        low = 0 if unsigned else -(1 << (width - 1))
        if not isinstance(x, int) or not low <= x < low + (1 << width):
            return None
        wrapped = x - (1 << width) if x >= 1 << (width - 1) else x  # the bits as a signed number
        return ir.IntegerAttr.get(element, wrapped)
    try:
        number = float(x)
    except OverflowError:
        return None
    attribute = ir.FloatAttr.get(element, number)
    return attribute if isfinite(attribute.value) or not isfinite(number) else None


def common_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Return the shape that shapes have after broadcasting as in NumPy; `None` if they have none.

    Sizes are counted from the last, and go together where they are the same or one of them is 1.
    """
    rank = max(map(len, shapes), default=0)
    filled = [(*[1] * (rank - len(shape)), *shape) for shape in shapes]
    columns = [{n for n in column if n != 1} for column in zip(*filled, strict=True)]
    if any(len(sizes) > 1 for sizes in columns):
        return None
    return tuple(sizes.pop() if sizes else 1 for sizes in columns)
