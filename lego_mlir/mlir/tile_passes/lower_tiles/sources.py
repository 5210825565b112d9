"""Tiles that are made of none: constants, equal elements, indices, and what is in range.

    %i = "lego.iota"() {dim = 0 : i64} : () -> tensor<256xi32, #D>

becomes the coordinate of the thread's first register, by `lego.inv`, plus a constant a register.
"""

from __future__ import annotations

from functools import partial, reduce
from math import gcd
from typing import Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.factors import Place
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    coordinates,
    of_elements,
    part_type,
    part_types,
    part_width,
)
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


def lower_constant(op: Any, layout: DistributedLayout) -> Fragment:
    """Build a constant whose elements are all the same.

    Raises:
        LegoError: they are not.
    """
    value = ir.DenseElementsAttr(op.attributes["value"])
    if not value.is_splat:
        raise LegoError(
            "the elements of this constant tile differ",
            hint="load them from a tensor, or compute them from lego.iota, in Python lg.iota",
        )
    number = value.get_splat_value()
    kind = part_type(layout, ir.ShapedType(op.results[0].type).element_type)
    if isinstance(kind, ir.VectorType):
        number = ir.DenseElementsAttr.get_splat(kind, number)
    part = build.make("arith.constant", kind, value=number)
    return Fragment(layout, (part,) * (layout.registers // part_width(layout)))


def lower_full(number: Any, layout: DistributedLayout) -> Fragment:
    """Build a fragment whose elements all are one number."""
    kinds = part_types(layout, number.type)
    return Fragment(layout, (build.broadcast(kinds[0], number),) * len(kinds))


def lower_iota(op: Any, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Build the index along a dimension of each of the thread's elements, of i32."""
    dim = tiles.dim_of(op)
    number = build.make("arith.index_cast", build.i32(), threads.coordinates(layout)[dim])
    at, width = coordinates(layout)[dim], part_width(layout)
    kind = part_type(layout, build.i32())
    wide = build.broadcast(kind, number)
    made: dict[tuple[int, ...], Any] = {}
    parts = []
    for k in range(0, layout.registers, width):
        offsets = at[k : k + width]
        if offsets not in made:
            added = build.integers(kind, offsets)
            made[offsets] = build.binary("addi", wide, added) if any(offsets) else wide
        parts.append(made[offsets])
    return Fragment(layout, tuple(parts))


def lower_in_range(op: Any, origin: Any, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Build whether `origin + index` is below a size, for each of the thread's elements.

    `lego.mask` has the comparisons, so those that are proven are none. Neighbours that are in range
    together have one.
    """
    dim, size, limit = tiles.dim_of(op), tiles.size_of(op), tiles.limit_of(op)
    is_long = size >= _MOST
    padded = None if is_long else layout_attribute(OrderBy(Row(size)).TileBy([1], [_MOST]))
    limit = build.index(size) if is_long and limit is None else limit
    first = build.binary("addi", origin, threads.coordinates(layout)[dim])
    together = gcd(tiles.divisor_of(op), _alignment(layout, dim))
    zero = build.index(0)
    made: dict[int, Any] = {}
    places = [x - x % together for x in coordinates(layout)[dim]]
    for x in dict.fromkeys(places):
        at = build.binary("addi", first, build.index(x)) if x else first
        holds = [] if padded is None else [dialect.mask(padded, [zero, at])]
        holds += [] if limit is None else [build.compare("slt", at, limit)]
        made[x] = reduce(partial(build.binary, "andi"), holds)
    return of_elements(layout, [made[x] for x in places])


def _alignment(layout: DistributedLayout, dim: int) -> int:
    """Return what divides the coordinate of every thread's first element along a dimension."""
    strides = (f.stride for place, f in layout.factors_of(dim) if place is not Place.REGISTER)
    return gcd(*strides)  # 0 if it is always the first


_MOST = (1 << 31) - 1
"""The most elements along a dimension of a tensor: indices of tiles are i32."""
