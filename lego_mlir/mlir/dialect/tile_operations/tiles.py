"""Builders of operations on tiles.

They infer the type of a result; it has no layout yet where the operation does not give it one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect.tile_operations.build import (
    build,
    element_type,
    i64,
)
from lego_mlir.mlir.dialect.tile_operations.names import (
    BROADCAST,
    CONVERT,
    DIM,
    DIVISOR,
    DOT,
    EXTRACT_PART,
    EXTRACT_SLICE,
    FILL,
    FULL,
    GATHER,
    IDENTITY,
    IN_RANGE,
    INSTRUCTION,
    IOTA,
    ITEM,
    JOIN,
    KIND,
    LAYOUT,
    MOST_COMBINED,
    OFFSETS,
    OPERAND_SEGMENTS,
    ORDER,
    REDUCE,
    REDUCE_SCATTER,
    RESHAPE,
    RESTRICT,
    RESULT_SEGMENTS,
    REVERSE,
    SCAN,
    SCATTER,
    SIZE,
    SPLIT,
    TAKE,
    TRANSPOSE,
    VALUE,
    VOTE,
    DotInstruction,
)


def full(kind: Any, number: Any, location: Any = None) -> Any:
    """Build the tile of type `kind` whose elements all are `number`."""
    return build(FULL, [kind], [number], {}, location)[0]


def item(tile: Any, location: Any = None) -> Any:
    """Build the number of a tile of one element."""
    return build(ITEM, [element_type(tile)], [tile], {}, location)[0]


def vote(tile: Any, location: Any = None) -> Any:
    """Build whether a warp holds a true element of a tile of i1; it may be true elsewhere, too."""
    return build(VOTE, [ir.IntegerType.get_signless(1)], [tile], {}, location)[0]


def iota(kind: Any, dim: int, location: Any = None) -> Any:
    """Build the tile of type `kind` of each element's index along a dimension."""
    return build(IOTA, [kind], [], {DIM: i64(dim)}, location)[0]


def in_range(
    kind: Any,
    origin: Any,
    dim: int,
    size: int,
    location: Any = None,
    limit: Any = None,
    divisor: int = 1,
) -> Any:
    """Build the tile of i1, of type `kind`, of whether `origin + index` is below `size`.

    Args:
        kind: of the tile.
        origin: an index value.
        dim: along which the index is counted.
        size: a number.
        location: of the operation.
        limit: an index value that the sum is to be below, too.
        divisor: of origin, size and limit: so many neighbours are in range together.
    """
    attributes = {DIM: i64(dim), SIZE: i64(size)}
    if divisor > 1:
        attributes[DIVISOR] = i64(divisor)
    operands = [origin] if limit is None else [origin, limit]
    return build(IN_RANGE, [kind], operands, attributes, location)[0]


def restrict(tile: Any, mask: Any, location: Any = None) -> Any:
    """Build the tile whose elements are invalid, too, where the mask is false."""
    return build(RESTRICT, [tile.type], [tile, mask], {}, location)[0]


def fill(tile: Any, value: Any, location: Any = None) -> Any:
    """Build the tile in which invalid elements are valid, and the number of the attribute."""
    return build(FILL, [tile.type], [tile], {VALUE: value}, location)[0]


def broadcast(kind: Any, tile: Any, location: Any = None) -> Any:
    """Build the tile of type `kind` to which dimensions of size 1 are repeated."""
    return build(BROADCAST, [kind], [tile], {}, location)[0]


def reshape(kind: Any, tile: Any, location: Any = None) -> Any:
    """Build the elements in row-major order as a tile of type `kind`."""
    return build(RESHAPE, [kind], [tile], {}, location)[0]


def transpose(kind: Any, tile: Any, order: Sequence[int], location: Any = None) -> Any:
    """Build the tile of type `kind` whose dimension k is dimension `order[k]`."""
    attributes = {ORDER: ir.DenseI64ArrayAttr.get(list(order))}
    return build(TRANSPOSE, [kind], [tile], attributes, location)[0]


def join(kind: Any, tiles: Sequence[Any], location: Any = None) -> Any:
    """Build the tile of type `kind` that has tiles along its last dimension."""
    return build(JOIN, [kind], tiles, {}, location)[0]


def split(kind: Any, tile: Any, parts: int, location: Any = None) -> list[Any]:
    """Build the tiles of type `kind`, so many, along the last dimension."""
    return build(SPLIT, [kind] * parts, [tile], {}, location)


def convert(kind: Any, tile: Any, location: Any = None) -> Any:
    """Build the tile in the layout of the type `kind`."""
    return build(CONVERT, [kind], [tile], {}, location)[0]


def extract_part(kind: Any, tile: Any, number: Any, location: Any = None) -> Any:
    """Build the part of a tile with a number, an index, of type `kind`."""
    return build(EXTRACT_PART, [kind], [tile, number], {}, location)[0]


def extract_slice(kind: Any, tile: Any, offsets: Sequence[int], location: Any = None) -> Any:
    """Build the elements of a tile from an index on, of type `kind`."""
    attributes = {OFFSETS: ir.DenseI64ArrayAttr.get(list(offsets))}
    return build(EXTRACT_SLICE, [kind], [tile], attributes, location)[0]


def reduce(kind: Any, tile: Any, by: str, dim: int, location: Any = None) -> Any:
    """Build the reduction of a tile along a dimension by one of `KINDS`, of type `kind`."""
    attributes = {KIND: ir.StringAttr.get(by), DIM: i64(dim)}
    return build(REDUCE, [kind], [tile], attributes, location)[0]


def reduce_scatter(kind: Any, tile: Any, rank: Any, by: str, dim: int, location: Any = None) -> Any:
    """Build the slice that a CTA gets of what the tiles of the CTAs of its cluster combine to.

    Args:
        kind: the type of the slice.
        tile: what the CTA holds.
        rank: of the CTA in its cluster, an index.
        by: one of `KINDS`, by which tiles are combined.
        dim: the dimension.
        location: of the operation.
    """
    attributes = {KIND: ir.StringAttr.get(by), DIM: i64(dim)}
    return build(REDUCE_SCATTER, [kind], [tile, rank], attributes, location)[0]


def scan(tile: Any, by: str, dim: int, location: Any = None, *, reverse: bool = False) -> Any:
    """Build the scan of a tile along a dimension by one of `KINDS`."""
    attributes = {KIND: ir.StringAttr.get(by), DIM: i64(dim)}
    if reverse:
        attributes[REVERSE] = ir.UnitAttr.get()
    return build(SCAN, [tile.type], [tile], attributes, location)[0]


def combine_with(
    name: str,
    kinds: Sequence[Any],
    tiles: Sequence[Any],
    dim: int,
    identity: Sequence[Any] | None = None,
    location: Any = None,
    *,
    reverse: bool = False,
) -> Any:
    """Build a reduction, scan or sort by a function; return the operation with an empty body.

    Args:
        name: `REDUCE_WITH`, `SCAN_WITH` or `SORT_WITH`.
        kinds: the types of the results.
        tiles: up to `MOST_COMBINED` tiles of one shape.
        dim: the dimension.
        identity: the attribute that stands for the invalid elements of each tile.
        location: of the operation.
        reverse: of a scan: whether it begins at the last element.

    Returns:
        The operation. The only block of its region has the arguments; it ends in a gpu.yield.
    """
    counts = [1 if k < len(tiles) else 0 for k in range(MOST_COMBINED)]
    segments = ir.DenseI32ArrayAttr.get(counts)
    attributes: dict[str, Any] = {
        DIM: i64(dim),
        OPERAND_SEGMENTS: segments,
        RESULT_SEGMENTS: segments,
    }
    if identity is not None:
        attributes[IDENTITY] = ir.ArrayAttr.get(list(identity))
    if reverse:
        attributes[REVERSE] = ir.UnitAttr.get()
    op = ir.Operation.create(
        name,
        results=list(kinds),
        operands=list(tiles),
        attributes=attributes,
        regions=1,
        loc=location,
    )
    elements = [element_type(tile) for tile in tiles] * 2
    op.regions[0].blocks.append(*elements, arg_locs=[op.location] * len(elements))
    return op


def dot(
    a: Any,
    b: Any,
    accumulator: Any,
    location: Any = None,
    instruction: DotInstruction | None = None,
) -> Any:
    """Build `a @ b + accumulator`, by an instruction if one is given."""
    attributes = {} if instruction is None else {INSTRUCTION: ir.StringAttr.get(instruction)}
    return build(DOT, [accumulator.type], [a, b, accumulator], attributes, location)[0]


def take(kind: Any, tile: Any, indices: Any, dim: int, location: Any = None) -> Any:
    """Build the elements of a tile at indices along a dimension, of type `kind`."""
    return build(TAKE, [kind], [tile, indices], {DIM: i64(dim)}, location)[0]


def gather(
    kind: Any,
    buffer: Any,
    indices: Sequence[Any],
    layout: Any,
    sizes: Sequence[Any] = (),
    location: Any = None,
) -> Any:
    """Build the tile of type `kind` of a tensor's elements at the indices that tiles hold.

    Args:
        kind: of the result.
        buffer: the tensor.
        indices: one tile a dimension of the layout.
        layout: the attribute of the layout.
        sizes: the values of its symbols.
        location: of the operation.
    """
    segments = ir.DenseI32ArrayAttr.get([1, len(indices), len(sizes)])
    attributes = {LAYOUT: layout, OPERAND_SEGMENTS: segments}
    return build(GATHER, [kind], [buffer, *indices, *sizes], attributes, location)[0]


def scatter(
    tile: Any,
    buffer: Any,
    indices: Sequence[Any],
    layout: Any,
    sizes: Sequence[Any] = (),
    by: str | None = None,
    location: Any = None,
) -> None:
    """Build a store of a tile at the indices that tiles hold; `by` makes it atomic updates.

    `sizes` are the values of the layout's symbols.
    """
    segments = ir.DenseI32ArrayAttr.get([1, 1, len(indices), len(sizes)])
    attributes = {LAYOUT: layout, OPERAND_SEGMENTS: segments}
    if by is not None:
        attributes[KIND] = ir.StringAttr.get(by)
    build(SCATTER, [], [tile, buffer, *indices, *sizes], attributes, location)
