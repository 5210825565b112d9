"""What each lego operation on tiles computes, as `dialects/lego.irdl.mlir` specifies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.interpreter import combining, memory
from lego_mlir.mlir.tile_ir.interpreter.values import Array, Value, cast, dtype_of, number_of
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.types import is_shared_tile, is_tile, shape_of

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_ir.interpreter.machine import Machine


# Memory.
def _place(machine: Machine, op: Any, shape: Sequence[int]) -> tuple[Array, Array, Array]:
    """Return the offsets of what is accessed, which elements there are, and which are valid."""
    layout, numbers = machine.layout(op)
    origin = numbers[-layout.rank :]  # a copy into a ring has the number of its tile before
    whole = slice_of(op)
    for dim, (start, size) in enumerate(zip(origin, layout.dims, strict=True)):
        if start < 0 or (dim not in whole and start >= size):
            raise LegoError(
                f"'{op.name}' at {origin}, where dimension {dim} has the size {size}",
                hint="a tile may extend past the end of a dimension, and begins inside of the "
                "others: give the run arrays with valid indices",
            )
    return memory.offsets(layout, memory.tile_index(origin, whole, shape))


def load_tile(machine: Machine, op: Any, buffer: Any, shape: Sequence[int]) -> Value:
    """Return the tile of a buffer that an operation names, as lego.load does.

    Args:
        machine: the state of the CTA.
        op: the operation; its last operands are the tile's origin.
        buffer: the memory, a memref.
        shape: of the tile, empty for a single element.

    Raises:
        LegoError: the tile begins outside of the tensor.
    """
    at, exists, valid = _place(machine, op, shape)
    attribute = machine.attribute(op, dialect.OTHER)
    other = number_of(attribute) if attribute is not None else cast(0, dtype_of(buffer.type))
    return memory.read(machine.buffer(buffer), at, exists, valid, other)


def _load(machine: Machine, op: Any) -> list[Value]:
    kind = op.results[0].type
    shape = shape_of(op.results[0]) if isinstance(kind, ir.RankedTensorType) else ()
    tile = load_tile(machine, op, op.operands[0], shape)
    return [Value.of(tile.data, machine.filled or not shape or tile.valid)]


def _store(machine: Machine, op: Any) -> list[Value]:
    value = machine.values[op.operands[0]]
    at, exists, _ = _place(machine, op, value.data.shape)
    _write(machine, op, at, exists & value.valid, value.data)
    return []


def _write(machine: Machine, op: Any, at: Array, exists: Array, data: Array) -> None:
    """Store a tile, or update memory by it if the operation has a `kind`."""
    buffer, kind = machine.buffer(op.operands[1]), machine.attribute(op, dialect.KIND)
    if kind is None:
        memory.write(buffer, at, exists, data)
    else:
        memory.update(buffer, at, exists, data, kind.value)


def _atomic(machine: Machine, op: Any) -> list[Value]:
    value = machine.values[op.operands[0]]
    at, exists, _ = _place(machine, op, ())
    kind = op.attributes[dialect.KIND].value
    old = memory.update(machine.buffer(op.operands[1]), at, exists, value.data, kind)
    return [Value.of(old)]


def _indices(machine: Machine, op: Any, values: Sequence[Any]) -> tuple[Array, Array, Array]:
    """Return the offsets that tiles of indices say, which of them exist, and where all are valid.

    Raises:
        LegoError: a valid index is not in its dimension.
    """
    layout, _ = machine.layout(op)
    indices = [machine.values[x] for x in values if is_tile(x)]
    valid = np.logical_and.reduce([x.valid for x in indices])
    for dim, (x, n) in enumerate(zip(indices, layout.dims, strict=True)):
        wrong = valid & ((x.data < 0) | (x.data >= n))
        if wrong.any():
            raise LegoError(
                f"'{op.name}': index {dim} is {x.data[wrong][0]}, not in [0, {n})",
                hint="lego.restrict, in Python lg.restrict, makes others invalid",
            )
    index = [x.data.astype(np.int64) for x in indices]
    at, exists, in_tensor = memory.offsets(layout, index)
    return at, exists & valid, in_tensor & valid


def _gather(machine: Machine, op: Any) -> list[Value]:
    buffer, *indices = list(op.operands)
    at, exists, valid = _indices(machine, op, indices)
    zero = cast(0, dtype_of(op.results[0].type))
    tile = memory.read(machine.buffer(buffer), at, exists, valid, zero)
    return [Value.of(tile.data, machine.filled or tile.valid)]


def _scatter(machine: Machine, op: Any) -> list[Value]:
    value, _, *indices = list(op.operands)
    tile = machine.values[value]
    at, exists, _ = _indices(machine, op, indices)
    _write(machine, op, at, exists & tile.valid, tile.data)
    return []


# Tiles out of none.
def _full(machine: Machine, op: Any) -> list[Value]:
    (number,) = machine.operands(op)
    shape = shape_of(op.results[0])
    return [Value.of(np.broadcast_to(number.data, shape))]


def _item(machine: Machine, op: Any) -> list[Value]:
    (tile,) = machine.operands(op)
    return [Value.of(tile.data.reshape(()))]


def _vote(machine: Machine, op: Any) -> list[Value]:
    """Return whether any warp holds a true element, which each of them may take for its own."""
    (tile,) = machine.operands(op)
    return [Value.of(np.any(tile.data & tile.valid))]


def _steps(op: Any) -> Array:
    """Return each element's index along the dimension of an operation."""
    return np.indices(shape_of(op.results[0]), dtype=np.int64)[tiles.dim_of(op)]  # type: ignore[no-any-return]


def _iota(machine: Machine, op: Any) -> list[Value]:
    return [Value.of(_steps(op).astype(np.int32))]


def _in_range(machine: Machine, op: Any) -> list[Value]:
    origin, *limits = (x.number() for x in machine.operands(op))
    return [Value.of(_steps(op) + origin < min([tiles.size_of(op), *limits]))]


# Validity.
def _restrict(machine: Machine, op: Any) -> list[Value]:
    tile, mask = machine.operands(op)
    allowed = mask.data & mask.valid
    return [Value(tile.data, allowed if machine.filled else tile.valid & allowed)]


def _fill(machine: Machine, op: Any) -> list[Value]:
    (tile,) = machine.operands(op)
    number = number_of(tiles.value_of(op))
    return [Value.of(np.where(tile.valid, tile.data, number))]


# Views.
def _view(f: Callable[[Any, Array], Array]) -> Callable[[Machine, Any], list[Value]]:
    """Return an operation that gives elements other indices."""

    def viewed(machine: Machine, op: Any) -> list[Value]:
        (tile,) = machine.operands(op)
        return [Value(f(op, tile.data), f(op, tile.valid))]

    return viewed


def _convert(machine: Machine, op: Any) -> list[Value]:
    tile = machine.values[op.operands[0]]
    # What a ring holds changes when it is released; what is loaded from there does not.
    return [Value(tile.data.copy(), tile.valid)] if is_shared_tile(op.operands[0]) else [tile]


def _extract_slice(machine: Machine, op: Any) -> list[Value]:
    tile, shape = machine.values[op.operands[0]], shape_of(op.results[0])
    window = tuple(slice(x, x + n) for x, n in zip(tiles.offsets_of(op), shape, strict=True))
    return [Value(tile.data[window].copy(), tile.valid[window])]


def _extract_part(machine: Machine, op: Any) -> list[Value]:
    tile, number = machine.operands(op)
    shape = shape_of(op.results[0])
    counts = [n // m for n, m in zip(tile.data.shape, shape, strict=True)]
    at = np.unravel_index(number.number(), counts)
    window = tuple(slice(k * n, (k + 1) * n) for k, n in zip(at, shape, strict=True))
    return [Value(tile.data[window].copy(), tile.valid[window])]


def _join(machine: Machine, op: Any) -> list[Value]:
    parts = machine.operands(op)
    data, valid = ([getattr(p, what) for p in parts] for what in ("data", "valid"))
    return [Value(np.stack(data, -1), np.stack(valid, -1))]


def _split(machine: Machine, op: Any) -> list[Value]:
    (tile,) = machine.operands(op)
    parts = range(len(op.results))
    return [Value(tile.data[..., k], tile.valid[..., k]) for k in parts]


def _take(machine: Machine, op: Any) -> list[Value]:
    """Take elements; an invalid one is 0, and so is what an invalid index takes."""
    tile, indices = machine.operands(op)
    dim = tiles.dim_of(op)
    size = tile.data.shape[dim]
    wrong = indices.valid & ((indices.data < 0) | (indices.data >= size))
    if wrong.any():
        raise LegoError(f"'{op.name}': index {indices.data[wrong][0]} is not in [0, {size})")
    at = np.where(indices.valid, indices.data, 0)
    data = np.where(tile.valid, tile.data, np.zeros((), tile.data.dtype))
    return [Value(np.take_along_axis(data, at, dim), indices.valid)]


# Combinations.
def _reduce(machine: Machine, op: Any) -> list[Value]:
    (tile,) = machine.operands(op)
    return [combining.reduced(tile, tiles.kind_of(op), tiles.dim_of(op))]


def _scan(machine: Machine, op: Any) -> list[Value]:
    (tile,) = machine.operands(op)
    reverse = tiles.is_reverse(op)
    return [combining.scanned(tile, tiles.kind_of(op), tiles.dim_of(op), reverse=reverse)]


def _reduce_with(machine: Machine, op: Any) -> list[Value]:
    identity = tiles.identity_of(op)
    numbers = None if identity is None else [number_of(a) for a in identity]
    parts = machine.operands(op)
    return combining.reduced_with(parts, machine.function(op), tiles.dim_of(op), numbers)


def _scan_with(machine: Machine, op: Any) -> list[Value]:
    parts, function = machine.operands(op), machine.function(op)
    return combining.scanned_with(parts, function, tiles.dim_of(op), reverse=tiles.is_reverse(op))


def _sort_with(machine: Machine, op: Any) -> list[Value]:
    identity = tiles.identity_of(op)
    numbers = None if identity is None else [number_of(a) for a in identity]
    parts = machine.operands(op)
    return combining.sorted_with(parts, machine.function(op), tiles.dim_of(op), numbers)


def _dot(machine: Machine, op: Any) -> list[Value]:
    a, b, accumulator = machine.operands(op)
    return [combining.multiplied(a, b, accumulator)]


OPERATIONS: Mapping[str, Callable[[Machine, Any], list[Value]]] = {
    dialect.LOAD: _load,
    dialect.STORE: _store,
    dialect.ATOMIC: _atomic,
    tiles.GATHER: _gather,
    tiles.SCATTER: _scatter,
    tiles.FULL: _full,
    tiles.ITEM: _item,
    tiles.VOTE: _vote,
    tiles.IOTA: _iota,
    tiles.IN_RANGE: _in_range,
    tiles.RESTRICT: _restrict,
    tiles.FILL: _fill,
    tiles.BROADCAST: _view(lambda op, x: np.broadcast_to(x, shape_of(op.results[0]))),
    tiles.RESHAPE: _view(lambda op, x: x.reshape(shape_of(op.results[0]))),
    tiles.TRANSPOSE: _view(lambda op, x: x.transpose(tiles.order_of(op))),
    tiles.CONVERT: _convert,
    tiles.EXTRACT_PART: _extract_part,
    tiles.EXTRACT_SLICE: _extract_slice,
    tiles.JOIN: _join,
    tiles.SPLIT: _split,
    tiles.TAKE: _take,
    tiles.REDUCE: _reduce,
    tiles.SCAN: _scan,
    tiles.REDUCE_WITH: _reduce_with,
    tiles.SCAN_WITH: _scan_with,
    tiles.SORT_WITH: _sort_with,
    tiles.DOT: _dot,
}
