"""Several copies of a layout, one after another: the stages of a ring buffer.

    OrderBy(GenP([128, 64], swizzle(8, 1, 8)))             index (i, j)

in four stages:

    OrderBy(Row(4), GenP([128, 64], swizzle(8, 1, 8)))     index (stage, i, j)
"""

from __future__ import annotations

from lego_mlir.algebra.blocks import Row
from lego_mlir.algebra.dots import OrderBy
from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.parts import Order
from lego_mlir.diagnostics import LegoError


def multibuffered(layout: Layout, count: int) -> Layout:
    """Return a layout with one more dimension, its first: the number of the copy.

    Args:
        layout: of one copy, of n elements; copy k begins at offset k*n.
        count: of the copies.

    Raises:
        LegoError: the layout's tiles are partial, so copies would leave gaps.
    """
    if layout.window is not None and layout.view is None:
        return Layout(window=layout.window.of_copies(multibuffered(layout.window.base, count)))
    if layout.is_partial:
        raise LegoError(f"'{layout}' has partial tiles: copies of it do not lie one after another")
    if layout.view is None and all(order.kind == "OrderBy" for order in layout.orders):
        return Layout(
            tuple(Order("OrderBy", (Row(count), *order.blocks)) for order in layout.orders)
        )
    first, *others = layout.stages or ((Row(*layout.dims),),)
    chain = OrderBy(Row(count), *first)
    for stage in others:
        chain = chain.OrderBy(Row(count), *stage)
    return chain.GroupBy([count, *layout.dims])
