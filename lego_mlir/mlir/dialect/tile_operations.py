"""The dialect's operations on tiles: names, builders and readers.

A tile is a tensor whose encoding is its distributed layout (`mlir.tile_ir.types`). Builders infer
the result's type; it has no layout yet where the operation does not give it one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir

GATHER = "lego.gather"
SCATTER = "lego.scatter"
FULL = "lego.full"
ITEM = "lego.item"
IOTA = "lego.iota"
IN_RANGE = "lego.in_range"
RESTRICT = "lego.restrict"
FILL = "lego.fill"
BROADCAST = "lego.broadcast"
RESHAPE = "lego.reshape"
TRANSPOSE = "lego.transpose"
JOIN = "lego.join"
SPLIT = "lego.split"
CONVERT = "lego.convert"
REDUCE = "lego.reduce"
REDUCE_WITH = "lego.reduce_with"
SCAN = "lego.scan"
SCAN_WITH = "lego.scan_with"
SORT_WITH = "lego.sort_with"
DOT = "lego.dot"
TAKE = "lego.take"
LOAD_PARTS = "lego.load_parts"
STORE_PARTS = "lego.store_parts"
SEND_PARTS = "lego.send_parts"
LOAD_MATRICES = "lego.load_matrices"
STORE_MATRICES = "lego.store_matrices"
MATRIX_DESCRIPTOR = "lego.matrix_descriptor"
END_READS = "lego.end_reads"

ORDER = "order"
DIM = "dim"
SIZE = "size"
KIND = "kind"
REVERSE = "reverse"
IDENTITY = "identity"
VALUE = "value"
WORD = "word"
REGISTERS = "registers"
IN_BOUNDS = "in_bounds"
SCATTER_NUMBER = "scatter"
"""On a store_parts: which lego.scatter of the kernel it is a part of. Of the elements that one
scatter stores at one index any one stays, so its parts are made in any order."""
"""A unit attribute of an access of parts: no element lies past the end of a dimension."""
MATRICES = "matrices"
TRANSPOSED = "transposed"
"""A unit attribute: the instruction transposes each matrix."""

KINDS = ("add", "mul", "max", "min", "umax", "umin", "and", "or", "xor")
"""What a reduction or scan combines by."""

MOST_COMBINED = 4
"""The most tiles that a lego.reduce_with, scan_with or sort_with combines together."""

_OPERAND_SEGMENTS = "operandSegmentSizes"
_RESULT_SEGMENTS = "resultSegmentSizes"


# Readers.
def dim_of(op: Any) -> int:
    """Return the dimension that an operation is about."""
    return ir.IntegerAttr(op.attributes[DIM]).value  # type: ignore[no-any-return]


def size_of(op: Any) -> int:
    """Return the bound of a lego.in_range."""
    return ir.IntegerAttr(op.attributes[SIZE]).value  # type: ignore[no-any-return]


def limit_of(op: Any) -> Any | None:
    """Return the value that a lego.in_range compares with, beside its bound."""
    return op.operands[1] if len(op.operands) > 1 else None


def kind_of(op: Any) -> str:
    """Return by what a lego.reduce or lego.scan combines."""
    return ir.StringAttr(op.attributes[KIND]).value  # type: ignore[no-any-return]


def order_of(op: Any) -> list[int]:
    """Return the order of dimensions of a lego.transpose."""
    return list(ir.DenseI64ArrayAttr(op.attributes[ORDER]))


def is_reverse(op: Any) -> bool:
    """Return whether a scan begins at the last element."""
    return REVERSE in op.attributes


def identity_of(op: Any) -> list[Any] | None:
    """Return the attributes that stand for invalid elements, `None` if there are none."""
    return list(ir.ArrayAttr(op.attributes[IDENTITY])) if IDENTITY in op.attributes else None


def registers_of(op: Any) -> list[tuple[int, int, int]]:
    """Return the register factors of a load_parts or store_parts: dimension, size and stride."""
    numbers = list(ir.DenseI64ArrayAttr(op.attributes[REGISTERS]))
    return [(d, n, s) for d, n, s in zip(*(iter(numbers),) * 3, strict=True)]


def segments_of(op: Any) -> list[list[Any]]:
    """Return the operands of an access of parts or matrices, group by group."""
    if _OPERAND_SEGMENTS not in op.attributes:  # the last of two groups is the only variadic one
        return [list(op.operands)[:1], list(op.operands)[1:]]
    sizes = list(ir.DenseI32ArrayAttr(op.attributes[_OPERAND_SEGMENTS]))
    operands = iter(op.operands)
    return [[next(operands) for _ in range(n)] for n in sizes]


def scatter_number_of(op: Any) -> int | None:
    """Return which lego.scatter a store_parts is a part of, `None` if it is of none."""
    attribute = op.attributes.get(SCATTER_NUMBER)
    return None if attribute is None else ir.IntegerAttr(attribute).value


def is_in_bounds(op: Any) -> bool:
    """Return whether all elements that an access of parts names are said to exist."""
    return IN_BOUNDS in op.attributes


def matrices_of(op: Any) -> int:
    """Return how many matrices each instruction of a load_matrices or store_matrices moves."""
    return ir.IntegerAttr(op.attributes[MATRICES]).value  # type: ignore[no-any-return]


def is_transposed(op: Any) -> bool:
    """Return whether a load_matrices or store_matrices transposes."""
    return TRANSPOSED in op.attributes


def word_of(op: Any) -> int:
    """Return the 64 bits of a lego.matrix_descriptor of a tile at address 0."""
    return ir.IntegerAttr(op.attributes[WORD]).value & (1 << 64) - 1  # type: ignore[no-any-return]


def value_of(op: Any) -> Any:
    """Return the attribute of the number of a lego.fill."""
    return op.attributes[VALUE]


# Builders.
def full(kind: Any, number: Any, location: Any = None) -> Any:
    """Build the tile of type `kind` whose elements all are `number`."""
    return _build(FULL, [kind], [number], {}, location)[0]


def item(tile: Any, location: Any = None) -> Any:
    """Build the number of a tile of one element."""
    return _build(ITEM, [_element(tile)], [tile], {}, location)[0]


def iota(kind: Any, dim: int, location: Any = None) -> Any:
    """Build the tile of type `kind` of each element's index along a dimension."""
    return _build(IOTA, [kind], [], {DIM: _i64(dim)}, location)[0]


def in_range(
    kind: Any, origin: Any, dim: int, size: int, location: Any = None, limit: Any = None
) -> Any:
    """Build the tile of i1, of type `kind`, of whether `origin + index` is below `size`.

    Args:
        kind: of the tile.
        origin: an index value.
        dim: along which the index is counted.
        size: a number.
        location: of the operation.
        limit: an index value that the sum is to be below, too.
    """
    attributes = {DIM: _i64(dim), SIZE: _i64(size)}
    operands = [origin] if limit is None else [origin, limit]
    return _build(IN_RANGE, [kind], operands, attributes, location)[0]


def restrict(tile: Any, mask: Any, location: Any = None) -> Any:
    """Build the tile whose elements are invalid, too, where the mask is false."""
    return _build(RESTRICT, [tile.type], [tile, mask], {}, location)[0]


def fill(tile: Any, value: Any, location: Any = None) -> Any:
    """Build the tile in which invalid elements are valid, and the number of the attribute."""
    return _build(FILL, [tile.type], [tile], {VALUE: value}, location)[0]


def broadcast(kind: Any, tile: Any, location: Any = None) -> Any:
    """Build the tile of type `kind` to which dimensions of size 1 are repeated."""
    return _build(BROADCAST, [kind], [tile], {}, location)[0]


def reshape(kind: Any, tile: Any, location: Any = None) -> Any:
    """Build the elements in row-major order as a tile of type `kind`."""
    return _build(RESHAPE, [kind], [tile], {}, location)[0]


def transpose(kind: Any, tile: Any, order: Sequence[int], location: Any = None) -> Any:
    """Build the tile of type `kind` whose dimension k is dimension `order[k]`."""
    attributes = {ORDER: ir.DenseI64ArrayAttr.get(list(order))}
    return _build(TRANSPOSE, [kind], [tile], attributes, location)[0]


def join(kind: Any, tiles: Sequence[Any], location: Any = None) -> Any:
    """Build the tile of type `kind` that has tiles along its last dimension."""
    return _build(JOIN, [kind], tiles, {}, location)[0]


def split(kind: Any, tile: Any, parts: int, location: Any = None) -> list[Any]:
    """Build the tiles of type `kind`, so many, along the last dimension."""
    return _build(SPLIT, [kind] * parts, [tile], {}, location)


def convert(kind: Any, tile: Any, location: Any = None) -> Any:
    """Build the tile in the layout of the type `kind`."""
    return _build(CONVERT, [kind], [tile], {}, location)[0]


def reduce(kind: Any, tile: Any, by: str, dim: int, location: Any = None) -> Any:
    """Build the reduction of a tile along a dimension by one of `KINDS`, of type `kind`."""
    attributes = {KIND: ir.StringAttr.get(by), DIM: _i64(dim)}
    return _build(REDUCE, [kind], [tile], attributes, location)[0]


def scan(tile: Any, by: str, dim: int, location: Any = None, *, reverse: bool = False) -> Any:
    """Build the scan of a tile along a dimension by one of `KINDS`."""
    attributes = {KIND: ir.StringAttr.get(by), DIM: _i64(dim)}
    if reverse:
        attributes[REVERSE] = ir.UnitAttr.get()
    return _build(SCAN, [tile.type], [tile], attributes, location)[0]


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
        DIM: _i64(dim),
        _OPERAND_SEGMENTS: segments,
        _RESULT_SEGMENTS: segments,
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
    elements = [_element(tile) for tile in tiles] * 2
    op.regions[0].blocks.append(*elements, arg_locs=[op.location] * len(elements))
    return op


def dot(a: Any, b: Any, accumulator: Any, location: Any = None) -> Any:
    """Build `a @ b + accumulator`."""
    return _build(DOT, [accumulator.type], [a, b, accumulator], {}, location)[0]


def take(kind: Any, tile: Any, indices: Any, dim: int, location: Any = None) -> Any:
    """Build the elements of a tile at indices along a dimension, of type `kind`."""
    return _build(TAKE, [kind], [tile, indices], {DIM: _i64(dim)}, location)[0]


def gather(
    kind: Any, buffer: Any, indices: Sequence[Any], layout: Any, location: Any = None
) -> Any:
    """Build the tile of type `kind` of a tensor's elements at the indices that tiles hold."""
    return _build(GATHER, [kind], [buffer, *indices], {_LAYOUT: layout}, location)[0]


def scatter(
    tile: Any,
    buffer: Any,
    indices: Sequence[Any],
    layout: Any,
    by: str | None = None,
    location: Any = None,
) -> None:
    """Build a store of a tile at the indices that tiles hold; `by` makes it atomic updates."""
    attributes = {_LAYOUT: layout}
    if by is not None:
        attributes[KIND] = ir.StringAttr.get(by)
    _build(SCATTER, [], [tile, buffer, *indices], attributes, location)


def load_parts(
    kinds: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    mask: Sequence[Any] = (),
    other: Any = None,
    *,
    in_bounds: bool = False,
) -> list[Any]:
    """Build a load of the elements of a tile that one thread holds, in parts.

    Args:
        kinds: the types of the parts.
        buffer: the memory.
        index: of the thread's first element, one value a dimension of the layout.
        layout: the attribute of the buffer's layout.
        registers: the register factors, slowest first: the layout's dimension, size, stride.
        mask: parts of i1 that say which elements are accessed; none for all.
        other: the attribute of what is not there.
        in_bounds: whether no element lies past the end of a dimension.
    """
    attributes = _parts_attributes(layout, registers, [1, len(index), len(mask)])
    if in_bounds:
        attributes[IN_BOUNDS] = ir.UnitAttr.get()
    if other is not None:
        attributes["other"] = other
    return _build(LOAD_PARTS, kinds, [buffer, *index, *mask], attributes, None)


def store_parts(
    parts: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    mask: Sequence[Any] = (),
    *,
    in_bounds: bool = False,
    scatter: int | None = None,
) -> None:
    """Build a store of the elements of a tile that one thread holds; arguments as `load_parts`.

    `scatter` is the number of the lego.scatter that it is a part of.
    """
    segments = [1, len(index), len(parts), len(mask)]
    attributes = _parts_attributes(layout, registers, segments)
    if in_bounds:
        attributes[IN_BOUNDS] = ir.UnitAttr.get()
    if scatter is not None:
        attributes[SCATTER_NUMBER] = _i64(scatter)
    _build(STORE_PARTS, [], [buffer, *index, *parts, *mask], attributes, None)


def send_parts(
    parts: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    barrier: Any,
    cta: Any,
) -> None:
    """Build a store into the shared memory of another CTA of the cluster.

    Args:
        parts: what the thread holds, of elements of 4 or 8 bytes.
        buffer: the memory; it has the same address in all CTAs.
        index: of the thread's first element, as of `load_parts`.
        layout: the attribute of the buffer's layout.
        registers: the register factors, as of `load_parts`.
        barrier: an mbarrier in shared memory; that of the other CTA counts the bytes.
        cta: the other CTA's rank in the cluster, an i32.
    """
    segments = [1, len(index), len(parts), 1, 1]
    attributes = _parts_attributes(layout, registers, segments)
    _build(SEND_PARTS, [], [buffer, *index, *parts, barrier, cta], attributes, None)


def load_matrices(
    kinds: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    matrices: int,
    *,
    transposed: bool,
) -> list[Any]:
    """Build a load of words by ldmatrix.

    Args:
        kinds: the types of the words, matrix by matrix, instruction by instruction.
        buffer: shared memory.
        index: of the first element of the thread's first row, one value a dimension of the layout.
        layout: the attribute of the buffer's layout.
        registers: the register factors, slowest first: the layout's dimension, size, stride; the
            fastest ones count the elements of a row.
        matrices: of an instruction: 1, 2 or 4.
        transposed: whether it transposes.
    """
    attributes = _matrices_attributes(layout, registers, matrices, transposed=transposed)
    return _build(LOAD_MATRICES, kinds, [buffer, *index], attributes, None)


def store_matrices(
    words: Sequence[Any],
    buffer: Any,
    index: Sequence[Any],
    layout: Any,
    registers: Sequence[tuple[int, int, int]],
    matrices: int,
    *,
    transposed: bool,
) -> None:
    """Build a store of words by stmatrix; arguments as `load_matrices`."""
    attributes = _matrices_attributes(layout, registers, matrices, transposed=transposed)
    segments = [1, len(index), len(words)]
    attributes[_OPERAND_SEGMENTS] = ir.DenseI32ArrayAttr.get(segments)
    _build(STORE_MATRICES, [], [buffer, *index, *words], attributes, None)


def matrix_descriptor(buffer: Any, index: Sequence[Any], layout: Any, word: int) -> Any:
    """Build the matrix descriptor, an i64, of a tile in shared memory.

    Args:
        buffer: shared memory.
        index: of the tile's first element, one value a dimension of the layout.
        layout: the attribute of the buffer's layout.
        word: the 64 bits of the descriptor of such a tile at address 0.
    """
    signed = word - (1 << 64) if word >> 63 else word
    attributes = {_LAYOUT: layout, WORD: _i64(signed)}
    kind = ir.IntegerType.get_signless(64)
    return _build(MATRIX_DESCRIPTOR, [kind], [buffer, *index], attributes, None)[0]


def end_reads(buffers: Sequence[Any]) -> None:
    """Build the end of reads that wgmma have begun of these buffers."""
    _build(END_READS, [], buffers, {}, None)


def _matrices_attributes(
    layout: Any, registers: Sequence[tuple[int, int, int]], matrices: int, *, transposed: bool
) -> dict[str, Any]:
    attributes = {
        _LAYOUT: layout,
        REGISTERS: ir.DenseI64ArrayAttr.get([n for factor in registers for n in factor]),
        MATRICES: _i64(matrices),
    }
    return attributes | ({TRANSPOSED: ir.UnitAttr.get()} if transposed else {})


def _parts_attributes(
    layout: Any, registers: Sequence[tuple[int, int, int]], segments: Sequence[int]
) -> dict[str, Any]:
    return {
        _LAYOUT: layout,
        REGISTERS: ir.DenseI64ArrayAttr.get([n for factor in registers for n in factor]),
        _OPERAND_SEGMENTS: ir.DenseI32ArrayAttr.get(list(segments)),
    }


_LAYOUT = "layout"


def _element(tile: Any) -> Any:
    return ir.RankedTensorType(tile.type).element_type


def _i64(n: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)


def _build(
    name: str,
    results: Sequence[Any],
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any,
) -> list[Any]:
    op = ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=attributes, loc=location
    )
    return list(op.results)
