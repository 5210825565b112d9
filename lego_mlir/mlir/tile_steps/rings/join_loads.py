"""`transform_lego.join_loads`: neighbouring pieces of a row are loaded as one tile.

    %x = "lego.load"(%a, %row, %c0) {layout = #A, ...} : ... -> tensor<1x512xf16, #D>
    %y = "lego.load"(%a, %row, %c512) {layout = #A, ...} : ... -> tensor<1x512xf16, #D>

becomes, with a window #W on #A of which each row has several pieces,

    %t = "lego.load"(%a, %row, %c0, %c0) {layout = #W, ...} : ... -> tensor<2x512xf16, #E>
    %x = "lego.extract_slice"(%t) {offsets = array<i64: 0, 0>} : ... -> tensor<1x512xf16, #D>
    %y = "lego.extract_slice"(%t) {offsets = array<i64: 1, 0>} : ... -> tensor<1x512xf16, #D>

Each thread holds the same elements as before. So they pass through one ring (`pipeline_loop`), of
which each piece is read where it is used. What extends past the end of the row is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import reshaped
from lego_mlir.analysis.distributed.slices import stacked
from lego_mlir.index import bounds, construct
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.modules import body_of, named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import index_of, read_sizes
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.types import element_of, has_tiles, is_tile, layout_of, shape_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.simplify_tiles import only_computes
from lego_mlir.mlir.tile_steps.kernels import has_loops, loops_of, operations_of


@transform("join_loads")
def join_loads(step: TransformStep) -> list[list[Any]]:
    """Load neighbouring pieces of rows in the bodies of innermost loops as one tile."""
    for kernel, loop in loops_of(step):
        for pieces in [] if has_loops(loop) else _neighbours(kernel, loop):
            _join(pieces)
            for piece in pieces:
                step.erase(piece.load)
    return []


@dataclass(frozen=True)
class _Piece:
    """A load of a piece of a row.

    Attributes:
        load: the lego.load.
        layout: of the memory; its sizes are known.
        dim: its dimension along which the piece extends.
        size: of the piece.
        start: its first coordinate along the dimension.
        is_inside: whether it is known not to extend past the end of the dimension.
    """

    load: Any
    layout: Layout
    dim: int
    size: int
    start: Any
    is_inside: bool

    @property
    def key(self) -> tuple[Any, ...]:
        """What pieces of one row have in common."""
        others = [x for k, x in enumerate(self.index) if k != self.dim]
        memory = self.load.operands[0], self.layout, slice_of(self.load)
        return *memory, *others, self.load.results[0].type

    @property
    def index(self) -> list[Any]:
        """The operands that are its first element's index in the memory."""
        return index_of(self.load, self.layout)

    def follows(self, pieces: Sequence[_Piece]) -> bool:
        """Return whether the piece is the one behind several."""
        distance = construct.sub(self.start, pieces[0].start)
        return bool(distance == len(pieces) * self.size)


def _neighbours(kernel: TileKernel, loop: Any) -> list[list[_Piece]]:
    """Return the pieces that a loop's body loads, one behind the other, in groups of several."""
    reader = IndexReader()
    read_sizes(kernel.launch, kernel.layouts, reader)
    groups: list[list[_Piece]] = []
    last: dict[Any, list[_Piece]] = {}
    for op in operations_of(body_of(loop)):
        if op.name != dialect.LOAD:
            if has_tiles(op) and not only_computes(op):
                last.clear()  # it may write what is loaded
            continue
        piece = _piece(kernel, op, reader)
        if piece is None:
            continue
        group = last.get(piece.key)
        if group is None or not piece.follows(group):
            group = last[piece.key] = []
            groups.append(group)
        group.append(piece)
    return [group for group in groups if len(group) > 1 and group[0].is_inside]


def _piece(kernel: TileKernel, load: Any, reader: IndexReader) -> _Piece | None:
    """Return the piece of a row that is loaded.

    Returns:
        `None` if it is a tile of another shape, or not known to be of a row that there is.
    """
    (tile,) = load.results
    layout = kernel.layouts.of(load)
    if not is_tile(tile) or layout.symbols or max(shape_of(tile)) != prod(shape_of(tile)):
        return None
    others = set(named_attributes(load)) - {dialect.LAYOUT, dialect.SLICE}
    if any(name != dialect.OTHER or load.attributes[name].value for name in others):
        return None  # beyond the row there would not be 0
    size = max(shape_of(tile))
    dim = slice_of(load)[shape_of(tile).index(size)]
    first = [reader.read(x) for x in index_of(load, layout)]
    ends = [construct.add(x, size if k == dim else 1) for k, x in enumerate(first)]
    inside = [_is_at_most(x, int(n)) for x, n in zip(ends, layout.dims, strict=True)]
    if not all(is_inside for k, is_inside in enumerate(inside) if k != dim):
        return None
    return _Piece(load, layout, dim, size, first[dim], inside[dim])


def _is_at_most(x: Any, limit: int) -> bool:
    _, most = bounds(x)
    return most is not None and most <= limit


def _join(pieces: Sequence[_Piece]) -> None:
    """Let pieces be slices of one tile, which is loaded before the first of them."""
    first, count = pieces[0], len(pieces)
    (tile,), dim, size = first.load.results, first.dim, first.size
    layout = layout_of(tile)
    assert layout is not None  # tiles are placed
    row = reshaped(layout, (1, size))
    whole = stacked(row, 0, count)
    sizes = [int(n) for n in first.layout.dims]

    def coordinates(*index: Any) -> tuple[Any, ...]:
        return *index[:dim], index[dim] * size + index[dim + 1], *index[dim + 2 :]

    is_inside = pieces[-1].is_inside
    length = sizes[dim] - is_inside * (count - 1) * size
    window = first.layout.Window(
        [*sizes[:dim], count, length, *sizes[dim + 1 :]],
        coordinates,
        "inside" if is_inside else "zero",
    )
    attributes = {
        dialect.LAYOUT: layout_attribute(window),
        dialect.SLICE: ir.DenseI64ArrayAttr.get([dim, dim + 1]),
    }
    kinds = [
        ir.RankedTensorType.get(list(of.shape), element_of(tile), layout_attribute(of.layout))
        for of in (whole, row)
    ]
    index = first.index
    with ir.InsertionPoint(first.load), first.load.location:
        origin = [*index[:dim], build.index(0), *index[dim:]]
        joined = dialect.load(kinds[0], first.load.operands[0], origin, attributes)
    for k, piece in enumerate(pieces):
        with ir.InsertionPoint(piece.load), piece.load.location:
            part = tiles.extract_slice(kinds[1], joined, [k, 0])
            if part.type != tile.type:
                part = tiles.reshape(tile.type, part)
        piece.load.results[0].replace_all_uses_with(part)
