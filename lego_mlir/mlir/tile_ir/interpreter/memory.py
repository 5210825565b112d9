"""Buffers, and what lies in them at the indices of a layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.algebra.partial import mask
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.tile_ir.interpreter.pointwise import as_type, signed
from lego_mlir.mlir.tile_ir.interpreter.values import Array, Value, is_float


def tile_index(
    origin: Sequence[int], dims: Sequence[int], shape: Sequence[int]
) -> tuple[Array, ...]:
    """Return the index of every element of a tile, an array of its shape for each dimension.

    Args:
        origin: of the tile, one number a dimension of the layout.
        dims: the dimension of the layout along which each dimension of the tile extends.
        shape: of the tile.
    """
    steps = np.indices(tuple(shape), dtype=np.int64)
    index = [np.full(tuple(shape), start, np.int64) for start in origin]
    for dim, step in zip(dims, steps, strict=True):
        index[dim] = index[dim] + step
    return tuple(index)


def offsets(layout: Layout, index: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return where elements lie, which there are, and which are valid.

    There is no element past the end of a dimension, before its beginning, or where partial tiles
    pad; such ones are invalid. Outside of a window's tensor there is none, but a valid number. What
    is not there has the offset 0.
    """
    valid = np.ones(np.shape(index[0]), bool)
    for at, size in zip(index, layout.dims, strict=True):
        valid &= (at >= 0) & (at < size)
    inside = [np.where(valid, at, 0) for at in index]
    valid &= mask(layout.padding_limits(tuple(inside))) != 0
    exists = valid & layout.mask(*inside)
    if not exists.any():
        return np.zeros(exists.shape, np.int64), exists, valid
    somewhere = np.unravel_index(int(np.argmax(exists)), exists.shape)
    inside = [np.where(exists, at, at[somewhere]) for at in inside]
    found = np.broadcast_to(np.asarray(layout.apply(*inside), np.int64), exists.shape)
    return np.where(exists, found, 0), exists, valid


def read(buffer: Array, at: Array, exists: Array, valid: Array, other: Any) -> Value:
    """Return the elements at offsets, valid where it is said; what is not there is `other`.

    Raises:
        LegoError: an offset lies outside of the buffer.
    """
    _check_offsets(buffer, at, exists)
    flat = buffer.reshape(-1)
    data = flat[np.where(exists, at, 0)] if flat.size else np.zeros(at.shape, buffer.dtype)
    return Value(np.where(exists, data, other).astype(buffer.dtype), valid)


def write(buffer: Array, at: Array, exists: Array, data: Array) -> None:
    """Store elements at offsets, where they exist; of those at one offset the last.

    Raises:
        LegoError: an offset lies outside of the buffer.
    """
    _check_offsets(buffer, at, exists)
    buffer.reshape(-1)[at[exists]] = data[exists]


def update(buffer: Array, at: Array, exists: Array, data: Array, kind: str) -> Array:
    """Combine elements in memory with others, one after another; return those before.

    Args:
        buffer: the memory.
        at: the offset of each element.
        exists: where elements are updated.
        data: what they are combined with.
        kind: as of lego.atomic.

    Raises:
        LegoError: an offset lies outside of the buffer.
    """
    _check_offsets(buffer, at, exists)
    flat, before = buffer.reshape(-1), np.zeros_like(data)
    for index in map(tuple, np.argwhere(exists)):
        offset = at[index]
        before[index] = flat[offset]
        flat[offset] = _updated(kind, flat[offset : offset + 1], data[index].reshape(1))[0]
    return before


def _updated(kind: str, old: Array, new: Array) -> Array:
    if kind == "exchange":
        return new
    if is_float(old.dtype):
        return {"add": np.add, "max": np.maximum, "min": np.minimum}[kind](old, new)
    functions = {
        "add": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    return as_type(functions[kind](signed(old), signed(new)), old.dtype)


def _check_offsets(buffer: Array, at: Array, exists: Array) -> None:
    reached = at[exists]
    if reached.size and not 0 <= reached.min() <= reached.max() < buffer.size:
        raise LegoError(
            f"element {reached.max()} of a buffer of {buffer.size} elements is accessed",
            hint="the buffer's shape and the sizes of the layout must agree",
        )
