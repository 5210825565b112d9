"""A layout in a buffer whose dimensions have strides of their own.

The layout gives the position of an element in row-major order; the strides say where that position
lies in memory. With rows of N elements, each S elements after the one before:

    OrderBy(Row(M, N)) in a buffer of strides (S, 1)      (i, j) -> i*S + j
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra.blocks import Sizes, unflatten
from lego_mlir.algebra.layout import Layout
from lego_mlir.index import Expr, Int, Sym, construct, substitute
from lego_mlir.index.proofs.prover import is_within


@dataclass(frozen=True)
class StridedLayout(Layout):
    """A layout whose offsets are those of a strided buffer. Its size is that of the layout.

    Attributes:
        shape: of the buffer; its product is the size.
        strides: of the buffer, in elements.
    """

    shape: Sizes = ()
    strides: Sizes = ()

    def apply(self, *index: Any) -> Any:
        """Return the offset of a logical index, as `Layout.apply`, of an index that is inside."""
        return derived_inside(super().apply, self.dims, index)

    def placed(self, offset: Any) -> Any:
        """Return where the element at a row-major position lies in memory."""
        total: Any = 0
        for digit, stride in zip(unflatten(self.shape, offset), self.strides, strict=True):
            total = total + digit * stride  # of expressions, or of arrays
        return total


def derived_inside(derive: Callable[..., Any], dims: Sizes, index: Sequence[Any]) -> Any:
    """Return what is derived from an index, right where the index is inside of the dimensions.

    An expression that may be outside is replaced by a symbol that is inside, and put back: so
    nothing is left of the derivation that only matters outside.
    """
    outside: dict[Sym, Int] = {}
    inside = []
    for k, (i, n) in enumerate(zip(index, dims, strict=True)):
        if isinstance(i, Expr) and not is_within(i, n):
            inside.append(symbol := Sym(f"inside {k}", 0, construct.sub(n, 1)))
            outside[symbol] = i
        else:
            inside.append(i)
    derived = derive(*inside)
    return substitute(derived, outside) if outside else derived


def buffer_shape(layout: Layout) -> Sizes:
    """Return the shape of a strided buffer that a layout is of: what its first reordering has."""
    return layout.orders[0].dims if layout.orders else layout.dims


def in_strides(layout: Layout, shape: Sizes, strides: Sizes) -> StridedLayout:
    """Return a layout with its elements in a buffer of this shape, at these strides."""
    return StridedLayout(layout.orders, layout.view, None, shape, strides)
