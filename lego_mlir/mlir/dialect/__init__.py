"""The lego dialect: the name of every operation and attribute, its builder and its reader.

No other module spells these names; those of operations on tiles stand in `tile_operations`.
`dialects/lego.irdl.mlir` declares and explains the operations. Builders insert at the current
insertion point. Their `location` defaults to the current one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect.tile_operations import (
    BROADCAST,
    CONVERT,
    DOT,
    FILL,
    FULL,
    GATHER,
    IN_RANGE,
    IOTA,
    ITEM,
    JOIN,
    LOAD_MATRICES,
    LOAD_PARTS,
    REDUCE,
    REDUCE_WITH,
    RESHAPE,
    RESTRICT,
    SCAN,
    SCAN_WITH,
    SCATTER,
    SPLIT,
    STORE_MATRICES,
    STORE_PARTS,
    TAKE,
    TRANSPOSE,
)

PREFIX = "lego."

# Operations on indices.
APPLY = "lego.apply"
INV = "lego.inv"
MASK = "lego.mask"
SIZE = "lego.size"
DIM = "lego.dim"
TABLE = "lego.table"
CHECK = "lego.check"
# Operations on memory.
ALLOC = "lego.alloc"
LOAD = "lego.load"
STORE = "lego.store"
ATOMIC = "lego.atomic"
PICK = "lego.pick"
# Operations that a schedule makes.
REDUCE_SCATTER = "lego.reduce_scatter"
SUM_SLICES = "lego.sum_slices"
SLICES, IN_ORDER = "slices", "in_order"
TENSOR_MAP = "lego.tensor_map"
TENSOR_MAPS = "lego.tensor_maps"

# Operations on tiles, and what they become in each thread.
TILE_OPERATIONS = (
    GATHER,
    SCATTER,
    FULL,
    ITEM,
    IOTA,
    IN_RANGE,
    RESTRICT,
    FILL,
    BROADCAST,
    RESHAPE,
    TRANSPOSE,
    JOIN,
    SPLIT,
    CONVERT,
    REDUCE,
    REDUCE_WITH,
    SCAN,
    SCAN_WITH,
    DOT,
    TAKE,
)
PARTS_OPERATIONS = (LOAD_PARTS, STORE_PARTS, LOAD_MATRICES, STORE_MATRICES)

TENSOR_MAP_OPERATIONS = (TENSOR_MAP, TENSOR_MAPS)

# Attributes of a module or a host function.
SIZES = "lego.sizes"
"""A module's dictionary from symbols of its layouts to their values."""
SCHEDULE = "lego.schedule"
"""The name of the schedule that a module is compiled with, or, on a gpu.launch, that launch."""
REFERENCE = "lego.reference"
"""The name of the NumPy function that `--run` compares a module's results with."""
IN_PLACE = "lego.in_place"
"""A unit attribute: the buffers of a host function may overlap."""
FACTS = "lego.facts"
"""Conditions on a host function's arguments that each launch checks."""
INDEX_BITWIDTH = "lego.index_bitwidth"
"""32 or 64: the bits that hold every index of a lowered module's kernels."""
EXACT_MATH = "lego.exact_math"
"""A unit attribute of a module: f32 quotients and roots are rounded to nearest, as IEEE 754 has it,
and other functions of mathematics have errors of a few units in the last place."""

# Attributes of a host function's arguments.
ARGUMENT_LAYOUT = "lego.layout"
ARGUMENT_NAME = "lego.name"
ALIGNMENT = "lego.alignment"
"""Bytes, a power of two: the alignment of an argument's address, or of an alloc's buffer."""

# Attributes of a gpu.alloc in a host function, which is a workspace of the launches. It may have
# `ARGUMENT_NAME` and `ALIGNMENT`, too.
ZEROED = "lego.zeroed"
"""A unit attribute: the buffer holds zeros when the first kernel begins, and after the last one."""

# Attributes of a gpu.launch.
PARAMS = "lego.params"
"""A dictionary of the parameters of the launch's own schedule, which `SCHEDULE` names there."""
CLUSTER = "lego.cluster"
"""The number of CTAs along x that make a cluster."""
FILLED = "lego.filled"
"""A unit attribute: invalid elements of tiles hold what the operations need that ignore them. Only
bounds of accesses, and each lego.restrict right before one, still say what is valid."""
PDL = "lego.pdl"
PING_PONG = "lego.ping_pong"
"""A unit attribute: the kernel itself waits for the work before it, so its launch need not."""

# Attributes of other dialects' operations.
BOUNDS = "lego.bounds"
"""For each result, an index, an exclusive upper bound, or 0 where none is known. On a scf.for the
bounds hold for the values that it carries, too."""
CLAIM = "lego.claim"
"""A range that the program claims for an operand or a result: `mlir.lowering.indices.claims`."""
DIVERGENT = "lego.divergent"
"""A unit attribute of an scf.if: its condition differs between threads."""
WARPS = "lego.warps"
"""On a vector.contract: the layout from a warp's coordinates in the tile to the warp's id."""
ORDERED_BY_USER = "lego.own"
"""A unit attribute of an llvm atomic whose ordering and scope the user wrote."""
STORED_CHUNK = "lego.chunk"
"""On a fence: the number of the result's chunk that TMA stores after it."""

# Attributes of the dialect's own operations.
LAYOUT = "layout"
SLICE = "slice"
"""The whole dimensions of a load or store of a tile, in ascending order."""
SHARED = "shared"
"""The shared-memory layout of the tile that is loaded or stored."""
OTHER = "other"
"""The value that a load returns where there is no element."""
WITHIN = "within"
"""A unit attribute: the last two operands of a store bound the tensor rows that it writes. The
first one is inclusive, the second one exclusive."""
EXCLUSIVE = "exclusive"
"""A unit attribute of a store: no two threads update the same element."""
BY_THREADS = "by_threads"
"""A unit attribute of a store with `SHARED`: threads copy the tile from there, and not TMA."""
CHUNK = "chunk"
"""The number of the chunk that a store writes of its tile's columns."""
KIND = "kind"
VALUES = "values"
BIJECTIVE = "bijective"
_DIM = "dim"
_SHAPE, _STRIDES, _BOX = "shape", "strides", "box"
_SWIZZLE, _L2_PROMOTION = "swizzle", "l2_promotion"


def made_by(value: Any, name: str) -> bool:
    """Return whether the operation of this name computes `value`."""
    return not isinstance(value, ir.BlockArgument) and bool(value.owner.name == name)


# Readers.
def sizes_of(module: Any, source: Source) -> dict[str, int]:
    """Return the values that a module's `SIZES` give to the symbols of its layouts.

    Raises:
        LegoError: the attribute is not a dictionary of positive integers.
    """
    if SIZES not in module.operation.attributes:
        return {}
    attribute = module.operation.attributes[SIZES]
    location = module.operation.location
    if not isinstance(attribute, ir.DictAttr):
        raise source.error(f"{SIZES} is a dictionary, not '{attribute}'", location)
    sizes: dict[str, int] = {}
    for entry in ir.DictAttr(attribute):
        if not isinstance(entry.attr, ir.IntegerAttr) or ir.IntegerAttr(entry.attr).value < 1:
            raise source.error(
                f"{SIZES}: {entry.name} is a positive integer, not '{entry.attr}'", location
            )
        sizes[entry.name] = ir.IntegerAttr(entry.attr).value
    return sizes


def set_sizes(module: Any, sizes: Mapping[str, int]) -> None:
    """Set a module's `SIZES`; its context is the current one."""
    i64 = ir.IntegerType.get_signless(64)
    entries = {name: ir.IntegerAttr.get(i64, n) for name, n in sizes.items()}
    module.operation.attributes[SIZES] = ir.DictAttr.get(entries)


def layout_attribute_of(op: Any) -> Any:
    """Return the layout attribute of a lego operation."""
    return op.attributes[LAYOUT]


def dim_of(op: Any) -> int:
    """Return the dimension whose size a lego.dim computes."""
    return ir.IntegerAttr(op.attributes[_DIM]).value  # type: ignore[no-any-return]


def table_values(op: Any) -> list[int]:
    """Return the numbers of a lego.table."""
    return list(ir.DenseI64ArrayAttr(op.attributes[VALUES]))


def alignment_in(attributes: Any, default: int = 1) -> int:
    """Return the alignment in bytes that attributes state, `default` if they state none."""
    return ir.IntegerAttr(attributes[ALIGNMENT]).value if ALIGNMENT in attributes else default


def bounds_of(op: Any) -> list[int] | None:
    """Return the exclusive upper bounds of an operation's results, `None` if it has none."""
    if BOUNDS not in op.attributes:
        return None
    return list(ir.DenseI64ArrayAttr(op.attributes[BOUNDS]))


def tensor_map_fields(op: Any) -> dict[str, Any]:
    """Return shape, strides, box, swizzle and L2 promotion of a lego.tensor_map by name."""
    fields: dict[str, Any] = {
        name: tuple(ir.DenseI64ArrayAttr(op.attributes[name])) for name in (_SHAPE, _STRIDES, _BOX)
    }
    return fields | {name: op.attributes[name].value for name in (_SWIZZLE, _L2_PROMOTION)}


# Attributes.
def bounds_attribute(bounds: Sequence[int]) -> Any:
    """Return the attribute `BOUNDS` of exclusive upper bounds, one for each result."""
    return ir.DenseI64ArrayAttr.get(list(bounds))


def access_attributes(
    layout: Any, whole: Sequence[int] = (), shared: Any = None, **units: bool
) -> dict[str, Any]:
    """Return the attributes of a load or store.

    Args:
        layout: the attribute of the buffer's layout.
        whole: the dimensions that a tile covers; none for one element.
        shared: the attribute of the tile's shared-memory layout.
        units: unit attributes (`WITHIN`, `EXCLUSIVE`, `BY_THREADS`) that are set where they are
            true.
    """
    attributes = {LAYOUT: layout}
    if whole:
        attributes[SLICE] = ir.DenseI64ArrayAttr.get(list(whole))
    if shared is not None:
        attributes[SHARED] = shared
    return attributes | {name: ir.UnitAttr.get() for name, is_set in units.items() if is_set}


# Builders.
def apply(layout: Any, operands: Sequence[Any], location: Any = None) -> Any:
    """Build a lego.apply of an index and the layout's symbols; return the offset."""
    return _build(APPLY, [_index()], operands, {LAYOUT: layout}, location).results[0]


def inv(
    layout: Any,
    rank: int,
    operands: Sequence[Any],
    bounds: Sequence[int] = (),
    location: Any = None,
) -> list[Any]:
    """Build a lego.inv of an offset and the layout's symbols; return the index.

    Args:
        layout: the layout's attribute.
        rank: the number of the layout's dimensions.
        operands: the offset, then one value for each symbol.
        bounds: exclusive upper bounds of the index, 0 where none is known.
        location: of the operation.
    """
    attributes = {LAYOUT: layout}
    if any(bounds):
        attributes[BOUNDS] = bounds_attribute(bounds)
    return list(_build(INV, [_index()] * rank, operands, attributes, location).results)


def mask(layout: Any, operands: Sequence[Any], location: Any = None) -> Any:
    """Build a lego.mask of an index and the layout's symbols; return whether an element exists."""
    i1 = ir.IntegerType.get_signless(1)
    return _build(MASK, [i1], operands, {LAYOUT: layout}, location).results[0]


def table(values: Sequence[int], position: Any, location: Any = None) -> Any:
    """Build a lego.table of `values`; return the number at `position`."""
    attributes = {VALUES: ir.DenseI64ArrayAttr.get(list(values))}
    return _build(TABLE, [_index()], [position], attributes, location).results[0]


def pick(kind: Any, number: Any, buffers: Sequence[Any], location: Any = None) -> Any:
    """Build a lego.pick of the buffer with this number; return it as one of the type `kind`."""
    return _build(PICK, [kind], [number, *buffers], {}, location).results[0]


def alloc(kind: Any, layout: Any, location: Any = None) -> Any:
    """Build a lego.alloc of a buffer of the type `kind` that holds a layout's elements."""
    return _build(ALLOC, [kind], [], {LAYOUT: layout}, location).results[0]


def load(
    kind: Any,
    buffer: Any,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any = None,
) -> Any:
    """Build a lego.load of an element or tile of the type `kind`; return its value.

    Args:
        kind: the type of the value.
        buffer: the memory.
        operands: the index, then one value for each symbol of the layout.
        attributes: by `access_attributes`.
        location: of the operation.
    """
    return _build(LOAD, [kind], [buffer, *operands], attributes, location).results[0]


def store(
    value: Any,
    buffer: Any,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any = None,
) -> Any:
    """Build a lego.store of an element or tile; return the operation.

    Args:
        value: what is stored.
        buffer: the memory.
        operands: the index, one value for each symbol of the layout, and, with `WITHIN`, the
            bounds of the rows that are written.
        attributes: by `access_attributes`.
        location: of the operation.
    """
    return _build(STORE, [], [value, buffer, *operands], attributes, location)


def atomic(
    kind: str,
    value: Any,
    buffer: Any,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any = None,
) -> Any:
    """Build a lego.atomic that updates an element by `kind`; return the value before."""
    attributes = {**attributes, KIND: ir.StringAttr.get(kind)}
    op = _build(ATOMIC, [value.type], [value, buffer, *operands], attributes, location)
    return op.results[0]


def reduce_scatter(kind: Any, accumulator: Any, rank: Any, layout: Any) -> Any:
    """Build a lego.reduce_scatter over a cluster's CTAs; return the operation.

    Args:
        kind: the type of the slice.
        accumulator: the tile that every CTA of the cluster has.
        rank: the CTA's rank in the cluster.
        layout: the attribute of the layout from (slice, column of the slice) to the tile's column.
    """
    return _build(REDUCE_SCATTER, [kind], [accumulator, rank], {LAYOUT: layout}, None)


def sum_slices(
    accumulator: Any,
    tile: Any,
    k_slice: Any,
    memory: Sequence[Any],
    location: Any = None,
    *,
    in_order: bool,
) -> Any:
    """Build a lego.sum_slices of one slice, over the CTAs of a tile of the output; return the sum.

    Args:
        accumulator: the tile that a CTA has accumulated.
        tile: the number of the tile of the output, an index.
        k_slice: the number of the CTA's slice.
        memory: a memref of accumulators, of as many tiles as the output has, and one of i32, one
            for each tile.
        location: of the operation.
        in_order: whether slices are added in order, from accumulators of their own.
    """
    i64 = ir.IntegerType.get_signless(64)
    attributes: dict[str, Any] = {SLICES: ir.IntegerAttr.get(i64, 1)}
    if in_order:
        attributes[IN_ORDER] = ir.UnitAttr.get()
    operands = [accumulator, tile, k_slice, *memory]
    return _build(SUM_SLICES, [accumulator.type], operands, attributes, location).results[0]


def tensor_map(
    buffer: Any,
    layout: Any,
    shape: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    l2_promotion: int,
) -> Any:
    """Build a lego.tensor_map of a tensor; return the pointer that a kernel takes.

    Args:
        buffer: the tensor.
        layout: the attribute of its layout.
        shape: sizes in elements, innermost first.
        strides: in bytes, of all dimensions but the innermost.
        box: sizes in elements of what one copy moves, innermost first.
        swizzle: bytes of the swizzle mode, 0 for none.
        l2_promotion: bytes that a read brings into the L2 cache at least, 0 for those it reads.
    """
    arrays = ((_SHAPE, shape), (_STRIDES, strides), (_BOX, box))
    attributes = {name: ir.DenseI64ArrayAttr.get(list(numbers)) for name, numbers in arrays}
    i64 = ir.IntegerType.get_signless(64)
    for name, number in ((_SWIZZLE, swizzle), (_L2_PROMOTION, l2_promotion)):
        attributes[name] = ir.IntegerAttr.get(i64, number)
    attributes[LAYOUT] = layout
    return _build(TENSOR_MAP, [_pointer()], [buffer], attributes, None).results[0]


def tensor_maps(maps: Sequence[Any]) -> Any:
    """Build a lego.tensor_maps that lays tensor maps one behind the other; return the first."""
    return _build(TENSOR_MAPS, [_pointer()], maps, {}, None).results[0]


def _build(
    name: str,
    results: Sequence[Any],
    operands: Sequence[Any],
    attributes: dict[str, Any],
    location: Any,
) -> Any:
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=attributes, loc=location
    )


def _index() -> Any:
    return ir.IndexType.get()


def _pointer() -> Any:
    return ir.Type.parse("!llvm.ptr")
