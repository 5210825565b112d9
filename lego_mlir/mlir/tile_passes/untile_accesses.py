"""A tile of a tensor that is seen in tiles becomes the same tile of the tensor.

    %x = "lego.load"(%a, %m, %k, %c0, %c0) {slice = array<i64: 2, 3>,
        layout = #lego.layout<"OrderBy(Row(512, 256)).TileBy([4, 4], [128, 64])">}

is, as copy engines and the steps of schedules take it,

    %row, %column = %m * 128, %k * 64
    %x = "lego.load"(%a, %row, %column) {slice = array<i64: 0, 1>,
        layout = #lego.layout<"OrderBy(Row(512, 256))">}

Elements beyond the end of the tensor are invalid in both. A tile that is not at the begin of an
innermost one, or larger, stays as it is: it ends where that does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute, symbols_of
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_passes.lower_tiles import build


def untile_accesses(kernel: TileKernel) -> None:
    """Run the pass on a kernel, in place."""
    for op in kernel.operations((dialect.LOAD, dialect.STORE)):
        if slice_of(op):
            _untile(op, kernel.layouts.of(op))


def _untile(op: Any, layout: Layout) -> None:
    """Rewrite a load or store, unless its layout is none in tiles, or its tile is no whole one."""
    view = layout.view
    if view is None or view.kind != "TileBy" or view.skew or layout.window or len(view.tiles) < 2:
        return
    _, *levels = view.tiles
    rank = len(levels[-1])
    inner = layout.rank - rank
    lead = 2 if op.name == dialect.STORE else 1
    tile = op.operands[0] if lead == 2 else op.results[0]
    operands = list(op.operands)
    index, sizes = operands[lead : lead + layout.rank], operands[lead + layout.rank :]
    dims = slice_of(op)
    is_whole = all(
        d >= inner and constant_size(index[d]) == 0 and _is_within(size, levels[-1][d - inner])
        for d, size in zip(dims, ir.RankedTensorType(tile.type).shape, strict=True)
    )
    if not is_whole or not all(isinstance(n, int) for level in levels for n in level):
        return
    symbols = symbols_of(layout, dialect.layout_attribute_of(op))
    values = dict(zip(symbols, sizes, strict=True))
    whole = replace(layout, view=None)
    attribute = layout_attribute(whole)
    attributes = named_attributes(op)
    attributes[dialect.LAYOUT] = attribute
    attributes[dialect.SLICE] = ir.DenseI64ArrayAttr.get([d - inner for d in dims])
    with ir.InsertionPoint(op), op.location:
        origin = [_origin(index[d::rank], [int(level[d]) for level in levels]) for d in range(rank)]
        kept = [values[symbol] for symbol in symbols_of(whole, attribute)]
        made = ir.Operation.create(
            op.name,
            [result.type for result in op.results],
            [*operands[:lead], *origin, *kept],
            attributes,
        )
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _is_within(size: int, tile: object) -> bool:
    return isinstance(tile, int) and size <= tile


def _origin(index: list[Any], sizes: list[int]) -> Any:
    """Return the coordinate along a dimension that an index of all levels has, by inner sizes."""
    found, *rest = index
    for number, size in zip(rest, sizes, strict=True):
        found = build.binary("muli", found, build.index(size))
        if constant_size(number) != 0:
            found = build.binary("addi", found, number)
    return found
